/** Time as registrar and follower see it, so that tests can hold it in their hands. */
export interface Timers {
  /** Milliseconds on a clock that never goes back. */
  now(): number;
  /** Runs once after `ms`; returns how to take it back. */
  after(ms: number, run: () => void): () => void;
}

/** Uniform in [0, 1). */
export type RandomSource = () => number;

/** They do not keep the process alive. */
export const systemTimers: Timers = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** For work that the process is there for: waiting for the next attempt must not end it. */
export const holdingTimers: Timers = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

const BACKOFF_BASE_MS = 200;
const BACKOFF_CAP_MS = 10_000;

/**
 * Full-jitter backoff: anywhere between 0 and the exponential bound, so that a thousand processes that lost one registry
 * do not come back in step. Never earlier than what the registry asked for.
 */
export function backoffMs(failures: number, random: RandomSource, atLeastMs = 0): number {
  const bound = Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** Math.min(failures, 16));
  return Math.max(atLeastMs, Math.round(random() * bound));
}
