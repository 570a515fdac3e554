/**
 * Tells registrations that the process is about to end, without taking the end into its own hands: handlers of the
 * program run as ever, and where there are none the signal does what it would have done.
 */

type Leave = () => Promise<void>;
type Ending = "SIGTERM" | "SIGINT";

interface Watch {
  readonly leaving: Set<Leave>;
  stop: (() => void) | undefined;
}

const KEY = Symbol.for("toolcrib.client.signals");
const ENDINGS: readonly Ending[] = ["SIGTERM", "SIGINT"];

/** Runs `leave` once on SIGTERM, SIGINT or when the process has nothing left to do; returns how to take it back. */
export function onProcessEnd(leave: Leave): () => void {
  const watch = processWatch();
  watch.leaving.add(leave);
  watch.stop ??= listen(watch);
  return () => {
    watch.leaving.delete(leave);
    if (watch.leaving.size > 0) return;
    watch.stop?.();
    watch.stop = undefined;
  };
}

/** One for the whole process, even if two copies of this module are loaded: each would take the other for a handler of the program. */
function processWatch(): Watch {
  const holder = globalThis as { [KEY]?: Watch };
  holder[KEY] ??= { leaving: new Set(), stop: undefined };
  return holder[KEY];
}

function listen(watch: Watch): () => void {
  const idle = (): void => void leaveAll(watch);
  const listeners = ENDINGS.map((signal) => {
    const heard = (): void => {
      // Nobody else listens: then the program counts on the signal's default, which our listening switched off.
      const alone = process.listenerCount(signal) === 1;
      void leaveAll(watch).finally(() => {
        process.removeListener(signal, heard);
        if (alone && process.listenerCount(signal) === 0) process.kill(process.pid, signal);
      });
    };
    process.prependListener(signal, heard);
    return { signal, heard };
  });
  process.once("beforeExit", idle);
  return () => {
    process.removeListener("beforeExit", idle);
    for (const { signal, heard } of listeners) process.removeListener(signal, heard);
  };
}

async function leaveAll(watch: Watch): Promise<void> {
  await Promise.allSettled([...watch.leaving].map((leave) => leave()));
}
