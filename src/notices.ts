/** Why this replica acts with care now, for whoever lists servers and for the log. */
import type { Notice } from "./catalogue/api.js";
import type { Registry } from "./catalogue/registry.js";
import type { Clock } from "./catalogue/ports.js";
import type { SweepReport } from "./catalogue/sweep.js";
import type { Panic } from "./probe/panic.js";

const BRAKE_WORDS: Readonly<Record<string, string>> = {
  "clocks-disagree": "the clocks of the store and of this replica disagree",
  "chain-broken": "the log has just broken",
  "just-opened": "the store has just been opened",
  "store-away": "the store was away",
  "mass-due": "many leases ran out at once",
  draining: "leases that were held back are let go bit by bit",
};

export interface Notices {
  swept(partition: number, report: SweepReport): void;
  /** Some partition's brake holds leases back. */
  readonly braked: boolean;
  of(namespace: string): readonly Notice[];
}

export function createNotices(registry: () => Registry, panic: Panic, clock: Clock): Notices {
  const brakes = new Map<number, { readonly reason: string; readonly sinceMs: number; readonly due: number }>();

  function brake(partition: number): Notice[] {
    const on = brakes.get(partition);
    if (!on) return [];
    const message = `${on.due} leases that ran out are held back: ${BRAKE_WORDS[on.reason] ?? on.reason}`;
    return [{ kind: "brake", message, sinceMs: on.sinceMs }];
  }

  function panicking(): Notice[] {
    const { state } = panic;
    if (!state) return [];
    const message = `${state.bad} of ${state.servers} servers that this replica looks after stopped answering at once; it may be cut off itself, so their conditions are frozen`;
    return [{ kind: "panic", message, sinceMs: state.sinceMs }];
  }

  function healing(namespace: string): Notice[] {
    const partition = registry().partitionOf(namespace);
    if (partition.state.kind !== "growing") return [];
    // The monotonic clock counts fractions, which a time on the wire cannot have.
    const sinceMs = Math.round(clock.now() - (clock.monotonic() - (partition.chainBrokenAtMs ?? clock.monotonic())));
    const message = "the log broke: the last catalogue goes on being served, without tokens, until its servers have registered again";
    return [{ kind: "healing", message, sinceMs }];
  }

  return {
    swept(partition, { decision, due }) {
      // A brake that holds nothing back is no news.
      if (decision.brake === "off" || due === 0) return void brakes.delete(partition);
      brakes.set(partition, { reason: decision.reason, due, sinceMs: brakes.get(partition)?.sinceMs ?? clock.now() });
    },
    get braked() {
      return brakes.size > 0;
    },
    of(namespace) {
      const { index } = registry().partitionOf(namespace);
      return [...panicking(), ...brake(index), ...healing(namespace)];
    },
  };
}
