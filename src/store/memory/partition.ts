/** The four ports of a partition over its engine. */
import type {
  Blobs,
  Commit,
  CommitResult,
  Leases,
  Log,
  Notes,
  PartitionStore,
  PollResult,
  Snapshot,
} from "../../catalogue/ports.js";
import { storeUnavailable } from "../../domain/fault.js";
import { serverKey } from "../../domain/ids.js";
import { copyBytes } from "../codec/rows.js";
import { decodeRecord } from "../codec/storage.js";
import { entryOf, POLL_WAIT_MS, prepareCommit } from "../prepare.js";
import * as beside from "./beside.js";
import { decideCommit } from "./commit.js";
import type { PartitionEngine } from "./engine.js";
import { blobKey, logState, revisionKey } from "./tables.js";
import type { Place } from "./tables.js";

/** Aborting `closed` makes every later call, and every waiting poll, throw STORE_UNAVAILABLE. */
export function enginePartition(engine: PartitionEngine, closed: AbortSignal): PartitionStore {
  const open = (): PartitionEngine => {
    if (closed.aborted) throw storeUnavailable(new Error("the store is closed"));
    return engine;
  };
  const partition = engine.parts.partition;
  return { partition, log: logOf(open, closed), leases: leasesOf(open), blobs: blobsOf(open), notes: notesOf(open) };
}

type Open = () => PartitionEngine;

function logOf(open: Open, closed: AbortSignal): Log {
  return {
    async commit(commit: Commit): Promise<CommitResult> {
      const engine = open();
      const { partition, random, window } = engine.parts;
      const prepared = prepareCommit(commit, random.id());
      return engine.change(true, (draft, nowMs) => decideCommit(draft, prepared, { partition, nowMs, window }));
    },
    async snapshot() {
      return snapshotOf(open());
    },
    async head() {
      const engine = open();
      return { partition: engine.parts.partition, ...logState(engine.state).head };
    },
    async poll(after, limit, signal) {
      const engine = open();
      const found = look(engine, after, limit);
      if (found.kind === "broken" || found.entries.length > 0 || signal.aborted) return found;
      await nextRevision(engine, [signal, closed]);
      return look(open(), after, limit);
    },
  };
}

function snapshotOf(engine: PartitionEngine): Snapshot {
  const { partition } = engine.parts;
  const { head, base } = logState(engine.state);
  return {
    position: { partition, ...head },
    records: [...engine.state.records.values()].map((row) => decodeRecord(row.bytes, row.revision)),
    base: { partition, ...base },
    entries: rowsAfter(engine, base.revision, head.revision).map((row) => entryOf(partition, row)),
  };
}

function look(engine: PartitionEngine, after: Place, limit: number): PollResult {
  const { head, base } = logState(engine.state);
  if (after.revision > head.revision) return { kind: "broken", cause: "ahead" };
  if (after.revision < base.revision) return { kind: "broken", cause: "compacted" };
  if (after.chain !== chainAt(engine, after.revision)) return { kind: "broken", cause: "chain" };
  const rows = rowsAfter(engine, after.revision, Math.min(head.revision, after.revision + limit));
  return { kind: "entries", entries: rows.map((row) => entryOf(engine.parts.partition, row)) };
}

function chainAt(engine: PartitionEngine, revision: number): string | undefined {
  const { base } = logState(engine.state);
  return revision === base.revision ? base.chain : engine.state.entries.get(revisionKey(revision))?.chain;
}

function rowsAfter(engine: PartitionEngine, after: number, last: number) {
  const rows = [];
  for (let revision = after + 1; revision <= last; revision++) {
    const row = engine.state.entries.get(revisionKey(revision));
    if (!row) throw new Error(`the log has lost its entry ${revision}`);
    rows.push(row);
  }
  return rows;
}

/** Resolves at the next revision, when a signal aborts, or after POLL_WAIT_MS. */
async function nextRevision(engine: PartitionEngine, signals: readonly AbortSignal[]): Promise<void> {
  const done = new AbortController();
  const finish = (): void => done.abort();
  const unsubscribe = engine.onRevision(finish);
  for (const signal of signals) signal.addEventListener("abort", finish);
  if (signals.some((signal) => signal.aborted)) finish();
  await engine.parts.clock.sleep(POLL_WAIT_MS, done.signal);
  unsubscribe();
  for (const signal of signals) signal.removeEventListener("abort", finish);
}

function leasesOf(open: Open): Leases {
  return {
    // A renewal that a power loss forgets costs nothing: the embedded store brakes after it was opened.
    async renew(leaseIds) {
      return open().change(false, (draft, now) => leaseIds.map((id) => beside.renewLease(draft, id, now)));
    },
    async due(limit) {
      const engine = open();
      return beside.dueLeases(engine.state, limit, engine.now());
    },
    async extend(leaseIds) {
      return open().change(false, (draft, now) => leaseIds.forEach((id) => beside.extendLease(draft, id, now)));
    },
    async buried(namespace, serverId) {
      const engine = open();
      return (engine.state.buried.get(serverKey(namespace, serverId)) ?? 0) > engine.now();
    },
  };
}

function blobsOf(open: Open): Blobs {
  return {
    async put(namespace, blobs) {
      const copies = blobs.map((blob) => ({ ...blob, bytes: copyBytes(blob.bytes) }));
      return open().change(true, (draft, now) => copies.forEach((blob) => beside.putBlob(draft, namespace, blob, now)));
    },
    async get(namespace, digests) {
      const { journal } = open().parts;
      return Promise.all(digests.map((digest) => journal.blob(blobKey(namespace, digest))));
    },
    async touch(namespace, digests) {
      return open().change(false, (draft, now) => digests.forEach((d) => beside.touchBlob(draft, namespace, d, now)));
    },
    async sweep(keepMs) {
      return open().change(false, (draft, now) => beside.sweepBlobs(draft, keepMs, now));
    },
  };
}

function notesOf(open: Open): Notes {
  return {
    async get(key) {
      const engine = open();
      const note = engine.state.notes.get(key);
      return note && note.expiresAtMs > engine.now() ? { bytes: note.bytes, version: note.version } : undefined;
    },
    async put(key, bytes, ttlMs, expect) {
      const note = { key, bytes: copyBytes(bytes), ttlMs, expect };
      return open().change(true, (draft, now) => beside.putNote(draft, note, now));
    },
    async remove(key, expect) {
      return open().change(true, (draft, now) => beside.removeNote(draft, key, expect, now));
    },
  };
}
