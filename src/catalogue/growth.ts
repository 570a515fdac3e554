import type { History } from "./history.js";
import { serverKey } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";

/**
 * Which servers of the old catalogue a new one still waits for after a broken chain: each until it is back, or until its
 * old lease plus one TTL has passed. While any is waited for, the old catalogue goes on serving, marked stale.
 */
export class Growth {
  /** Server key → monotonic ms at which it is no longer waited for. */
  readonly #waiting = new Map<string, { namespace: string; serverId: string; untilMs: number }>();

  constructor(old: readonly History[], nowMs: number) {
    for (const [namespace, ns] of old.flatMap((h) => [...h.namespaces])) {
      for (const view of ns.ordered) {
        // Standing servers are committed again by the replicas that held them, so a short while is enough.
        const ttlMs = Math.max(LIMITS.leaseMinMs, ...view.record.header.instances.map((i) => i.ttlMs));
        const { serverId } = view;
        this.#waiting.set(serverKey(namespace, serverId), { namespace, serverId, untilMs: nowMs + 2 * ttlMs });
      }
    }
  }

  /** Whether the new catalogue is as complete as it is going to be. */
  complete(fresh: History, nowMs: number): boolean {
    for (const [key, { namespace, serverId, untilMs }] of this.#waiting) {
      if (untilMs <= nowMs || fresh.server(namespace, serverId)) this.#waiting.delete(key);
    }
    return this.#waiting.size === 0;
  }
}
