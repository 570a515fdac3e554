import { Fault, invalidRequest, notFound, relistRequired } from "../domain/fault.js";
import { filterHash, matchesServer } from "../domain/filter.js";
import { compareText } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { parseResumeToken, parseRevision } from "../domain/revision.js";
import type { RegistryApi, ServersPage, StubsPage, StubsQuery, WatchHandle, WatchInput, WatchSink } from "./api.js";
import type { History } from "./history.js";
import type { Fold, Partition } from "./partition.js";
import { lowerBound } from "./state.js";
import { invalidPageToken, stubPage } from "./stub-pages.js";
import { eventsOf } from "./watch/events.js";
import type { HashedFilter } from "./watch/messages.js";
import { toolsAt } from "./watch/tools-at.js";

/** One page of stubs, from memory (P11). */
export async function readStubs(partition: Partition, q: StubsQuery): Promise<StubsPage> {
  const pageSize = sizeOf(q.pageSize, LIMITS.pageStubs, LIMITS.pageStubsDefault);
  if (q.ifRevision !== "" && q.pageToken !== "") {
    throw invalidRequest([{ field: "if_revision", description: "is for a first page; leave page_token out" }]);
  }
  const { fold, stale } = await partition.at(q.minRevision);
  const { history } = fold;
  if (q.ifRevision !== "" && notModified(history, q)) {
    return { frames: [], nextPageToken: "", position: history.head, notModified: true, stale };
  }
  const page = stubPage(history.namespace(q.filter.namespace), q.filter, pageSize, q.pageToken);
  return { ...page, position: history.head, notModified: false, stale };
}

/** Whether nothing under the filter changed since a revision that the ring still holds. */
function notModified(history: History, q: StubsQuery): boolean {
  const since = parseRevision(q.ifRevision);
  if (!since)
    throw invalidRequest([{ field: "if_revision", description: "is not a revision that this registry gave" }]);
  if (since.partition !== history.head.partition || history.ring.check(since) !== "ok") return false;
  const ns = history.namespace(q.filter.namespace);
  if (!ns || ns.revision <= since.revision) return true;
  for (let r = since.revision + 1; r <= history.head.revision; r++) {
    const change = history.ring.at(r)?.change;
    if (!change || !matchesServer(q.filter, change.namespace, change.serverId)) continue;
    if (eventsOf(change, q.filter, () => toolsAt(history, change.namespace, change.serverId, r)).length > 0)
      return false;
  }
  return true;
}

export async function readServers(
  partition: Partition,
  q: Parameters<RegistryApi["servers"]>[0],
): Promise<ServersPage> {
  const pageSize = sizeOf(q.pageSize, LIMITS.pageServers, LIMITS.pageServersDefault);
  const after = q.pageToken === "" ? "" : parseServerToken(q.pageToken);
  const { fold, stale } = await partition.at(q.minRevision);
  const ordered = fold.history.namespace(q.namespace)?.ordered ?? [];
  const byId = [...ordered].sort((a, b) => compareText(a.serverId, b.serverId));
  const from = lowerBound(byId, (s) => (after === "" || compareText(s.serverId, after) > 0 ? 0 : -1));
  const servers = byId.slice(from, from + pageSize).map((s) => s.record);
  const last = from + pageSize < byId.length ? servers.at(-1)?.header.serverId : undefined;
  const nextPageToken = last ? Buffer.from(`s1.${last}`).toString("base64url") : "";
  return { servers, nextPageToken, position: fold.history.head, stale };
}

export async function readServer(partition: Partition, q: Parameters<RegistryApi["server"]>[0]) {
  const { fold, stale } = await partition.at(q.minRevision);
  const server = fold.history.server(q.namespace, q.serverId)?.record;
  if (!server) throw notFound("server", q.serverId);
  return { server, position: fold.history.head, stale };
}

/** Opens a watch; throws before anything is written when the token cannot be honoured (P4). */
export async function openWatch(partition: Partition, input: WatchInput, sink: WatchSink): Promise<WatchHandle> {
  const f: HashedFilter = { filter: input.filter, hash: filterHash(input.filter) };
  if (input.resumeToken === "") {
    const { fold } = await partition.at(input.minRevision);
    const old = partition.state.kind === "growing" && fold === partition.state.old;
    // A store that is only away may come back with the same history, so its tokens hold; those of an old chain do not.
    return fold.hub.open(f, { kind: "snapshot", resumable: !old }, sink);
  }
  const token = parseResumeToken(input.resumeToken);
  if (!token) throw invalidToken("is not one that this registry gave");
  if (token.position.partition !== partition.index) throw invalidToken("belongs to another partition");
  if (token.filterHash !== f.hash) throw invalidToken("belongs to another filter or namespace");
  const fold = await foldAfter(partition, input.minRevision, token.position.revision);
  const check = fold.history.ring.check(token.position);
  if (check === "ahead" && partition.awaySince !== undefined) {
    const message = "this replica has lost its store and is behind this token; try another one";
    throw new Fault("REVISION_NOT_REACHED", message, { retryAfterMs: 1_000 });
  }
  if (check !== "ok") throw relistRequired(check);
  return fold.hub.open(f, { kind: "resume", after: token.position }, sink);
}

/** A token from another replica may be a moment ahead of what this one has folded. */
async function foldAfter(partition: Partition, minRevision: string, revision: number): Promise<Fold> {
  if (minRevision !== "") await partition.at(minRevision);
  const fold = partition.live();
  if (revision > fold.history.head.revision) await partition.waitFolded(fold, revision, LIMITS.foldWaitMs);
  return partition.live();
}

function invalidToken(why: string): Fault {
  return new Fault("INVALID_TOKEN", `resume_token ${why}; start without one`, {
    violations: [{ field: "resume_token", description: why }],
  });
}

function sizeOf(asked: number, limit: number, byDefault: number): number {
  if (asked === 0) return byDefault;
  if (asked > 0 && asked <= limit) return asked;
  throw invalidRequest([
    { field: "page_size", description: `is ${asked}; it must be 1 to ${limit}, or 0 for ${byDefault}` },
  ]);
}

function parseServerToken(token: string): string {
  const text = /^[A-Za-z0-9_-]+$/.test(token) ? Buffer.from(token, "base64url").toString("utf8") : "";
  const id = /^s1\.([a-z0-9][a-z0-9._-]*)$/.exec(text)?.[1];
  if (!id) throw invalidPageToken("it is not one that this registry gave");
  return id;
}
