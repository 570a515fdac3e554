import type { Timers } from "../timers.js";

/** What a promise answers within `ms`; undefined when it takes longer. It goes on either way. */
export function within<T>(timers: Timers, ms: number, promise: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const cancel = timers.after(Math.max(0, ms), () => resolve(undefined));
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
