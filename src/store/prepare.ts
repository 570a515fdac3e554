/** What all backends do with a commit before they decide it, and with an entry after they read it. */
import type { Commit, Entry, LeaseEffect } from "../catalogue/ports.js";
import { serverKey } from "../domain/ids.js";
import { decodeChange, encodeChange, encodeRecord } from "./codec/storage.js";

/** A commit as bytes. Encoded before it waits its turn, so that nobody's later edit of a value can change it. */
export interface PreparedCommit {
  readonly key: string;
  readonly expect: number;
  readonly seen: { readonly revision: number; readonly chain: string } | undefined;
  /** Undefined removes the record. */
  readonly record: Uint8Array | undefined;
  readonly body: Uint8Array;
  /** Random; mixed into the chain of a first entry. */
  readonly seed: string;
  readonly leases: readonly LeaseEffect[];
  readonly requireDue: readonly string[];
  readonly bury: boolean;
}

export function prepareCommit(commit: Commit, seed: string): PreparedCommit {
  return {
    key: serverKey(commit.namespace, commit.serverId),
    expect: commit.expect,
    seen: commit.seen,
    record: commit.record ? encodeRecord(commit.record) : undefined,
    body: encodeChange(commit.change),
    seed,
    leases: commit.leases.map((effect) => ({ ...effect })),
    requireDue: [...(commit.requireDue ?? [])],
    bury: commit.bury ?? false,
  };
}

/** An entry as the backends keep it. */
export interface EntryRow {
  readonly revision: number;
  readonly prev: string;
  readonly chain: string;
  readonly atMs: number;
  readonly body: Uint8Array;
}

export function entryOf(partition: number, row: EntryRow): Entry {
  return {
    position: { partition, revision: row.revision, chain: row.chain },
    prev: row.prev,
    atMs: row.atMs,
    change: decodeChange(row.body),
    bytes: row.body.byteLength,
  };
}

/** How much history a log keeps; the newest entry always stays. */
export interface Window {
  readonly revisions: number;
  readonly bytes: number;
}

/** Longest wait of a poll for something new: under the second within which a broken log must be noticed. */
export const POLL_WAIT_MS = 900;
