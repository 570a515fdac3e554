/**
 * The circuit breaker of one instance: a pure state machine fed by verdicts and by time. Times are monotonic ms. Recovery is
 * driven by `wakeAt`: an open breaker turns half-open by a tick and stays so for one trial, which has a deadline and a generation,
 * so whatever the trial does or fails to do, the breaker moves on.
 */

export type Breaker =
  | { readonly kind: "closed"; readonly failures: number }
  | {
      readonly kind: "open";
      readonly untilMs: number;
      /** Which time in a row it is open, from 1. */
      readonly attempt: number;
      /** Good trials so far. */
      readonly successes: number;
    }
  | {
      readonly kind: "half-open";
      readonly generation: number;
      readonly deadlineMs: number;
      readonly attempt: number;
      readonly successes: number;
    };

export type BreakerEvent =
  /** Somebody who belongs to no trial reached the server, or did not. */
  | { readonly kind: "success" }
  | { readonly kind: "failure"; readonly retryAfterMs?: number | undefined }
  /** The trial of this generation ended. */
  | { readonly kind: "trial-success"; readonly generation: number }
  | { readonly kind: "trial-failure"; readonly generation: number; readonly retryAfterMs?: number | undefined }
  /** Time passed. */
  | { readonly kind: "tick" }
  /** Look now, whatever the backoff says: an operator asked, or the server registered anew. */
  | { readonly kind: "hurry" };

export interface BreakerRules {
  readonly fall: number;
  readonly rise: number;
  /** How long one trial may take. */
  readonly trialMs: number;
  /** Time from one good trial to the next. */
  readonly edgeMs: number;
  /** The first backoff. */
  readonly startMs: number;
}

export const CLOSED: Breaker = Object.freeze({ kind: "closed", failures: 0 });

export const BACKOFF_MAX_MS = 300_000;
/** A server that asks to be left alone for longer is asked again all the same. */
export const RETRY_AFTER_MAX_MS = 3_600_000;
const JITTER = 0.2;

/** Time until trial `attempt` ≥ 1: doubling from `startMs` to 5 min, ±20 % within these; a server's own Retry-After if that is later. */
export function backoff(startMs: number, attempt: number, draw: number, retryAfterMs = 0): number {
  const base = Math.min(BACKOFF_MAX_MS, startMs * 2 ** Math.min(attempt - 1, 20));
  const jittered = base * (1 - JITTER + 2 * JITTER * draw);
  const bounded = Math.min(BACKOFF_MAX_MS, Math.max(startMs, jittered));
  return Math.max(bounded, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS));
}

/** `draw` is random, 0 ≤ draw < 1. */
export function stepBreaker(
  breaker: Breaker,
  event: BreakerEvent,
  rules: BreakerRules,
  nowMs: number,
  draw: number,
): Breaker {
  switch (breaker.kind) {
    case "closed":
      return fromClosed(breaker.failures, event, rules, nowMs, draw);
    case "open":
      return fromOpen(breaker, event, rules, nowMs);
    case "half-open":
      return fromHalfOpen(breaker, event, rules, nowMs, draw);
  }
}

/** When a tick will change something; undefined: never. */
export function wakeAt(breaker: Breaker): number | undefined {
  if (breaker.kind === "closed") return undefined;
  return breaker.kind === "open" ? breaker.untilMs : breaker.deadlineMs;
}

function fromClosed(failures: number, event: BreakerEvent, rules: BreakerRules, nowMs: number, draw: number): Breaker {
  if (event.kind === "success" || event.kind === "trial-success") return CLOSED;
  if (event.kind !== "failure" && event.kind !== "trial-failure") return { kind: "closed", failures };
  if (failures + 1 < rules.fall) return { kind: "closed", failures: failures + 1 };
  return { kind: "open", untilMs: nowMs + backoff(rules.startMs, 1, draw, event.retryAfterMs), attempt: 1, successes: 0 };
}

function fromOpen(
  breaker: Extract<Breaker, { kind: "open" }>,
  event: BreakerEvent,
  rules: BreakerRules,
  nowMs: number,
): Breaker {
  const { attempt, successes, untilMs } = breaker;
  if (event.kind === "success") return risen(attempt, successes, rules, nowMs, untilMs);
  if (event.kind === "hurry") return { ...breaker, untilMs: Math.min(untilMs, nowMs) };
  if (event.kind !== "tick" || nowMs < untilMs) return breaker;
  // A generation never recurs within one run of failures: each half-open state of it begins later than the one before.
  const generation = Math.max(nowMs, untilMs);
  return { kind: "half-open", generation, deadlineMs: nowMs + rules.trialMs, attempt, successes };
}

function fromHalfOpen(
  breaker: Extract<Breaker, { kind: "half-open" }>,
  event: BreakerEvent,
  rules: BreakerRules,
  nowMs: number,
  draw: number,
): Breaker {
  const { attempt, successes, deadlineMs, generation } = breaker;
  if (event.kind === "success") return risen(attempt, successes, rules, nowMs, nowMs + rules.edgeMs);
  const mine = "generation" in event && event.generation === generation;
  if (event.kind === "trial-success" && mine) return risen(attempt, successes, rules, nowMs, nowMs + rules.edgeMs);
  if (event.kind === "trial-failure" && mine) return reopened(attempt, rules, nowMs, draw, event.retryAfterMs);
  // The trial never came back.
  if (nowMs >= deadlineMs) return reopened(attempt, rules, nowMs, draw);
  return breaker;
}

function risen(attempt: number, successes: number, rules: BreakerRules, nowMs: number, latestMs: number): Breaker {
  if (successes + 1 >= rules.rise) return CLOSED;
  return { kind: "open", untilMs: Math.min(latestMs, nowMs + rules.edgeMs), attempt, successes: successes + 1 };
}

function reopened(attempt: number, rules: BreakerRules, nowMs: number, draw: number, retryAfterMs?: number): Breaker {
  const next = attempt + 1;
  const untilMs = nowMs + backoff(rules.startMs, next, draw, retryAfterMs);
  return { kind: "open", untilMs, attempt: next, successes: 0 };
}
