import { serverKey } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import {
  type Availability,
  BREAKER_CLOSED,
  type Condition,
  type PublishedBreaker,
  type ServerHeader,
  type ServerRecord,
} from "../domain/server.js";
import type { Clock, Logger } from "./ports.js";
import { withCondition } from "./register/header.js";
import type { ConditionFact, SeenHealth } from "./writer-port.js";
import type { Decision, Writes } from "./writes.js";

/** What somebody saw of a server just now. Parts that nobody speaks of stay as they are. */
export interface Seen {
  readonly listed?: ConditionFact;
  readonly health?: SeenHealth;
}

/** A sight, and the registration that it is of: it says nothing about a newer one. */
interface Sight extends Seen {
  readonly registration: string;
  /** Monotonic. */
  readonly atMs: number;
}

/** A sight waits for its turn no longer than that; one that did is as old as the sleep of the whole process. */
const SIGHT_MAX_MS = 2 * LIMITS.conditionEveryMs;

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
    const record = this.#record(namespace, serverId);
    const registration = registrationOf(record);
    if (slot) {
      const before = slot.waiting?.registration === registration ? slot.waiting : undefined;
      slot.waiting = { ...before, ...seen, registration, atMs: this.clock.monotonic() };
      return;
    }
    // The common case: every look at a healthy server says what everybody knows.
    if (record && !headerAfter(record, seen, 0)) return;
    const fresh: Slot = { waiting: { ...seen, registration, atMs: this.clock.monotonic() } };
    this.#slots.set(key, fresh);
    void this.#run(key, namespace, serverId, fresh);
  }

  stop(): void {
    this.#stop.abort();
  }

  #record(namespace: string, serverId: string): ServerRecord | undefined {
    const { partition } = this.writesOf(namespace);
    return partition.state.kind === "starting" ? undefined : partition.live().history.server(namespace, serverId)?.record;
  }

  /**
   * Publishes until nothing new has waited for a whole interval; then the server's slot is given up. Sights that change nothing do not
   * keep it: the next one that does must not wait.
   */
  async #run(key: string, namespace: string, serverId: string, slot: Slot): Promise<void> {
    while (slot.waiting && !this.#stop.signal.aborted) {
      const seen = slot.waiting;
      slot.waiting = undefined;
      try {
        if (!(await this.#commit(namespace, serverId, seen))) continue;
      } catch (error) {
        this.logger.warn(
          { namespace, server: serverId, err: error },
          "a condition could not be published; the next sight repeats it",
        );
      }
      await this.clock.sleep(LIMITS.conditionEveryMs, this.#stop.signal);
    }
    this.#slots.delete(key);
  }

  /** Whether there was something to publish. */
  async #commit(namespace: string, serverId: string, { registration, atMs, listed, health }: Sight): Promise<boolean> {
    const nowMs = this.clock.now();
    const result = await this.writesOf(namespace).write(namespace, serverId, (record): Decision<null> => {
      const late = this.clock.monotonic() - atMs > SIGHT_MAX_MS;
      const seen: Seen = late ? {} : { ...(listed && { listed }), ...(health?.stillTrue() && { health }) };
      const header = record && registrationOf(record) === registration && headerAfter(record, seen, nowMs);
      if (!record || !header) return { kind: "keep", value: null };
      return {
        kind: "commit",
        step: { cause: "condition", next: { header, tools: record.tools }, leases: [] },
        value: null,
      };
    });
    return result.kind === "committed";
  }
}

/** Held by health alone, and said only while they hold. */
const PASSING: ReadonlySet<Condition["type"]> = new Set(["AuthRequired", "Slow", "Flapping", "Draining"]);

/** The header after a sight; undefined when nothing that is published would change. Nobody looks at an isolated server. */
function headerAfter(record: ServerRecord, seen: Seen, nowMs: number): ServerHeader | undefined {
  const { header } = record;
  if (header.breaker.kind === "isolated") return undefined;
  const { health } = seen;
  const next: ServerHeader = {
    ...header,
    conditions: conditionsAfter(header.conditions, seen, nowMs),
    ...(health && {
      availability: health.availability,
      breaker: breakerAfter(header.breaker, health, nowMs),
      instances: instancesAfter(header.instances, health.instances),
    }),
  };
  return samePublished(header, next) ? undefined : next;
}

function conditionsAfter(before: readonly Condition[], seen: Seen, nowMs: number): readonly Condition[] {
  const facts = [...(seen.listed ? [seen.listed] : []), ...(seen.health?.conditions ?? [])];
  const held = new Set(facts.map((f) => f.type));
  const kept = seen.health ? before.filter((c) => !PASSING.has(c.type) || held.has(c.type)) : before;
  return facts.reduce((conditions, fact) => withCondition(conditions, { ...fact, sinceMs: nowMs }), kept);
}

function breakerAfter(before: PublishedBreaker, { open }: SeenHealth, nowMs: number): PublishedBreaker {
  if (!open) return BREAKER_CLOSED;
  return { kind: "open", sinceMs: before.kind === "open" ? before.sinceMs : nowMs, ...open };
}

function instancesAfter(instances: ServerHeader["instances"], seen: ReadonlyMap<string, Availability>) {
  return instances.map((instance) => {
    const availability = seen.get(instance.instanceId) ?? instance.availability;
    return availability === instance.availability ? instance : { ...instance, availability };
  });
}

/** A failed trial is told, because it moves the next one: replicas that do not look themselves tell callers when that is. */
function samePublished(a: ServerHeader, b: ServerHeader): boolean {
  return (
    a.availability === b.availability &&
    a.breaker.kind === b.breaker.kind &&
    attemptOf(a.breaker) === attemptOf(b.breaker) &&
    a.conditions.length === b.conditions.length &&
    a.conditions.every((c, i) => c.status === b.conditions[i]?.status && c.reason === b.conditions[i]?.reason) &&
    a.instances.every((instance, i) => instance.availability === b.instances[i]?.availability)
  );
}

function attemptOf(breaker: PublishedBreaker): number {
  return breaker.kind === "open" ? breaker.attempt : 0;
}
