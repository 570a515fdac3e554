import type { RegisterInput } from "../api.js";
import { sortedSet } from "../../domain/filter.js";
import { sameProbing } from "../../domain/health/probing.js";
import { LIMITS } from "../../domain/limits.js";
import { BREAKER_CLOSED } from "../../domain/server.js";
import type { Condition, Instance, PublishedBreaker, RejectedTool, ServerHeader, ServerRecord } from "../../domain/server.js";

/** A standing registration without an instance id has this one: registering it again updates it. */
export const STANDING_INSTANCE = "standing";

export function instanceIdOf(input: RegisterInput): string {
  return input.instanceId || (input.retention.kind === "standing" ? STANDING_INSTANCE : "");
}

export function ttlOf(input: RegisterInput): number {
  return input.retention.kind === "standing" ? 0 : (input.retention.ttlMs ?? LIMITS.leaseDefaultMs);
}

/** The instance as this Register leaves it. Revision 0: the revision of the commit that carries it. */
export function nextInstance(
  input: RegisterInput,
  known: Instance | undefined,
  leaseId: string,
  setDigest: string,
  nowMs: number,
): Instance {
  return {
    instanceId: instanceIdOf(input),
    leaseId,
    endpoint: input.endpoint,
    transport: input.transport,
    setDigest,
    ttlMs: ttlOf(input),
    registeredAtMs: known?.registeredAtMs ?? nowMs,
    revision: 0,
    requestId: input.requestId,
    introspect: input.offer.kind === "introspect",
    credential: input.credential,
    sharePrivate: input.sharePrivate,
    // A registration is news from the server itself: it is there until a probe says otherwise.
    availability: "available",
    probing: input.probing,
  };
}

/** Whether a Register would leave the instance as it is. */
export function sameInstance(a: Instance, b: Instance): boolean {
  return (
    a.leaseId === b.leaseId &&
    a.endpoint === b.endpoint &&
    a.transport === b.transport &&
    a.setDigest === b.setDigest &&
    a.ttlMs === b.ttlMs &&
    a.introspect === b.introspect &&
    a.credential === b.credential &&
    a.sharePrivate === b.sharePrivate &&
    sameProbing(a.probing, b.probing)
  );
}

/** Everything of the new header that this Register decides; the rest depends on the offer. */
export interface OfferPart {
  readonly setDigest: string;
  readonly rejected: readonly RejectedTool[];
  readonly rejectedCount: number;
  readonly pending: boolean;
  readonly conditions: readonly Condition[];
  readonly availability: ServerHeader["availability"];
  readonly protocolVersion: string;
  readonly listedAtMs: number;
}

export function nextHeader(
  input: RegisterInput,
  namespace: string,
  owner: string,
  instances: readonly Instance[],
  offer: OfferPart,
  before: PublishedBreaker,
): ServerHeader {
  return {
    namespace,
    serverId: input.serverId,
    title: input.title,
    tags: sortedSet(input.tags),
    source: input.offer.kind === "introspect" ? "introspected" : "declared",
    // Any standing instance keeps the server; only a server of leased instances alone can expire.
    retention: instances.some((i) => i.leaseId === "") ? "standing" : "leased",
    instances,
    owner,
    ...offer,
    ...breakerAfter(offer.availability, before),
  };
}

/** Only its operator puts an isolated server back. A server that comes with its tools closes its breaker; probes say if it should not. */
function breakerAfter(
  availability: ServerHeader["availability"],
  before: PublishedBreaker,
): Pick<ServerHeader, "availability" | "breaker"> {
  if (before.kind === "isolated") return { availability: "unavailable", breaker: before };
  return { availability, breaker: availability === "available" ? BREAKER_CLOSED : before };
}

/** The newest Register last. */
export function withInstance(record: ServerRecord | undefined, instance: Instance): readonly Instance[] {
  const others = (record?.header.instances ?? []).filter((i) => i.instanceId !== instance.instanceId);
  return [...others, instance];
}

/** Replaces one condition, keeping its `since` while the status stays. */
export function withCondition(conditions: readonly Condition[], next: Condition): readonly Condition[] {
  const known = conditions.find((c) => c.type === next.type);
  const kept = known?.status === next.status ? { ...next, sinceMs: known.sinceMs } : next;
  return [...conditions.filter((c) => c.type !== next.type), kept].sort((a, b) => (a.type < b.type ? -1 : 1));
}
