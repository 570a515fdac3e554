import { decideSweep, type SweepDecision } from "../domain/health/brake.js";
import { LIMITS } from "../domain/limits.js";
import { serverKey } from "../domain/ids.js";
import type { DueLease } from "./ports.js";
import { withoutInstances } from "./removal.js";
import type { Decision, Writes } from "./writes.js";

/** Due leases looked at in one sweep. */
const SWEEP_LEASES = 500;
/** Store time and our own clock may differ by this much since the last sweep; more means that one of them jumped. */
const CLOCK_TOLERANCE_MS = 2_000;
/** How long an outage, a broken chain or a fresh start holds the brake: every registrant renews within its TTL. */
const HELD_MS = 60_000;

export interface SweepReport {
  readonly decision: SweepDecision;
  readonly leases: number;
  /** Leases that had run out. */
  readonly due: number;
  readonly expired: number;
}

/** Ends leases that ran out, under the brake. Any replica may sweep; the commit refuses a lease that was renewed (P6). */
export class Sweeper {
  #last: { storeMs: number; ownMs: number } | undefined;

  constructor(
    private readonly writes: Writes,
    /** Monotonic ms when the embedded store was opened; undefined for stores that outlive us. */
    private readonly openedAtMs: number | undefined,
  ) {}

  async sweep(): Promise<SweepReport> {
    const { partition } = this.writes;
    const { leases } = partition.deps.store;
    const { nowMs, total, dueTotal, due } = await leases.due(SWEEP_LEASES);
    const ownMs = partition.deps.clock.monotonic();
    const clocksAgree = this.#clocksAgree(nowMs, ownMs);
    this.#last = { storeMs: nowMs, ownMs };
    const decision = decideSweep({ total, dueTotal, due, clocksAgree, ...this.#circumstances(ownMs, due) });
    if (decision.extend.length > 0) await leases.extend(decision.extend);
    const expired = await this.#expire(due.filter((d) => decision.expire.includes(d.leaseId)));
    return { decision, leases: total, due: dueTotal, expired };
  }

  /** The first sweep has nothing to compare with, so it only takes the time. */
  #clocksAgree(storeMs: number, ownMs: number): boolean {
    if (!this.#last) return false;
    return Math.abs(storeMs - this.#last.storeMs - (ownMs - this.#last.ownMs)) <= CLOCK_TOLERANCE_MS;
  }

  #circumstances(ownMs: number, due: readonly DueLease[]) {
    const shortestMs = Math.min(LIMITS.leaseDefaultMs, ...due.map((d) => d.ttlMs));
    const { lastOutage, chainBrokenAtMs } = this.writes.partition;
    const recent = (atMs: number | undefined): boolean => atMs !== undefined && ownMs - atMs < HELD_MS;
    return {
      storeAwayLongerThanHalfTtl: recent(lastOutage?.endedAtMs) && (lastOutage?.lastedMs ?? 0) > shortestMs / 2,
      chainJustBroken: recent(chainBrokenAtMs),
      justOpened: recent(this.openedAtMs),
    };
  }

  async #expire(due: readonly DueLease[]): Promise<number> {
    const servers = new Map<string, DueLease[]>();
    for (const lease of due) {
      const key = serverKey(lease.namespace, lease.serverId);
      servers.set(key, [...(servers.get(key) ?? []), lease]);
    }
    let expired = 0;
    for (const group of servers.values()) expired += await this.#expireOf(group);
    return expired;
  }

  /** Ends the due leases of one server in one revision. */
  async #expireOf(due: readonly DueLease[]): Promise<number> {
    const { namespace, serverId } = due[0] as DueLease;
    let dropped: string[] = [];
    const result = await this.writes.write(namespace, serverId, (record): Decision<null> => {
      const held = new Set(record?.header.instances.map((i) => i.leaseId));
      dropped = due.map((d) => d.leaseId).filter((id) => held.has(id));
      if (!record || dropped.length === 0) return { kind: "keep", value: null };
      const step = withoutInstances(record, dropped, "expire", false);
      return { kind: "commit", step: { ...step, requireDue: dropped }, value: null };
    });
    return result.kind === "committed" ? dropped.length : 0;
  }
}
