import type { Clock, Logger } from "../catalogue/ports.js";
import { serverKey } from "../domain/ids.js";
import type { Relist } from "./ports.js";

export interface Reasking {
  /** Asks the server for its list again after `afterMs`; a sooner asking that is already due stands. */
  after(namespace: string, serverId: string, afterMs: number): void;
  forget(namespace: string, serverId: string): void;
  /** Ends all; resolves when none is under way. */
  stop(): Promise<void>;
}

interface Due {
  readonly atMs: number;
  readonly cancel: AbortController;
}

/** Second looks at servers, at most one due for each. What a look brings goes to the intake like any other listing. */
export function createReasking(deps: { relist: Relist; clock: Clock; logger: Logger }): Reasking {
  const { relist, clock, logger } = deps;
  const due = new Map<string, Due>();
  const running = new Set<Promise<void>>();
  let stopped = false;

  async function wait(namespace: string, serverId: string, afterMs: number, mine: Due): Promise<void> {
    const key = serverKey(namespace, serverId);
    await clock.sleep(afterMs, mine.cancel.signal);
    if (due.get(key) === mine) due.delete(key);
    if (mine.cancel.signal.aborted) return;
    try {
      await relist(namespace, serverId);
    } catch (err) {
      // The intake was told of the failure with the listing; here it only means that this look saw nothing.
      logger.debug({ namespace, server: serverId, err }, "a second look at a server failed");
    }
  }

  return {
    after(namespace, serverId, afterMs) {
      if (stopped) return;
      const key = serverKey(namespace, serverId);
      const atMs = clock.monotonic() + afterMs;
      const standing = due.get(key);
      if (standing && standing.atMs <= atMs) return;
      standing?.cancel.abort();
      const mine = { atMs, cancel: new AbortController() };
      due.set(key, mine);
      const run = wait(namespace, serverId, afterMs, mine).finally(() => running.delete(run));
      running.add(run);
    },
    forget(namespace, serverId) {
      const key = serverKey(namespace, serverId);
      due.get(key)?.cancel.abort();
      due.delete(key);
    },
    async stop() {
      stopped = true;
      for (const { cancel } of due.values()) cancel.abort();
      await Promise.all(running);
    },
  };
}
