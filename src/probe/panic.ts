/** One replica's view of all servers that it looks after: whether it is they that fail, or the replica that is cut off. */
import type { Clock, Logger } from "../catalogue/ports.js";
import { judgePanic, type Newest } from "../domain/health/panic.js";

/** A doubt that is not resolved by then is dropped: the servers that nobody could look at are slow, not bad. */
const DOUBT_MS = 30_000;

export interface PanicState {
  /** ms since the epoch. */
  readonly sinceMs: number;
  readonly bad: number;
  readonly servers: number;
}

export type Fall =
  | "fall"
  /** Not yet: other servers are being looked at. */
  | "wait"
  | "panic";

export interface Panic {
  /** The newest look at a server whose breaker is closed; undefined: it is down, gone, or looked after elsewhere. */
  note(key: string, newest: Newest | undefined): void;
  /** Whether a server that turned bad at `badSinceMs` (monotonic) may be called down. */
  mayFall(badSinceMs: number): Fall;
  /** Undefined: no panic. While there is one, nothing is published and no breaker opens. */
  readonly state: PanicState | undefined;
  /** Called when it is in doubt whether the registry is cut off, with the time since when a look counts. */
  onDoubt(look: (sinceMs: number) => void): () => void;
}

export interface PanicDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onChange?: (panicking: boolean) => void;
}

export function createPanic({ clock, logger, onChange }: PanicDeps): Panic {
  const newest = new Map<string, Newest>();
  const doubters = new Set<(sinceMs: number) => void>();
  let state: PanicState | undefined;
  let startedAtMs = 0;

  function count(): { bad: number; servers: number } {
    let bad = 0;
    for (const n of newest.values()) if (n.bad) bad++;
    return { bad, servers: newest.size };
  }

  function begin(): void {
    startedAtMs = clock.monotonic();
    state = { sinceMs: clock.now(), ...count() };
    logger.error(
      { ...state },
      "most servers turned bad at once, so this replica may be cut off itself: their conditions stay as they are until at least " +
        "half of them answer again; check its network, its DNS and its egress policy",
    );
    onChange?.(true);
  }

  function end(): void {
    state = undefined;
    logger.warn({ ...count(), seconds: Math.round((clock.monotonic() - startedAtMs) / 1_000) }, "the panic is over");
    onChange?.(false);
  }

  return {
    note(key, look) {
      if (look) newest.set(key, look);
      else newest.delete(key);
      if (!state) return;
      const { bad, servers } = count();
      if (bad * 2 <= servers) end();
      else state = { ...state, bad, servers };
    },
    mayFall(badSinceMs) {
      if (state) return "panic";
      const judgement = judgePanic(newest.values(), badSinceMs);
      if (judgement === "panic") {
        begin();
        return "panic";
      }
      if (judgement === "calm" || clock.monotonic() - badSinceMs > DOUBT_MS) return "fall";
      for (const look of doubters) look(badSinceMs);
      return "wait";
    },
    get state() {
      return state;
    },
    onDoubt(look) {
      doubters.add(look);
      return () => void doubters.delete(look);
    },
  };
}
