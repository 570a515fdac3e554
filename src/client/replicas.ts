import { RegistryConnection } from "./connection.js";
import { RegistryError, registryError } from "./registry-error.js";
import type { Target } from "./target.js";
import type { Timers } from "./timers.js";

/** Connections to the replicas of one registry: a call that one cannot take goes to the next, within its deadline. */
export class Replicas {
  readonly #targets: readonly [Target, ...Target[]];
  readonly #timers: Timers;
  readonly #connections = new Map<Target, RegistryConnection>();
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
      try {
        return await ask(this.#connection(at), Math.max(1, until - this.#timers.now()));
      } catch (error) {
        const known = registryError(error);
        if (!isReplicas(known)) throw known;
        // Another call may have moved on already.
        if (this.#at === at) this.#at++;
        if (tried >= this.#targets.length || this.#timers.now() >= until) throw known;
      }
    }
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }

  #connection(at: number): RegistryConnection {
    const target = this.#targets[at % this.#targets.length] ?? this.#targets[0];
    const known = this.#connections.get(target);
    if (known) return known;
    const connection = new RegistryConnection(target);
    this.#connections.set(target, connection);
    return connection;
  }
}

/** Whether another replica may answer what this one could not. */
function isReplicas({ code, reason }: RegistryError): boolean {
  return code === "UNAVAILABLE" || (code === "DEADLINE_EXCEEDED" && reason === "");
}
