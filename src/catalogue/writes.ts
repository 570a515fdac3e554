import type { Change, Cause } from "../domain/change.js";
import { diffTools } from "../domain/change.js";
import { Fault } from "../domain/fault.js";
import { serverKey } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { Position } from "../domain/revision.js";
import type { ServerHeader, ServerRecord, Tool } from "../domain/server.js";
import { newsOf } from "./news.js";
import type { Partition } from "./partition.js";
import type { Commit, LeaseEffect } from "./ports.js";

/** What a use-case decides to do about one server. */
export type Decision<T> =
  /** Nothing has to change. The answer names `revision`, by default that of the server's last change. */
  | { readonly kind: "keep"; readonly value: T; readonly revision?: number }
  | { readonly kind: "commit"; readonly step: Step; readonly value: T };

/** One server's step to its next state; `next` null removes it. */
export interface Step {
  readonly cause: Cause;
  readonly next: { readonly header: ServerHeader; readonly tools: readonly Tool[] } | null;
  readonly leases: readonly LeaseEffect[];
  readonly requireDue?: readonly string[];
  readonly bury?: boolean;
}

export type WriteResult<T> =
  | { readonly kind: "committed"; readonly position: Position; readonly value: T }
  /** Nothing had to change; the position is that of the server's last change, as far as it is still known. */
  | { readonly kind: "kept"; readonly position: Position; readonly value: T }
  | { readonly kind: "not-due"; readonly leaseId: string };

/** Lost races before a caller is told WRITE_CONFLICT. Writers in one process queue, so only other replicas race. */
const ATTEMPTS = 16;

/** Read, decide, commit by compare-and-set on the server's revision; decide again when another writer was first. */
export class Writes {
  /** Tail of each server's queue in this process. */
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(
    readonly partition: Partition,
    private readonly observe: (result: "committed" | "kept" | "conflict" | "not-due" | "failed") => void,
  ) {}

  /** Runs `decide` on the newest record known here; it may run several times and must not change anything itself. */
  write<T>(
    namespace: string,
    serverId: string,
    decide: (record: ServerRecord | undefined) => Decision<T> | Promise<Decision<T>>,
  ): Promise<WriteResult<T>> {
    const key = serverKey(namespace, serverId);
    const before = this.#queues.get(key) ?? Promise.resolve();
    const run = before.then(() => this.#attempts(namespace, serverId, decide));
    const settled = run
      .catch(() => undefined)
      .finally(() => {
        if (this.#queues.get(key) === settled) this.#queues.delete(key);
      });
    this.#queues.set(key, settled);
    return run;
  }

  async #attempts<T>(
    namespace: string,
    serverId: string,
    decide: (record: ServerRecord | undefined) => Decision<T> | Promise<Decision<T>>,
  ): Promise<WriteResult<T>> {
    const { clock, random, store, logger } = this.partition.deps;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const fold = this.partition.live();
      const seen = fold.history.head;
      const record = fold.history.server(namespace, serverId)?.record;
      const decision = await decide(record);
      if (decision.kind === "keep") {
        this.observe("kept");
        const position = fold.history.ring.positionOf(decision.revision ?? record?.revision ?? -1) ?? fold.history.head;
        return { kind: "kept", position, value: decision.value };
      }
      const commit = commitOf(seen, namespace, serverId, record, decision.step);
      const result = await this.#commit(store.log, commit);
      this.observe(result.kind);
      if (result.kind === "not-due") return result;
      if (result.kind === "committed") {
        const news = newsOf(record, commit.change, result.position.revision);
        if (news) logger.info(news.fields, news.message);
        await this.partition.waitFolded(fold, result.position.revision, LIMITS.foldWaitMs);
        return { kind: "committed", position: result.position, value: decision.value };
      }
      await this.partition.catchUp();
      if (attempt > 2) await clock.sleep(random.next() * 20 * attempt);
    }
    throw new Fault("WRITE_CONFLICT", `other writers of ${serverId} kept winning; try again`, { retryAfterMs: 200 });
  }

  async #commit(log: Partition["deps"]["store"]["log"], commit: Commit) {
    try {
      return await log.commit(commit);
    } catch (error) {
      this.observe("failed");
      throw error;
    }
  }
}

function commitOf(
  seen: Position,
  namespace: string,
  serverId: string,
  record: ServerRecord | undefined,
  step: Step,
): Commit {
  const change: Change = {
    namespace,
    serverId,
    cause: step.cause,
    header: step.next?.header ?? null,
    tools: diffTools(record?.tools ?? [], step.next?.tools ?? []),
    availabilityBefore: record?.header.availability ?? null,
  };
  return {
    seen,
    namespace,
    serverId,
    expect: record?.revision ?? 0,
    record: step.next,
    change,
    leases: step.leases,
    ...(step.requireDue && { requireDue: step.requireDue }),
    ...(step.bury && { bury: true }),
  };
}
