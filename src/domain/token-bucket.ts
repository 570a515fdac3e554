/** A rate with a burst. Pure: the caller keeps the bucket and says what time it is. */

export interface BucketRule {
  readonly perSecond: number;
  /** How many may come at once after a pause. */
  readonly burst: number;
}

export interface Bucket {
  readonly tokens: number;
  /** When `tokens` was so, monotonic ms. */
  readonly atMs: number;
  /** When the last one who was refused was told to come back, monotonic ms. */
  readonly promisedMs: number;
}

export type Taken =
  | { readonly kind: "taken"; readonly bucket: Bucket }
  | { readonly kind: "empty"; readonly bucket: Bucket; readonly waitMs: number };

/** Longest wait that anybody is told: who asks without end must not make the others wait without end. */
const LONGEST_WAIT_MS = 30_000;

/**
 * Takes a token, or says when to come back. Everybody who is refused is told a later time than the one before, a token apart, so
 * that a crowd comes back as a queue and not as a crowd.
 */
export function take(rule: BucketRule, before: Bucket | undefined, nowMs: number): Taken {
  const { tokens, promisedMs } = refilled(rule, before, nowMs);
  if (tokens >= 1) return { kind: "taken", bucket: { tokens: tokens - 1, atMs: nowMs, promisedMs } };
  const apart = 1_000 / rule.perSecond;
  const earliest = nowMs + (1 - tokens) * apart;
  const at = Math.min(Math.max(earliest, promisedMs + apart), nowMs + LONGEST_WAIT_MS);
  return { kind: "empty", bucket: { tokens, atMs: nowMs, promisedMs: at }, waitMs: Math.ceil(at - nowMs) };
}

/** A full bucket says nothing and need not be kept. */
export function isFull(rule: BucketRule, bucket: Bucket, nowMs: number): boolean {
  return refilled(rule, bucket, nowMs).tokens >= rule.burst;
}

function refilled(rule: BucketRule, before: Bucket | undefined, nowMs: number): Bucket {
  if (!before) return { tokens: rule.burst, atMs: nowMs, promisedMs: nowMs };
  const more = (Math.max(0, nowMs - before.atMs) * rule.perSecond) / 1_000;
  return { ...before, tokens: Math.min(rule.burst, before.tokens + more) };
}
