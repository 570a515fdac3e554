/** A store on Redis 7 or newer, shared by any number of replicas. */
import type { Logger, Random, Store } from "../../catalogue/ports.js";
import { DEFAULT_WINDOW } from "../memory/memory-store.js";
import type { Window } from "../prepare.js";
import { Connection } from "./connection.js";
import { partitionKeys } from "./keys.js";
import { redisPartition } from "./partition.js";
import { Tail } from "./tail.js";

export interface RedisStoreOptions {
  /** `redis://` or `rediss://`, with user, password and database as usual. */
  readonly url: string;
  readonly random: Random;
  readonly logger: Logger;
  /** `toolcrib:` if unsaid. No braces. */
  readonly keyPrefix?: string;
  /** Fixed when the store is created; 1 if unsaid. */
  readonly partitions?: number;
  /** LIMITS.windowRevisions and LIMITS.windowBytes if unsaid. */
  readonly window?: Window;
  /** A command that is not answered within this has failed; 3 s if unsaid. */
  readonly commandTimeoutMs?: number;
  /** How long to wait for Redis before going on without; 2 s if unsaid. */
  readonly openTimeoutMs?: number;
}

/**
 * Answers also when Redis is away: then calls throw STORE_UNAVAILABLE until it is there. Throws an Error, in one sentence,
 * for a bad setting and for a Redis that does not fit.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const { url, random, logger, keyPrefix = "toolcrib:", partitions: count = 1, window = DEFAULT_WINDOW } = options;
  checkSettings(url, keyPrefix);
  const connection = new Connection({
    url,
    keyPrefix,
    partitions: count,
    logger,
    commandTimeoutMs: options.commandTimeoutMs ?? 3_000,
    openTimeoutMs: options.openTimeoutMs ?? 2_000,
  });
  await connection.open();
  const tails: Tail[] = [];
  const partitions = Array.from({ length: count }, (_, partition) => {
    const keys = partitionKeys(keyPrefix, partition);
    const tail = new Tail(url, partition, keys);
    tails.push(tail);
    return redisPartition({ partition, connection, tail, keys, random, window });
  });
  return {
    kind: "redis",
    partitions,
    async close() {
      connection.close();
      for (const tail of tails) tail.close();
    },
  };
}

/** The URL is never repeated: it may hold a password. */
function checkSettings(url: string, keyPrefix: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed?.hostname || (parsed.protocol !== "redis:" && parsed.protocol !== "rediss:"))
    throw new Error(
      "the address of Redis must be a URL such as redis://127.0.0.1:6379 or rediss://user:password@host:6380/0",
    );
  if (/[{}]/.test(keyPrefix))
    throw new Error(`the key prefix ${keyPrefix} must not hold braces: they decide where Redis Cluster keeps a key`);
}
