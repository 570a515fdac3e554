/** Who registered what, and what is certain about it. */
import { parseRevision, type Position } from "../../src/domain/revision.js";
import { type DeregisterCall, type History, type Moment, only, type RegisterCall } from "./history.js";

export type Acknowledged = RegisterCall & { readonly back: Moment; readonly outcome: { readonly kind: "ok" } };

export function isAcknowledged(call: RegisterCall): call is Acknowledged {
  return call.outcome.kind === "ok" && call.back !== undefined && !call.validateOnly;
}

/** Refusals after which it is certain that nothing was committed. Any other failure leaves it open. */
const DEFINITE = new Set([
  "INVALID_REQUEST",
  "MALFORMED_MESSAGE",
  "ETAG_MISMATCH",
  "NOT_OWNER",
  "QUOTA_EXCEEDED",
  "STORE_FULL",
  "NOT_READY",
  "DRAINING",
  "OVERLOADED",
  "EGRESS_DENIED",
  "FORBIDDEN",
  "UNAUTHENTICATED",
]);

export function isRefused({ outcome, validateOnly }: RegisterCall): boolean {
  return validateOnly || (outcome.kind === "error" && DEFINITE.has(outcome.reason));
}

/** The names that it was told are listed, sorted. */
export function acceptedOf({ outcome }: Acknowledged): string[] {
  return outcome.value.tools.filter((t) => !t.rejected).map((t) => t.name).sort();
}

export function rejectedOf({ outcome }: Acknowledged): string[] {
  return outcome.value.tools.filter((t) => t.rejected).map((t) => t.name);
}

export function placeOf(call: { readonly outcome: { readonly value: { readonly revision: string } } }): Position | undefined {
  return parseRevision(call.outcome.value.revision);
}

/** Calls that stand for one Register: repeats with one request id. */
export function groupsOf(history: History): RegisterCall[][] {
  const groups = new Map<string, RegisterCall[]>();
  let alone = 0;
  for (const call of only(history, "register").sort((a, b) => a.call.n - b.call.n)) {
    const id = call.requestId === "" ? `alone ${alone++}` : call.requestId;
    const key = JSON.stringify([call.namespace, call.serverId, call.instanceId, id]);
    const group = groups.get(key);
    if (group) group.push(call);
    else groups.set(key, [call]);
  }
  return [...groups.values()];
}

/** `server_id/name digest` of what a Register sent with a definition or a digest. */
export function wares(call: RegisterCall): string[] {
  return call.tools.filter((t) => t.digest !== "").map((t) => `${call.serverId}/${t.name} ${t.digest}`);
}

/** Wares that only one group ever sent in its namespace: whoever sees one sees what that group did. */
export function ownWares(groups: readonly (readonly RegisterCall[])[]): Map<string, readonly RegisterCall[]> {
  const out = new Map<string, readonly RegisterCall[] | "shared">();
  for (const group of groups) {
    const all = new Set(group.flatMap((call) => wares(call).map((ware) => `${call.namespace} ${ware}`)));
    for (const ware of all) out.set(ware, out.has(ware) ? "shared" : group);
  }
  return new Map([...out].filter((e): e is [string, readonly RegisterCall[]] => e[1] !== "shared"));
}

/** Whether two spans have a moment in common; an open one lasts for ever. */
export function overlap(a: { from: number; to: number | undefined }, b: { from: number; to: number | undefined }): boolean {
  const forever = Number.POSITIVE_INFINITY;
  return a.from <= (b.to ?? forever) && b.from <= (a.to ?? forever);
}

/** Whether acknowledged commits may have been lost in this span of the history. */
export function lostWithin(history: History, from: Moment, to: Moment): boolean {
  if (history.facts.oneHistory) return false;
  const losses = only(history, "fault").filter((f) => f.what === "store-lost");
  // A history that admits losses but marks none leaves everything open.
  return losses.length === 0 || losses.some((f) => overlap({ from: f.from.n, to: f.to?.n }, { from: from.n, to: to.n }));
}

const leases = new WeakMap<History, ReadonlyMap<string, ReadonlySet<string>>>();

/** Leases that each instance was given, by `namespace server_id instance_id`. */
export function leasesByInstance(history: History): ReadonlyMap<string, ReadonlySet<string>> {
  const known = leases.get(history) ?? leasesFrom(history);
  leases.set(history, known);
  return known;
}

function leasesFrom(history: History): Map<string, Set<string>> {
  const out = new Map<string, Set<string>>();
  for (const call of only(history, "register").filter(isAcknowledged)) {
    const key = instanceKey(call);
    const leases = out.get(key) ?? new Set<string>();
    if (call.outcome.value.leaseId !== "") leases.add(call.outcome.value.leaseId);
    out.set(key, leases);
  }
  return out;
}

export function instanceKey(call: Pick<RegisterCall, "namespace" | "serverId" | "instanceId">): string {
  return `${call.namespace} ${call.serverId} ${call.instanceId}`;
}

/** Whether a Deregister may end this instance: its lease, a lease that nobody was told of, or the whole server. */
export function mayEnd(call: DeregisterCall, of: RegisterCall, leases: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  if (call.namespace !== of.namespace) return false;
  if (call.target.kind === "server") return call.target.id === of.serverId;
  if (call.target.kind !== "lease") return false;
  const owner = [...leases].find(([, ids]) => ids.has(call.target.id))?.[0];
  return owner === undefined || owner === instanceKey(of);
}
