/** When to ask a server for its list again. */
import { LIMITS } from "../domain/limits.js";

/** 0 ≤ x < 1. */
type Draw = () => number;

const JITTER = 0.1;
const BACKOFF_START_MS = 2_000;
/** A server that was registered before it came up is wanted soon. */
const PENDING_BACKOFF_START_MS = 1_000;
const BACKOFF_MAX_MS = 300_000;
/** Full jitter may draw next to nothing; this keeps a failing server from being asked in a tight loop. */
const BACKOFF_MIN_MS = 100;
/** Notices that come together are one. */
const NOTICE_DEBOUNCE_MS = 50;
/** While notices never cease, listings move apart up to this. */
const NOTICE_MAX_MS = 5_000;

/** After a good listing: the server's own `ttlMs` within our bounds, ±10 %. */
export function afterListing(ttlMs: number | undefined, draw: Draw): number {
  const wanted = ttlMs === undefined ? LIMITS.relistDefaultMs : ttlMs;
  const bounded = Math.min(Math.max(wanted, LIMITS.relistMinMs), LIMITS.relistMaxMs);
  return Math.round(bounded * (1 - JITTER + 2 * JITTER * draw()));
}

/** After `failures` ≥ 1 failures in a row: doubling from 2 s (1 s while pending) to 5 min, full jitter. */
export function afterFailure(failures: number, pending: boolean, draw: Draw): number {
  const startMs = pending ? PENDING_BACKOFF_START_MS : BACKOFF_START_MS;
  const ceilingMs = Math.min(BACKOFF_MAX_MS, startMs * 2 ** Math.min(failures - 1, 20));
  return Math.max(BACKOFF_MIN_MS, Math.round(ceilingMs * draw()));
}

/** From a notice to its listing; `streak` is the number of listings that notices caused without a quiet time between. */
export function afterNotice(streak: number): number {
  return Math.min(NOTICE_MAX_MS, NOTICE_DEBOUNCE_MS * 2 ** Math.min(streak, 20));
}

/** Notices this long after the last listing begin a new streak. */
export const NOTICE_QUIET_MS = NOTICE_MAX_MS;
