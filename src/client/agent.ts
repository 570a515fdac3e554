import { durationMs } from "@bufbuild/protobuf/wkt";
import { LIMITS } from "../domain/limits.js";
import type { RenewResult } from "../gen/toolcrib/v1/registry_service_pb.js";
import { RegistryConnection } from "./connection.js";
import type { Target } from "./target.js";
import type { RandomSource, Timers } from "./timers.js";
import { backoffMs } from "./timers.js";

/** A lease as its holder knows it. */
export interface HeldLease {
  readonly leaseId: string;
  readonly setDigest: string;
  readonly ttlMs: number;
  /** When to renew, on the agent's clock. */
  readonly dueAt: number;
}

/** Who holds a lease and wants it renewed. */
export interface LeaseHolder {
  held(): HeldLease | undefined;
  /** The registry answered; `renewAfterMs` is 0 where it named no time. */
  renewed(lease: HeldLease, state: RenewResult["state"], renewAfterMs: number): void;
  /** The registry could not be asked; it is tried again after about `delayMs`. */
  missed(error: Error, delayMs: number): void;
}

/**
 * One per registry and namespace in a process: holds the connection and renews the leases of all registrations in one
 * call, at the pace that the registry names.
 */
export class RegistryAgent {
  readonly connection: RegistryConnection;
  readonly namespace: string;
  readonly timers: Timers;
  readonly #random: RandomSource;
  readonly #holders = new Set<LeaseHolder>();
  readonly #onEmpty: () => void;
  #cancelTimer: (() => void) | undefined;
  #renewing = false;
  #failures = 0;

  constructor(target: Target, namespace: string, timers: Timers, random: RandomSource, onEmpty: () => void) {
    this.connection = new RegistryConnection(target);
    this.namespace = namespace;
    this.timers = timers;
    this.#random = random;
    this.#onEmpty = onEmpty;
  }

  join(holder: LeaseHolder): void {
    this.#holders.add(holder);
  }

  /** The last one to leave closes the connection. */
  leave(holder: LeaseHolder): void {
    if (!this.#holders.delete(holder) || this.#holders.size > 0) return;
    this.#cancelTimer?.();
    this.connection.close();
    this.#onEmpty();
  }

  /** To be called whenever a holder's lease came, went or got another due time. */
  reschedule(): void {
    if (this.#renewing) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const due = this.#leases().map(([, lease]) => lease.dueAt);
    if (due.length > 0) this.#wakeAfter(Math.max(0, Math.min(...due) - this.timers.now()));
  }

  #wakeAfter(ms: number): void {
    this.#cancelTimer = this.timers.after(ms, () => void this.#renewAll());
  }

  #leases(): [LeaseHolder, HeldLease][] {
    return [...this.#holders].flatMap((holder): [LeaseHolder, HeldLease][] => {
      const lease = holder.held();
      return lease ? [[holder, lease]] : [];
    });
  }

  async #renewAll(): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    const leases = this.#leases();
    let failed = false;
    for (let at = 0; at < leases.length; at += LIMITS.renewLeases) {
      failed = !(await this.#renewSome(leases.slice(at, at + LIMITS.renewLeases))) || failed;
    }
    this.#renewing = false;
    this.#failures = failed ? this.#failures + 1 : 0;
    if (this.#holders.size === 0) return;
    if (failed) this.#wakeAfter(Math.min(backoffMs(this.#failures, this.#random), shortestTtl(leases) / 6));
    else this.reschedule();
  }

  /**
   * False when the call failed. A lease outlives several missed renewals, and one that did not outlive them answers
   * UNKNOWN_LEASE once the registry is back.
   */
  async #renewSome(leases: readonly [LeaseHolder, HeldLease][]): Promise<boolean> {
    const wanted = leases.map(([, { leaseId, setDigest }]) => ({ leaseId, setDigest }));
    try {
      const answer = await this.connection.renew(
        { namespace: this.namespace, leases: wanted },
        { timeoutMs: Math.min(10_000, Math.max(1_000, shortestTtl(leases) / 3)) },
      );
      answer.results.forEach((result, i) => {
        const [holder, lease] = leases[i] ?? [];
        if (!holder || !lease) return;
        holder.renewed(lease, result.state, result.renewAfter ? durationMs(result.renewAfter) : 0);
      });
      return true;
    } catch (error) {
      const delayMs = shortestTtl(leases) / 3;
      for (const [holder] of leases) holder.missed(error instanceof Error ? error : new Error(String(error)), delayMs);
      return false;
    }
  }
}

/** Of several leases the one that ends first sets the pace. */
function shortestTtl(leases: readonly [LeaseHolder, HeldLease][]): number {
  return Math.min(...leases.map(([, lease]) => lease.ttlMs));
}

const shared = new WeakMap<Timers, Map<string, RegistryAgent>>();

/** The process's agent for a registry and namespace; made on first use, gone when its last registration leaves. */
export function agentFor(target: Target, namespace: string, timers: Timers, random: RandomSource): RegistryAgent {
  const agents = shared.get(timers) ?? new Map<string, RegistryAgent>();
  shared.set(timers, agents);
  const key = `${target.tls ? "tls " : ""}${target.address} ${namespace}`;
  const known = agents.get(key);
  if (known) return known;
  const agent = new RegistryAgent(target, namespace, timers, random, () => agents.delete(key));
  agents.set(key, agent);
  return agent;
}
