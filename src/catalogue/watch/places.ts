import { EVERYBODY, type Principal } from "../../domain/identity.js";
import { quotaExceeded } from "../../domain/quotas.js";
import type { WatchSink } from "../api.js";

/** A caller that was refused a watch may have another replica to go to; all places here are seldom free again at once. */
const RETRY_MS = 1_000;

export interface PlaceLimits {
  /** Of this replica. */
  readonly all: number;
  /** Of one identified principal; callers that say nothing of themselves share only `all`. */
  readonly perPrincipal: number;
}

/** The places for watches on one replica. */
export class WatchPlaces {
  #taken = 0;
  readonly #by = new Map<string, number>();

  constructor(private readonly limits: PlaceLimits) {}

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place and answers how to give it back; giving it back twice is giving it back once. Throws Fault QUOTA_EXCEEDED. */
  take({ id }: Principal): () => void {
    const { all, perPrincipal } = this.limits;
    if (this.#taken >= all) {
      const message = `this replica may have ${all === 1 ? "1 watcher, and has it" : `${all} watchers, and has them all`}; try another one, or later`;
      throw quotaExceeded("watchers", all, this.#taken + 1, message, RETRY_MS);
    }
    const own = this.#by.get(id) ?? 0;
    if (id !== EVERYBODY.id && own >= perPrincipal) {
      const message =
        `${id} may have ${perPrincipal === 1 ? "1 watch" : `${perPrincipal} watches`} on a replica, and this would be one more: end some, share one among several ` +
        "readers, or ask the registry's operator for more (--max-watchers-per-principal)";
      throw quotaExceeded("watchers-per-principal", perPrincipal, own + 1, message, RETRY_MS, { principal: id });
    }
    this.#taken++;
    this.#by.set(id, own + 1);
    let held = true;
    return () => {
      if (held) this.#giveBack(id);
      held = false;
    };
  }

  #giveBack(id: string): void {
    this.#taken--;
    const left = (this.#by.get(id) ?? 1) - 1;
    if (left === 0) this.#by.delete(id);
    else this.#by.set(id, left);
  }
}

/** A watch that the registry ends gives its place back. */
export function leaving(sink: WatchSink, leave: () => void): WatchSink {
  return {
    write: (message) => sink.write(message),
    fail(fault) {
      leave();
      sink.fail(fault);
    },
  };
}
