/** Waiting for new entries, on connections of their own: a blocked one can serve nothing else. */
import type { Entry, PollResult } from "../../catalogue/ports.js";
import { storeUnavailable } from "../../domain/fault.js";
import type { RelistCause } from "../../domain/fault.js";
import type { Position } from "../../domain/revision.js";
import { POLL_WAIT_MS, entryOf } from "../prepare.js";
import type { Access, Client } from "./client.js";
import { createClient } from "./client.js";
import { entryRowOf, HEAD_FIELDS, parseHead } from "./entries.js";
import type { PartitionKeys } from "./keys.js";
import type { Reply } from "./reply.js";
import { faultOf, listOf } from "./reply.js";

/** How much longer than a blocking read asks for its answer may take. */
const GRACE_MS = 2_000;
/** Without blocking. */
const NOW = 0;

/**
 * Polls a partition's log. Each poll has a connection to itself; one that was aborted, or failed, is thrown away, so
 * nothing of a broken connection is ever sent again.
 */
export class Tail {
  private readonly idle: Client[] = [];
  private readonly busy = new Set<Client>();
  private closed = false;

  constructor(
    private readonly access: Access,
    private readonly partition: number,
    private readonly keys: PartitionKeys,
  ) {}

  async poll(after: Position, limit: number, signal: AbortSignal): Promise<PollResult> {
    if (this.closed) throw storeUnavailable(new Error("the store is closed"));
    if (signal.aborted) return { kind: "entries", entries: [] };
    const redis = this.takeIdle() ?? this.connection();
    this.busy.add(redis);
    const abort = (): void => redis.disconnect();
    signal.addEventListener("abort", abort);
    try {
      if (redis.status === "wait") await redis.connect();
      const result = await this.read(redis, after, limit);
      this.idle.push(redis);
      return result;
    } catch (error) {
      redis.disconnect();
      if (signal.aborted) return { kind: "entries", entries: [] };
      throw faultOf(error);
    } finally {
      signal.removeEventListener("abort", abort);
      this.busy.delete(redis);
    }
  }

  close(): void {
    this.closed = true;
    for (const redis of [...this.idle, ...this.busy]) redis.disconnect();
  }

  private takeIdle(): Client | undefined {
    for (let redis = this.idle.pop(); redis; redis = this.idle.pop()) if (redis.status === "ready") return redis;
    return undefined;
  }

  private connection(): Client {
    const redis = createClient(this.access, {
      name: "toolcrib-tail",
      options: {
        blockingTimeout: POLL_WAIT_MS + GRACE_MS,
        blockingTimeoutGrace: GRACE_MS,
        // Covers what the blocking timeout does not: a peer that accepts the connection and then says nothing.
        socketTimeout: POLL_WAIT_MS + GRACE_MS,
      },
      retry: null,
    });
    // The poll that uses it hears of the failure; an idle one is replaced.
    redis.on("error", () => redis.disconnect());
    redis.on("end", () => this.forget(redis));
    return redis;
  }

  private forget(redis: Client): void {
    const at = this.idle.indexOf(redis);
    if (at >= 0) this.idle.splice(at, 1);
  }

  private async read(redis: Client, after: Position, limit: number): Promise<PollResult> {
    const first = await this.entriesAfter(redis, after, limit, POLL_WAIT_MS);
    if (first) return first;
    const head = parseHead(listOf((await redis.callBuffer("HMGET", this.keys.head, ...HEAD_FIELDS)) as Reply));
    if (head.revision < after.revision) return broken("ahead");
    if (head.revision === after.revision)
      return head.chain === after.chain ? { kind: "entries", entries: [] } : broken("chain");
    // Something was committed between the two commands.
    const second = await this.entriesAfter(redis, after, limit, NOW);
    return second ?? broken("chain");
  }

  /** Undefined when there is nothing after it. Redis reads past a trimmed id without a word, so each link is compared. */
  private async entriesAfter(
    redis: Client,
    after: Position,
    limit: number,
    waitMs: number,
  ): Promise<PollResult | undefined> {
    const block = waitMs > 0 ? ["BLOCK", waitMs] : [];
    const args = ["COUNT", limit, ...block, "STREAMS", this.keys.log, `${after.revision}-0`];
    const reply = (await redis.callBuffer("xread", args)) as Reply;
    if (reply === null) return undefined;
    const rows = listOf(listOf(listOf(reply)[0])[1]).map(entryRowOf);
    const entries: Entry[] = [];
    let prev = { revision: after.revision, chain: after.chain };
    for (const row of rows) {
      if (row.revision !== prev.revision + 1) return broken("compacted");
      if (row.prev !== prev.chain) return broken("chain");
      entries.push(entryOf(this.partition, row));
      prev = row;
    }
    return { kind: "entries", entries };
  }
}

function broken(cause: RelistCause): PollResult {
  return { kind: "broken", cause };
}
