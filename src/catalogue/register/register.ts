import { diffTools } from "../../domain/change.js";
import { Fault } from "../../domain/fault.js";
import { mayTouch, ownerAfter, type Principal } from "../../domain/identity.js";
import { makeLeaseId, renewAfterMs } from "../../domain/lease.js";
import { LIMITS } from "../../domain/limits.js";
import { namespaceFull, type Quotas } from "../../domain/quotas.js";
import { BREAKER_CLOSED, etagOf, type Instance, type ServerRecord, type Tool } from "../../domain/server.js";
import type { LeaseGrant, RegisterInput, RegisterOutput, ToolOutcome } from "../api.js";
import type { Deps } from "../deps.js";
import { asDecided } from "../decided.js";
import type { LeaseEffect } from "../ports.js";
import type { Decision, WriteResult, Writes } from "../writes.js";
import { sortedSet } from "../../domain/filter.js";
import { instanceIdOf, type OfferPart, nextHeader, nextInstance, sameInstance, ttlOf, withInstance } from "./header.js";
import { type PreparedOffer, prepareOffer } from "./prepare.js";

interface Registered {
  readonly record: ServerRecord | undefined;
  readonly instance: Instance;
  readonly tools: readonly ToolOutcome[];
  readonly pending: boolean;
}

export interface Answer {
  readonly outcome: "committed" | "kept" | "validated";
  readonly output: RegisterOutput;
}

/** Register as one revision or not at all; repeating it changes nothing (P5). The input has passed `checkRegister`. */
export async function register(
  deps: Deps,
  writes: Writes,
  namespace: string,
  input: RegisterInput,
  caller: Principal,
  quotas: Quotas,
): Promise<Answer> {
  const { partition } = writes;
  const known = partition.live().history.server(namespace, input.serverId)?.record;
  requireOwner(caller, known);
  const offer = await prepareOffer(deps, namespace, input, known);
  // Asked before the definitions are kept, so that what is refused leaves nothing behind; and again when it is decided.
  requireRoom(writes, quotas, namespace, known, offer.tools(known));
  if (input.validateOnly) return { outcome: "validated", output: await preview(writes, namespace, input.serverId, offer, known) };
  if (offer.blobs.length > 0) {
    await partition.deps.store.blobs.put(namespace, offer.blobs);
    deps.onDefinitions(namespace, offer.blobs);
  }
  const result = await writes.write(namespace, input.serverId, (record) =>
    decide(writes, namespace, input, offer, record, caller, quotas),
  );
  const answered = answer(writes, namespace, input, result);
  logRejected(deps, namespace, input.serverId, answered.output.tools);
  return answered;
}

/** The first registrant of a server_id owns it. Which other principal that is, is nobody else's business. */
function requireOwner(caller: Principal, record: ServerRecord | undefined): void {
  if (!record) return;
  const { owner, namespace, serverId } = record.header;
  if (mayTouch(caller, owner, namespace)) return;
  const message = `server ${serverId} was registered first by another principal: choose another server_id, or ask an operator`;
  throw new Fault("NOT_OWNER", message, { metadata: { server: serverId } });
}

/**
 * Judged against what this replica has folded, and writes of different servers are not ordered before their commit: what is
 * under way here and at other replicas at the same moment may go over the quota by as much as that.
 */
function requireRoom(
  writes: Writes,
  quotas: Quotas,
  namespace: string,
  record: ServerRecord | undefined,
  tools: readonly Tool[],
): void {
  const held = writes.partition.live().history.namespace(namespace);
  const before = { servers: held?.servers.size ?? 0, tools: held?.toolCount ?? 0 };
  const after = {
    servers: before.servers + (record ? 0 : 1),
    tools: before.tools + tools.length - (record?.tools.length ?? 0),
  };
  const full = namespaceFull(quotas, namespace, before, after);
  if (full) throw full;
}

/** Enough of them to see what is wrong; the server's status and the answer have the rest. */
const LOGGED_TOOLS = 5;

/** The call succeeds, but each rejected tool was refused, and a refusal is never silent. */
function logRejected(deps: Deps, namespace: string, server: string, tools: readonly ToolOutcome[]): void {
  const rejected = tools.filter((t) => t.outcome === "rejected");
  if (rejected.length === 0) return;
  const shown = rejected
    .slice(0, LOGGED_TOOLS)
    .map(({ name, reasons }) => ({ name, reasons: reasons.slice(0, LOGGED_TOOLS) }));
  deps.logger.info(
    { namespace, server, rejected: rejected.length, tools: shown },
    "tools of a registration were rejected",
  );
}

async function decide(
  writes: Writes,
  namespace: string,
  input: RegisterInput,
  offer: PreparedOffer,
  record: ServerRecord | undefined,
  caller: Principal,
  quotas: Quotas,
): Promise<Decision<Registered>> {
  requireOwner(caller, record);
  const known = record?.header.instances.find((i) => i.instanceId === instanceIdOf(input));
  if (known && input.requestId !== "" && known.requestId === input.requestId) {
    const tools = offer.outcomes(record, record?.tools ?? []);
    const value = { record, instance: known, tools, pending: record?.header.pending ?? false };
    if (await leaseLives(writes, known)) return { kind: "keep", value, revision: known.revision };
  }
  if (input.etag !== "" && input.etag !== etagOf(record)) {
    throw new Fault(
      "ETAG_MISMATCH",
      `the etag of ${input.serverId} is ${etagOf(record)}, not ${input.etag}; read the server again`,
      {
        metadata: { etag: etagOf(record) },
      },
    );
  }
  if (!known && (record?.header.instances.length ?? 0) >= LIMITS.instancesPerServer) {
    throw new Fault(
      "QUOTA_EXCEEDED",
      `a server may have at most ${LIMITS.instancesPerServer} instances; this would be one more`,
      {
        metadata: { quota: "instances", limit: String(LIMITS.instancesPerServer), actual: String(LIMITS.instancesPerServer + 1) },
      },
    );
  }
  requireRoom(writes, quotas, namespace, record, offer.tools(record));
  return step(writes, namespace, input, offer, record, known, ownerAfter(record?.header.owner ?? "", caller));
}

async function step(
  writes: Writes,
  namespace: string,
  input: RegisterInput,
  offer: PreparedOffer,
  record: ServerRecord | undefined,
  known: Instance | undefined,
  owner: string,
): Promise<Decision<Registered>> {
  const { partition } = writes;
  const nowMs = partition.deps.clock.now();
  const tools = await asDecided(writes, namespace, input.serverId, record, offer.tools(record));
  const part = offer.header(record, nowMs);
  const candidate = nextInstance(input, known, known?.leaseId ?? "", part.setDigest, nowMs);
  const outcomes = offer.outcomes(record, tools);
  if (
    record &&
    known &&
    record.header.owner === owner &&
    unchanged(input, record, known, candidate, tools, offer, part) &&
    (await leaseLives(writes, known))
  ) {
    return { kind: "keep", value: { record, instance: known, tools: outcomes, pending: record.header.pending } };
  }
  const leased = ttlOf(input) > 0;
  // A lease that ended never comes back: only a live one keeps its id.
  const keepLease = known !== undefined && known.leaseId !== "" && leased && (await leaseLives(writes, known));
  const leaseId = keepLease ? known.leaseId : leased ? makeLeaseId(partition.index, partition.deps.random.id()) : "";
  const instance = { ...candidate, leaseId };
  const breaker = breakerOf(writes, namespace, input.serverId, record);
  const decided = nextHeader(input, namespace, owner, withInstance(record, instance), part, breaker);
  const beyond = record?.header.beyond;
  const header = beyond ? { ...decided, beyond } : decided;
  return {
    kind: "commit",
    step: { cause: "register", next: { header, tools }, leases: leaseEffects(namespace, input, instance, known) },
    value: { record: undefined, instance, tools: outcomes, pending: header.pending },
  };
}

/** After a broken chain the replicas that remember it keep an isolated server isolated, though its record is gone. */
function breakerOf(writes: Writes, namespace: string, serverId: string, record: ServerRecord | undefined) {
  const { state } = writes.partition;
  const lost = state.kind === "growing" ? state.old.history.server(namespace, serverId)?.record : undefined;
  return (record ?? lost)?.header.breaker ?? BREAKER_CLOSED;
}

function unchanged(
  input: RegisterInput,
  record: ServerRecord,
  known: Instance,
  candidate: Instance,
  tools: readonly Tool[],
  offer: PreparedOffer,
  part: OfferPart,
): boolean {
  const { header } = record;
  return (
    sameInstance(known, candidate) &&
    header.setDigest === candidate.setDigest &&
    header.source === offer.source &&
    header.title === input.title &&
    header.tags.join() === sortedSet(input.tags).join() &&
    // A registrant that was told to register again clears what it was told about.
    !header.conditions.some((c) => c.reason === "DIGEST_MISMATCH") &&
    header.rejectedCount === part.rejectedCount &&
    JSON.stringify(header.rejected) === JSON.stringify(part.rejected) &&
    diffTools(record.tools, tools).length === 0
  );
}

/** Whether the instance's lease still lives; renews it on the way. A standing instance has none that could end. */
async function leaseLives(writes: Writes, instance: Instance): Promise<boolean> {
  if (instance.leaseId === "") return true;
  const [outcome] = await writes.partition.deps.store.leases.renew([instance.leaseId]);
  return outcome === "renewed";
}

function leaseEffects(
  namespace: string,
  input: RegisterInput,
  now: Instance,
  before: Instance | undefined,
): LeaseEffect[] {
  const effects: LeaseEffect[] = [];
  if (before && before.leaseId !== "" && before.leaseId !== now.leaseId) {
    effects.push({ kind: "end", leaseId: before.leaseId, buried: false });
  }
  if (now.leaseId !== "") {
    const { leaseId, ttlMs, instanceId } = now;
    effects.push({ kind: "grant", leaseId, ttlMs, namespace, serverId: input.serverId, instanceId });
  }
  return effects;
}

function answer(writes: Writes, namespace: string, input: RegisterInput, result: WriteResult<Registered>): Answer {
  if (result.kind === "not-due") throw new Error("a Register requires no lease to be due");
  const { instance, tools, pending } = result.value;
  const record = writes.partition.live().history.server(namespace, input.serverId)?.record;
  const etag = result.kind === "committed" ? `r${result.position.revision}` : etagOf(record);
  const { position } = result;
  const output = { position, setDigest: instance.setDigest, lease: grant(writes, instance), tools, etag, pending };
  return { outcome: result.kind, output };
}

function grant(writes: Writes, { leaseId, ttlMs }: Instance): LeaseGrant | undefined {
  if (leaseId === "") return undefined;
  return { leaseId, ttlMs, renewAfterMs: renewAfterMs(ttlMs, writes.partition.deps.random.next()) };
}

/** What a Register would do; commits nothing and grants nothing. */
async function preview(
  writes: Writes,
  namespace: string,
  serverId: string,
  offer: PreparedOffer,
  record: ServerRecord | undefined,
): Promise<RegisterOutput> {
  const part = offer.header(record, writes.partition.deps.clock.now());
  return {
    position: writes.partition.live().history.head,
    setDigest: part.setDigest,
    lease: undefined,
    tools: offer.outcomes(record, await asDecided(writes, namespace, serverId, record, offer.tools(record))),
    etag: etagOf(record),
    pending: part.pending,
  };
}
