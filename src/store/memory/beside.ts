/** Decisions about what lives beside the log: leases, blobs, notes. Each takes a draft and the store's time. */
import type { Blob, DueLeases, RenewOutcome } from "../../catalogue/ports.js";
import { compareText } from "../../domain/ids.js";
import type { Draft, Tables } from "./tables.js";
import { blobKey } from "./tables.js";

export function renewLease(draft: Draft, leaseId: string, nowMs: number): RenewOutcome {
  const lease = draft.get("leases", leaseId);
  if (lease) {
    draft.set("leases", leaseId, { ...lease, endMs: nowMs + lease.ttlMs, braked: false });
    return "renewed";
  }
  return (draft.get("ended", leaseId) ?? 0) > nowMs ? "ended" : "unknown";
}

export function extendLease(draft: Draft, leaseId: string, nowMs: number): void {
  const lease = draft.get("leases", leaseId);
  if (!lease) return;
  draft.set("leases", leaseId, { ...lease, endMs: Math.max(lease.endMs, nowMs + lease.ttlMs), braked: true });
}

export function dueLeases(tables: Tables, limit: number, nowMs: number): DueLeases {
  const due = [...tables.leases].filter(([, lease]) => lease.endMs <= nowMs);
  due.sort(([idA, a], [idB, b]) => a.endMs - b.endMs || compareText(idA, idB));
  return {
    nowMs,
    total: tables.leases.size,
    dueTotal: due.length,
    due: due.slice(0, limit).map(([leaseId, { endMs, ...lease }]) => ({ leaseId, ...lease, endedAtMs: endMs })),
  };
}

export function putBlob(draft: Draft, namespace: string, blob: Blob, nowMs: number): void {
  const key = blobKey(namespace, blob.digest);
  if (draft.get("refs", key) === undefined) draft.set("blobs", key, blob);
  draft.set("refs", key, nowMs);
}

export function touchBlob(draft: Draft, namespace: string, digest: string, nowMs: number): void {
  const key = blobKey(namespace, digest);
  if (draft.get("refs", key) !== undefined) draft.set("refs", key, nowMs);
}

export function sweepBlobs(draft: Draft, keepMs: number, nowMs: number): number {
  let swept = 0;
  for (const key of draft.keys("refs")) {
    const lastMs = draft.get("refs", key);
    if (lastMs === undefined || nowMs - lastMs < keepMs) continue;
    draft.delete("refs", key);
    draft.drop("blobs", key);
    swept++;
  }
  return swept;
}

export function putNote(
  draft: Draft,
  note: {
    readonly key: string;
    readonly bytes: Uint8Array;
    readonly ttlMs: number;
    readonly expect: number | undefined;
  },
  nowMs: number,
): number | undefined {
  if (note.expect !== undefined && noteVersion(draft, note.key, nowMs) !== note.expect) return undefined;
  // Counted from the clock, so that versions do not come again after the store lost its own count.
  const version = Math.max((draft.get("versions", "notes") ?? 0) + 1, Math.floor(nowMs) * 1_000);
  draft.set("versions", "notes", version);
  draft.set("notes", note.key, { bytes: note.bytes, version, expiresAtMs: nowMs + note.ttlMs });
  return version;
}

export function removeNote(draft: Draft, key: string, expect: number, nowMs: number): boolean {
  if (expect === 0 || noteVersion(draft, key, nowMs) !== expect) return false;
  draft.delete("notes", key);
  return true;
}

function noteVersion(draft: Draft, key: string, nowMs: number): number {
  const note = draft.get("notes", key);
  return note && note.expiresAtMs > nowMs ? note.version : 0;
}

/** Forgets notes and tombstones whose time is over; nobody can see the difference but the memory. */
export function dropExpired(draft: Draft, nowMs: number): void {
  for (const table of ["ended", "buried"] as const)
    for (const key of draft.keys(table)) if ((draft.get(table, key) ?? 0) <= nowMs) draft.delete(table, key);
  for (const key of draft.keys("notes")) {
    const note = draft.get("notes", key);
    if (note && note.expiresAtMs <= nowMs) draft.delete("notes", key);
  }
}
