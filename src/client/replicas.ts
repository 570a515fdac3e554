import { RegistryConnection } from "./connection.js";
import { type RegistryError, registryError } from "./registry-error.js";
import type { Target } from "./target.js";
import type { Timers } from "./timers.js";

/** Deadlines in a row that passed without a word, after which a connection is taken for dead. */
const SILENT_CALLS = 3;

interface Held {
  readonly connection: RegistryConnection;
  silent: number;
}

/** Connections to the replicas of one registry: a call that one cannot take goes to the next, within its deadline. */
export class Replicas {
  readonly #targets: readonly [Target, ...Target[]];
  readonly #timers: Timers;
  readonly #connections = new Map<Target, Held>();
  #at = 0;

  constructor(targets: readonly [Target, ...Target[]], timers: Timers) {
    this.#targets = targets;
    this.#timers = timers;
  }

  /** Rejects with the RegistryError of the last replica asked. Only for calls that may be made twice. */
  async call<T>(timeoutMs: number, ask: (registry: RegistryConnection, timeoutMs: number) => Promise<T>): Promise<T> {
    const until = this.#timers.now() + timeoutMs;
    for (let tried = 1; ; tried++) {
      const at = this.#at;
      const target = this.#targets[at % this.#targets.length] ?? this.#targets[0];
      const held = this.#held(target);
      try {
        const answer = await ask(held.connection, Math.max(1, until - this.#timers.now()));
        held.silent = 0;
        return answer;
      } catch (error) {
        const known = registryError(error);
        this.#judge(target, held, known);
        if (!isReplicas(known)) throw known;
        // Another call may have moved on already.
        if (this.#at === at) this.#at++;
        if (tried >= this.#targets.length || this.#timers.now() >= until) throw known;
      }
    }
  }

  close(): void {
    for (const { connection } of this.#connections.values()) connection.close();
    this.#connections.clear();
  }

  #held(target: Target): Held {
    const known = this.#connections.get(target);
    if (known) return known;
    const held = { connection: new RegistryConnection(target), silent: 0 };
    this.#connections.set(target, held);
    return held;
  }

  /** A channel that lost its peer waits before it dials again, and one that went dead never does: the next call gets another. */
  #judge(target: Target, held: Held, { code, reason }: RegistryError): void {
    held.silent = code === "DEADLINE_EXCEEDED" && reason === "" ? held.silent + 1 : 0;
    const lost = code === "UNAVAILABLE" && reason === "";
    if ((!lost && held.silent < SILENT_CALLS) || this.#connections.get(target) !== held) return;
    this.#connections.delete(target);
    held.connection.close();
  }
}

/** Whether another replica may answer what this one could not. */
function isReplicas({ code, reason }: RegistryError): boolean {
  return code === "UNAVAILABLE" || (code === "DEADLINE_EXCEEDED" && reason === "");
}
