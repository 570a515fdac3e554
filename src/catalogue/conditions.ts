import { serverKey } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { Condition, ServerHeader, ServerRecord } from "../domain/server.js";
import type { Clock, Logger } from "./ports.js";
import { withCondition } from "./register/header.js";
import type { Decision, Writes } from "./writes.js";

/** What somebody saw of a server just now. */
export interface Seen {
  readonly reachable: Condition["status"];
  readonly listed: Condition["status"];
  readonly reason: string;
  readonly message: string;
}

/** A sight, and the registration that it is of: it says nothing about a newer one. */
interface Sight extends Seen {
  readonly registration: string;
}

function registrationOf(record: ServerRecord | undefined): string {
  const newest = record?.header.instances.at(-1);
  return newest ? `${newest.instanceId} ${newest.revision}` : "";
}

interface Slot {
  /** The newest sight that waits for its turn. */
  waiting: Sight | undefined;
}

/**
 * Publishes what is seen of servers: at most one revision per server and LIMITS.conditionEveryMs, always the newest sight,
 * and none when nothing published would change. A flapping server therefore yields few revisions.
 */
export class ConditionPublisher {
  readonly #slots = new Map<string, Slot>();
  readonly #stop = new AbortController();

  constructor(
    private readonly writesOf: (namespace: string) => Writes,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Returns at once; the publication follows when its turn comes. */
  publish(namespace: string, serverId: string, seen: Seen): void {
    const key = serverKey(namespace, serverId);
    const slot = this.#slots.get(key);
    const record = this.writesOf(namespace).partition.live().history.server(namespace, serverId)?.record;
    const waiting = { ...seen, registration: registrationOf(record) };
    if (slot) {
      slot.waiting = waiting;
      return;
    }
    const fresh: Slot = { waiting };
    this.#slots.set(key, fresh);
    void this.#run(key, namespace, serverId, fresh);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Publishes until nothing has waited for a whole interval; then the server's slot is given up. */
  async #run(key: string, namespace: string, serverId: string, slot: Slot): Promise<void> {
    while (slot.waiting && !this.#stop.signal.aborted) {
      const seen = slot.waiting;
      slot.waiting = undefined;
      try {
        await this.#commit(namespace, serverId, seen);
      } catch (error) {
        this.logger.warn(
          { namespace, server_id: serverId, err: error },
          "a condition could not be published; the next sight repeats it",
        );
      }
      await this.clock.sleep(LIMITS.conditionEveryMs, this.#stop.signal);
    }
    this.#slots.delete(key);
  }

  async #commit(namespace: string, serverId: string, seen: Sight): Promise<void> {
    const nowMs = this.clock.now();
    await this.writesOf(namespace).write(namespace, serverId, (record): Decision<null> => {
      const header = record && registrationOf(record) === seen.registration && headerAfter(record, seen, nowMs);
      if (!record || !header) return { kind: "keep", value: null };
      return {
        kind: "commit",
        step: { cause: "condition", next: { header, tools: record.tools }, leases: [] },
        value: null,
      };
    });
  }
}

/** The header after a sight; undefined when nothing that is published would change. */
function headerAfter(record: ServerRecord, seen: Seen, nowMs: number): ServerHeader | undefined {
  const { header } = record;
  const facts = { reason: seen.reason, message: seen.message, sinceMs: nowMs };
  const reachable = withCondition(header.conditions, { type: "Reachable", status: seen.reachable, ...facts });
  const conditions = withCondition(reachable, { type: "Listed", status: seen.listed, ...facts });
  const availability = seen.reachable === "true" ? "available" : "unavailable";
  const same =
    availability === header.availability &&
    conditions.length === header.conditions.length &&
    conditions.every((c, i) => c.status === header.conditions[i]?.status && c.reason === header.conditions[i]?.reason);
  return same ? undefined : { ...header, conditions, availability };
}
