/** Work on what a registrant wrote, bounded in time. */
import { createContext, Script } from "node:vm";

const slot: { work: () => unknown } = { work: () => undefined };
const context = createContext({ run: () => slot.work() });
const script = new Script("run()");

/**
 * Runs synchronous work and ends it where it stands when it takes longer than `ms`: throws then, and whatever the work was changing
 * must not be used any more. Everything else waits meanwhile, so `ms` is small.
 */
export function within<T>(ms: number, work: () => T): T {
  let result: { readonly value: T } | undefined;
  slot.work = () => {
    result = { value: work() };
  };
  try {
    script.runInContext(context, { timeout: ms });
  } finally {
    slot.work = () => undefined;
  }
  if (!result) throw new Error("the work ended without a result");
  return result.value;
}
