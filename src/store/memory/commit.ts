/** The one decision of a commit. `redis/commit.lua` takes the same steps. */
import type { CommitResult, LeaseEffect } from "../../catalogue/ports.js";
import { LIMITS } from "../../domain/limits.js";
import { chainOf } from "../chain.js";
import type { PreparedCommit, Window } from "../prepare.js";
import type { Draft, LogState, Place } from "./tables.js";
import { revisionKey } from "./tables.js";

export function decideCommit(
  draft: Draft,
  commit: PreparedCommit,
  at: { readonly partition: number; readonly nowMs: number; readonly window: Window },
): CommitResult {
  const current = draft.get("records", commit.key)?.revision ?? 0;
  if (current !== commit.expect || !holds(draft, commit.seen)) return { kind: "conflict", revision: current };
  for (const leaseId of commit.requireDue) {
    const lease = draft.get("leases", leaseId);
    if (!lease || lease.endMs > at.nowMs) return { kind: "not-due", leaseId };
  }
  const head = append(draft, commit, at.nowMs, at.window);
  if (commit.record) {
    draft.set("records", commit.key, { revision: head.revision, bytes: commit.record });
    draft.delete("buried", commit.key);
  } else {
    draft.delete("records", commit.key);
    if (commit.bury) draft.set("buried", commit.key, at.nowMs + LIMITS.tombstoneMs);
  }
  for (const effect of commit.leases) applyEffect(draft, effect, at.nowMs);
  return { kind: "committed", position: { partition: at.partition, ...head }, atMs: at.nowMs };
}

function append(draft: Draft, commit: PreparedCommit, atMs: number, window: Window): Place {
  const { head: prev, base, bytes } = draft.log;
  const revision = prev.revision + 1;
  const head = { revision, chain: chainOf(prev.chain, revision, commit.body, commit.seed) };
  draft.set("entries", revisionKey(revision), { ...head, prev: prev.chain, atMs, body: commit.body });
  draft.set("log", "log", trim(draft, { head, base, bytes: bytes + commit.body.byteLength }, window));
  return head;
}

/** Drops the oldest entries beyond the window; the newest always stays. */
function trim(draft: Draft, log: LogState, window: Window): LogState {
  let { base, bytes } = log;
  while (
    log.head.revision - base.revision > 1 &&
    (log.head.revision - base.revision > window.revisions || bytes > window.bytes)
  ) {
    const key = revisionKey(base.revision + 1);
    const oldest = draft.get("entries", key);
    if (!oldest) throw new Error(`the log has lost its entry ${base.revision + 1}`);
    draft.delete("entries", key);
    bytes -= oldest.body.byteLength;
    base = { revision: oldest.revision, chain: oldest.chain };
  }
  return { head: log.head, base, bytes };
}

function applyEffect(draft: Draft, effect: LeaseEffect, nowMs: number): void {
  if (effect.kind === "end") {
    draft.delete("leases", effect.leaseId);
    if (effect.buried) draft.set("ended", effect.leaseId, nowMs + LIMITS.tombstoneMs);
    return;
  }
  const { namespace, serverId, instanceId, ttlMs } = effect;
  draft.set("leases", effect.leaseId, { namespace, serverId, instanceId, ttlMs, endMs: nowMs + ttlMs, braked: false });
}

function holds(draft: Draft, seen: Place | undefined): boolean {
  if (!seen) return true;
  const { head, base } = draft.log;
  if (seen.revision === head.revision) return seen.chain === head.chain;
  if (seen.revision === base.revision) return seen.chain === base.chain;
  return draft.get("entries", revisionKey(seen.revision))?.chain === seen.chain;
}
