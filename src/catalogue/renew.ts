import { invalidRequest } from "../domain/fault.js";
import { mayChange, type Principal } from "../domain/identity.js";
import { leasePartition, renewAfterMs } from "../domain/lease.js";
import { LIMITS } from "../domain/limits.js";
import type { Instance, ServerHeader } from "../domain/server.js";
import type { RenewOutput, RenewState } from "./api.js";
import type { Partition } from "./partition.js";
import type { RenewOutcome } from "./ports.js";

export interface RenewAsk {
  readonly leaseId: string;
  readonly setDigest: string;
}

/** Renews the leases that belong to the namespace; one bad lease never spoils the others (P6). */
export async function renew(
  partition: Partition,
  namespace: string,
  asks: readonly RenewAsk[],
  caller: Principal,
): Promise<RenewOutput[]> {
  if (asks.length > LIMITS.renewLeases) {
    const description = `at most ${LIMITS.renewLeases} leases in one call; these are ${asks.length}`;
    throw invalidRequest([{ field: "leases", description }]);
  }
  const { history } = partition.live();
  // A lease of another tenant or principal is unknown here, and must not be kept alive from here.
  const isOwn = ({ leaseId }: RenewAsk): boolean => {
    const at = history.serverOfLease(leaseId);
    if (leasePartition(leaseId) !== partition.index) return false;
    if (at === undefined) return true;
    const owner = history.server(at.namespace, at.serverId)?.record.header.owner ?? "";
    return at.namespace === namespace && mayChange(caller, owner, namespace, at.serverId);
  };
  const own = asks.filter(isOwn);
  const outcomes = new Map<string, RenewOutcome>();
  const ids = own.map((a) => a.leaseId);
  const answers = ids.length === 0 ? [] : await partition.deps.store.leases.renew(ids);
  ids.forEach((id, i) => outcomes.set(id, answers[i] ?? "unknown"));
  return asks.map((ask) => {
    const state = stateOf(partition, namespace, ask, outcomes.get(ask.leaseId) ?? "unknown");
    // Another's lease is unknown here, its length included.
    const ttlMs = outcomes.has(ask.leaseId) ? ttlOf(partition, namespace, ask.leaseId) : LIMITS.leaseDefaultMs;
    return { leaseId: ask.leaseId, state, renewAfterMs: renewAfterMs(ttlMs, partition.deps.random.next()) };
  });
}

function stateOf(partition: Partition, namespace: string, ask: RenewAsk, outcome: RenewOutcome): RenewState {
  if (outcome === "unknown") return "unknown-lease";
  if (outcome === "ended") return "deregistered";
  const { history } = partition.live();
  const owner = history.serverOfLease(ask.leaseId);
  const header = owner && history.server(namespace, owner.serverId)?.record.header;
  const instance = header?.instances.find((i) => i.leaseId === ask.leaseId);
  // The store knows the lease, so its commit is in the log and this replica has only not folded it yet.
  if (!header || !instance) return "ok";
  return compareSets(header, instance, ask.setDigest);
}

function compareSets(header: ServerHeader, instance: Instance, believed: string): RenewState {
  if (believed !== "" && believed !== instance.setDigest) return "register-again";
  if (instance.setDigest === header.setDigest) {
    return header.conditions.some((c) => c.reason === "DIGEST_MISMATCH") ? "register-again" : "ok";
  }
  const current = header.instances.some((i) => i.setDigest === header.setDigest);
  return current ? "superseded" : "register-again";
}

function ttlOf(partition: Partition, namespace: string, leaseId: string): number {
  const { history } = partition.live();
  const owner = history.serverOfLease(leaseId);
  const header = owner && history.server(namespace, owner.serverId)?.record.header;
  return header?.instances.find((i) => i.leaseId === leaseId)?.ttlMs || LIMITS.leaseDefaultMs;
}
