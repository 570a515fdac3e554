import type { Clock } from "../catalogue/ports.js";

export interface Deadline {
  /** Aborts after the time, or when one of the other signals does. */
  readonly signal: AbortSignal;
  /** The time ran out. */
  readonly passed: () => boolean;
  /** What had to happen in time has happened: the signal follows only the others from now on. */
  lift(): void;
}

export function deadline(clock: Clock, ms: number, ...others: AbortSignal[]): Deadline {
  const late = new AbortController();
  const lifted = new AbortController();
  const signal = AbortSignal.any([late.signal, ...others]);
  void clock.sleep(ms, lifted.signal).then(() => {
    if (!lifted.signal.aborted) late.abort(new Error(`the deadline of ${ms} ms passed`));
  });
  return { signal, passed: () => late.signal.aborted, lift: () => lifted.abort() };
}

/** Waits for work that goes on without us when the signal aborts. */
export function abandonable<T>(work: Promise<T>, signal: AbortSignal, error: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(error());
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}
