/** What operators do to one server: take it out, put it back, have it listed now. */
import { Fault, notFound } from "../domain/fault.js";
import type { Principal } from "../domain/identity.js";
import { LIMITS } from "../domain/limits.js";
import { BREAKER_CLOSED, type PublishedBreaker, type ServerHeader, type ServerRecord } from "../domain/server.js";
import type { RefreshOutput, ResumeOutput, ServerWrite } from "./api.js";
import { type Listing, UpstreamError } from "./upstream-port.js";
import type { Decision, WriteResult, Writes } from "./writes.js";

/** A listing that starts now, whatever failed before; settles once the catalogue has taken it in. Rejects with UpstreamError. */
export type Refresher = (namespace: string, serverId: string) => Promise<Listing>;

/** Nothing waits for the pace of conditions: whoever isolates a server wants it out now. */
export async function isolate(
  writes: Writes,
  namespace: string,
  serverId: string,
  why: string,
  caller: Principal,
): Promise<ServerWrite> {
  await seeServer(writes, namespace, serverId);
  const by = caller.id;
  const result = await writes.write(namespace, serverId, (found): Decision<ServerRecord> => {
    const record = present(writes, namespace, serverId, found);
    const { breaker } = record.header;
    const before = breaker.kind === "isolated" ? breaker : undefined;
    if (before?.by === by && before.why === why) return { kind: "keep", value: record };
    const sinceMs = before?.sinceMs ?? writes.partition.deps.clock.now();
    const isolated = { kind: "isolated", sinceMs, by, why } as const;
    return step("isolate", record, { ...record.header, breaker: isolated, availability: "unavailable" });
  });
  return written(result);
}

/** A server that is looked after is available again once it answers; one that is not, at once. */
export async function resume(writes: Writes, namespace: string, serverId: string): Promise<ResumeOutput> {
  await seeServer(writes, namespace, serverId);
  const result = await writes.write(namespace, serverId, (found): Decision<ServerRecord> => {
    const record = present(writes, namespace, serverId, found);
    if (record.header.breaker.kind !== "isolated") return { kind: "keep", value: record };
    return step("resume", record, { ...record.header, ...resumedState(record, writes.partition.deps.clock.now()) });
  });
  return { ...written(result), resumed: result.kind === "committed" };
}

function resumedState(record: ServerRecord, nowMs: number): Pick<ServerHeader, "breaker" | "availability"> {
  const newest = record.header.instances.at(-1);
  const lookedAfter = newest !== undefined && newest.endpoint !== "" && !newest.probing.off;
  if (!lookedAfter) return { breaker: BREAKER_CLOSED, availability: "available" };
  const open: PublishedBreaker = { kind: "open", sinceMs: nowMs, untilMs: nowMs, attempt: 1 };
  return { breaker: open, availability: "unavailable" };
}

/** Throws Fault SERVER_ISOLATED, and LOAD_FAILED when nobody can be asked or the listing failed. */
export async function refresh(
  writes: Writes,
  namespace: string,
  serverId: string,
  refresher: Refresher,
): Promise<RefreshOutput> {
  await seeServer(writes, namespace, serverId);
  const before = recordOf(writes, namespace, serverId);
  if (before.header.breaker.kind === "isolated") throw serverIsolated(serverId, before.header.breaker);
  if (before.header.instances.every((i) => i.endpoint === "")) throw neverDialled(serverId);
  const listing = await refresher(namespace, serverId).catch((error: unknown) => {
    throw error instanceof UpstreamError ? refreshFailed(serverId, error) : error;
  });
  const server = recordOf(writes, namespace, serverId);
  const { ring, head } = writes.partition.live().history;
  return {
    server,
    position: ring.positionOf(server.revision) ?? head,
    listed: listing.tools.length + listing.rejected.length,
    changed: server.revision !== before.revision,
  };
}

function step(cause: "isolate" | "resume", record: ServerRecord, header: ServerHeader): Decision<ServerRecord> {
  const { tools } = record;
  return { kind: "commit", step: { cause, next: { header, tools }, leases: [] }, value: { ...record, header } };
}

/** As committed: this replica may not have folded its own commit yet. */
function written(result: WriteResult<ServerRecord>): ServerWrite {
  if (result.kind === "not-due") throw new Error("an operator's call requires no lease to be due");
  const { kind, position, value } = result;
  return { position, server: kind === "committed" ? { ...value, revision: position.revision } : value };
}

/** Absent may only mean that this replica has not folded it yet. */
export async function seeServer(writes: Writes, namespace: string, serverId: string): Promise<void> {
  if (!writes.partition.live().history.server(namespace, serverId)) await writes.partition.catchUp();
}

function recordOf(writes: Writes, namespace: string, serverId: string): ServerRecord {
  const found = writes.partition.live().history.server(namespace, serverId)?.record;
  return present(writes, namespace, serverId, found);
}

/** What a broken log lost is still listed until it is back, so it is not said to be absent. */
export function present(writes: Writes, namespace: string, serverId: string, record: ServerRecord | undefined): ServerRecord {
  if (record) return record;
  const { state } = writes.partition;
  if (state.kind !== "growing" || !state.old.history.server(namespace, serverId)) throw notFound("server", serverId);
  const message = `server ${serverId} was lost in the store and is not back yet: try again, or deregister it`;
  throw new Fault("STORE_UNAVAILABLE", message, { metadata: { server: serverId }, retryAfterMs: 1_000 });
}

/** Nobody can say when it is resumed, so no time to come back is named. */
function serverIsolated(serverId: string, breaker: Extract<PublishedBreaker, { kind: "isolated" }>): Fault {
  const message = `server ${serverId} was isolated by ${breaker.by} and is not dialled until it is resumed: ${breaker.why}`;
  return new Fault("SERVER_ISOLATED", message, { metadata: { server: serverId, isolated_by: breaker.by } });
}

function neverDialled(serverId: string): Fault {
  const message = `server ${serverId} registered without an endpoint, so there is nobody to list: only its registrant says what it offers`;
  return new Fault("LOAD_FAILED", message, { metadata: { server: serverId } });
}

/** An address that egress forbids stays forbidden, so that failure names no time to come back. */
function refreshFailed(serverId: string, error: UpstreamError): Fault {
  return new Fault("LOAD_FAILED", `server ${serverId} could not be listed: ${error.message}`, {
    metadata: { server: serverId, kind: error.kind },
    ...(error.kind === "egress" ? {} : { retryAfterMs: LIMITS.loadNegativeMs }),
    cause: error,
  });
}
