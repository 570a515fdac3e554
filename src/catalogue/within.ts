import type { Clock } from "./ports.js";

export type Within<T> = { readonly kind: "done"; readonly value: T } | { readonly kind: "late" };

/**
 * Waits for `work` at most `ms`. Rejects when the work rejects in time. Late work goes on, and its failure is no longer
 * anybody's: whoever started it must make sure that it is told somewhere.
 */
export async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<Within<T>> {
  const timer = new AbortController();
  const late = clock.sleep(Math.max(0, ms), timer.signal).then((): Within<T> => ({ kind: "late" }));
  try {
    return await Promise.race([work.then((value): Within<T> => ({ kind: "done", value })), late]);
  } finally {
    timer.abort();
  }
}
