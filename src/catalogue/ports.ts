/** What the catalogue needs from the world. Stores implement the first four; `main` passes the rest in. */
import type { Change } from "../domain/change.js";
import type { Position } from "../domain/revision.js";
import type { RelistCause } from "../domain/fault.js";
import type { Overlay } from "../domain/overlay.js";
import type { Quarantine } from "../domain/quarantine.js";
import type { Availability, ServerRecord, Tool } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";

/** One revision as the log keeps it. */
export interface Entry {
  readonly position: Position;
  /** The chain of the entry before; `0` for the first. */
  readonly prev: string;
  /** Store time of the commit. */
  readonly atMs: number;
  readonly change: Change;
  /** Encoded size of the body, for bounding windows. */
  readonly bytes: number;
}

/** What a commit does to leases, in the same atomic step. */
export type LeaseEffect =
  | {
      readonly kind: "grant";
      readonly leaseId: string;
      readonly ttlMs: number;
      readonly namespace: string;
      readonly serverId: string;
      readonly instanceId: string;
    }
  /** `buried`: ended on purpose; Renew hears `ended` for LIMITS.tombstoneMs instead of `unknown`. */
  | { readonly kind: "end"; readonly leaseId: string; readonly buried: boolean };

export interface Commit {
  readonly namespace: string;
  readonly serverId: string;
  /** The log's position this was decided at; a log that does not hold it refuses with conflict. Revisions recur in another log. */
  readonly seen?: Position;
  /** Revision that the server's record must have now; 0 = no record. */
  readonly expect: number;
  /** The record after (its `revision` and instances' 0 revisions are set by the store); null removes it. */
  readonly record: Omit<ServerRecord, "revision"> | null;
  readonly change: Change;
  readonly leases: readonly LeaseEffect[];
  /** These leases must be due by store time, or the commit is refused: a renewal always beats an expiry (P6). */
  readonly requireDue?: readonly string[];
  /** Marks the removed server as removed on purpose for LIMITS.tombstoneMs (`Leases.buried`). */
  readonly bury?: boolean;
}

export type CommitResult =
  | { readonly kind: "committed"; readonly position: Position; readonly atMs: number }
  /** The record's revision is not the expected one. Nothing was changed. */
  | { readonly kind: "conflict"; readonly revision: number }
  /** A lease of `requireDue` is not due (renewed, or already gone). Nothing was changed. */
  | { readonly kind: "not-due"; readonly leaseId: string };

/** A consistent cut: all records at `position`, and the kept history up to it. */
export interface Snapshot {
  readonly position: Position;
  readonly records: readonly ServerRecord[];
  /** The position before the oldest kept entry. */
  readonly base: Position;
  /** Kept entries after base up to and with position, oldest first. */
  readonly entries: readonly Entry[];
}

export type PollResult =
  /** Entries directly after the asked position; empty when there is nothing new and the log's head is exactly there. */
  | { readonly kind: "entries"; readonly entries: readonly Entry[] }
  /** The log does not continue the asked position. */
  | { readonly kind: "broken"; readonly cause: RelistCause };

/**
 * The one ordered log of a partition, and the records it adds up to. All methods throw
 * Fault STORE_UNAVAILABLE when the store cannot be reached, and commit throws Fault STORE_FULL when it has no room.
 */
export interface Log {
  /** Atomic: conditions, record, entry and lease effects together or not at all. Revisions are consecutive. */
  commit(commit: Commit): Promise<CommitResult>;
  snapshot(): Promise<Snapshot>;
  head(): Promise<Position>;
  /**
   * Waits until there is something after `after`, at most about one second, then answers with what there is (at most
   * `limit` entries, in order, without gaps). Every answer has compared the log with `after` (its chain, and the head when
   * nothing is new), so a flushed, rewound or trimmed log is noticed within that second. Returns early, with no
   * entries, when the signal aborts.
   */
  poll(after: Position, limit: number, signal: AbortSignal): Promise<PollResult>;
}

export type RenewOutcome = "renewed" | "unknown" | "ended";

export interface DueLease {
  readonly leaseId: string;
  readonly namespace: string;
  readonly serverId: string;
  readonly instanceId: string;
  readonly ttlMs: number;
  /** When it ran out, store time. */
  readonly endedAtMs: number;
  /** The brake has already extended it since its last renewal. */
  readonly braked: boolean;
}

export interface DueLeases {
  /** Store time. */
  readonly nowMs: number;
  /** All leases of the partition, due or not. */
  readonly total: number;
  /** Number of due leases, though `due` may hold fewer. */
  readonly dueTotal: number;
  /** Longest overdue first. */
  readonly due: readonly DueLease[];
}

/** Leases live beside the log: renewing makes no revision. The store's clock is the only lease clock. */
export interface Leases {
  /** Sets each known lease's end to now + its TTL. One answer per id, in order. */
  renew(leaseIds: readonly string[]): Promise<readonly RenewOutcome[]>;
  due(limit: number): Promise<DueLeases>;
  /** The brake: each lease's end becomes at least now + its TTL, and it counts as braked until it renews. */
  extend(leaseIds: readonly string[]): Promise<void>;
  /** Whether the server was removed on purpose less than LIMITS.tombstoneMs ago. */
  buried(namespace: string, serverId: string): Promise<boolean>;
}

export interface Blob {
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly fetchedAtMs: number;
}

/** Definitions by digest, inside a namespace. The first bytes put under a digest are the ones kept (P10). */
export interface Blobs {
  put(namespace: string, blobs: readonly Blob[]): Promise<void>;
  /** One answer per digest, in order. */
  get(namespace: string, digests: readonly string[]): Promise<readonly (Blob | undefined)[]>;
  /** Says that these are still referenced. */
  touch(namespace: string, digests: readonly string[]): Promise<void>;
  /** Removes what nobody put or touched for `keepMs` (store time). Answers how many went. */
  sweep(keepMs: number): Promise<number>;
}

export interface Note {
  readonly bytes: Uint8Array;
  /** Changes with every put; never 0. */
  readonly version: number;
}

/** Small bytes with compare-and-set and expiry. */
export interface Notes {
  get(key: string): Promise<Note | undefined>;
  /**
   * Writes when the current version is `expect` (0 = absent or expired; undefined = whatever there is). Answers the new
   * version, or undefined when the expectation failed.
   */
  put(key: string, bytes: Uint8Array, ttlMs: number, expect?: number): Promise<number | undefined>;
  /** Removes it if its version is `expect`. Answers whether it did. */
  remove(key: string, expect: number): Promise<boolean>;
}

/** The four ports of one partition. */
export interface PartitionStore {
  readonly partition: number;
  readonly log: Log;
  readonly leases: Leases;
  readonly blobs: Blobs;
  readonly notes: Notes;
}

export interface Store {
  readonly kind: "memory" | "embedded" | "redis";
  /** Fixed when the store was created. */
  readonly partitions: readonly PartitionStore[];
  /** Calls made after close throw STORE_UNAVAILABLE. */
  close(): Promise<void>;
}

/** Wall clock for stamps, monotonic clock for durations, both in ms; timers so that tests can hold time still. */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Resolves after `ms`, or at once (without throwing) when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export interface Random {
  /** 0 ≤ x < 1. */
  next(): number;
  /** An unguessable id of 32 hex digits. */
  id(): string;
}

/** Turns the overlays of one server into the bytes of a note and back. */
export interface OverlayCodec {
  encodeShelf(overlays: readonly Overlay[]): Uint8Array;
  decodeShelf(bytes: Uint8Array): readonly Overlay[];
  encodeOutcomes(outcomes: readonly OverlayOutcome[]): Uint8Array;
  decodeOutcomes(bytes: Uint8Array): readonly OverlayOutcome[];
}

/** Turns the quarantines of one server's tools into the bytes of a note and back. */
export interface QuarantineCodec {
  encodeShelf(quarantines: readonly Quarantine[]): Uint8Array;
  decodeShelf(bytes: Uint8Array): readonly Quarantine[];
}

/** What came of calls to one tool since a version of its overlay was approved, by the label that agents were shown. */
export interface OverlayOutcome {
  readonly toolName: string;
  readonly version: string;
  readonly overlaySuccesses: number;
  readonly overlayFailures: number;
  readonly ownSuccesses: number;
  readonly ownFailures: number;
}

/** Turns labels into their stored bytes and back. Implemented beside the stores, with protobuf. */
export interface StubCodec {
  /** Encodes a label without availability, with tool_id and estimated tokens filled in. */
  encode(stub: StubFields, digestDeclared: boolean): Tool;
  decode(stub: Uint8Array): StubFields;
  /**
   * The bytes of one element of `repeated Stub stubs = 1`: tag, length, stub, availability appended. A list is the
   * concatenation of its frames.
   */
  frame(tool: Tool, availability: Availability): Uint8Array;
  readonly overlays: OverlayCodec;
  readonly quarantines: QuarantineCodec;
}

/** A logger that takes structured fields. pino fits. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
