/** What a store is checked with. Each check begins with an empty store and throws when a promise is broken. */
import type { Log, Snapshot, Store } from "../../src/catalogue/ports.js";
import { applyChange } from "../../src/domain/change.js";
import { serverKey } from "../../src/domain/ids.js";
import type { ServerRecord } from "../../src/domain/server.js";
import type { Window } from "../../src/store/prepare.js";

export interface Harness {
  readonly store: Store;
  /** The same data as another replica sees it; the same handle where there can be only one. */
  readonly other: Store;
  /** An independent empty store of the same kind. */
  fresh(): Promise<Store>;
  /** Lets store time pass, for everything that is in the store now. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

export interface Check {
  readonly name: string;
  /** The log's window, where the default is not wanted. */
  readonly window?: Window;
  run(harness: Harness): Promise<void>;
}

export function logOf(store: Store): Log {
  return partitionOf(store).log;
}

export function partitionOf(store: Store): Store["partitions"][number] {
  const [partition] = store.partitions;
  if (!partition) throw new Error("the store has no partition");
  return partition;
}

export const never = new AbortController().signal;

/** A value with bytes as hex, so that a Buffer and a Uint8Array compare alike. */
export function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

export function byServer(records: readonly ServerRecord[]): Record<string, unknown> {
  const sorted = [...records].sort((a, b) => (a.header.serverId < b.header.serverId ? -1 : 1));
  return Object.fromEntries(sorted.map((r) => [serverKey(r.header.namespace, r.header.serverId), plain(r)]));
}

/** What the entries of a snapshot with its whole history add up to. */
export function fold(snapshot: Snapshot): ServerRecord[] {
  const records = new Map<string, ServerRecord>();
  for (const { change, position } of snapshot.entries) {
    const key = serverKey(change.namespace, change.serverId);
    const after = applyChange(records.get(key), change, position.revision);
    if (after) records.set(key, after);
    else records.delete(key);
  }
  return [...records.values()];
}
