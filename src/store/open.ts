/** Opens the store that a setting names. */
import type { Clock, Logger, Random, Store } from "../catalogue/ports.js";
import { openEmbeddedStore } from "./embedded/embedded-store.js";
import { MemoryStore } from "./memory/memory-store.js";
import type { Window } from "./prepare.js";
import { openRedisStore, type RedisStoreOptions } from "./redis/redis-store.js";

export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Folder of the embedded store. */
  readonly dataDir: string;
  /** Prefix of all keys in Redis; `toolcrib:` if unsaid. */
  readonly keyPrefix?: string;
  /** Fixed when a store is created; what the store has if unsaid, 1 for a new one. */
  readonly partitions?: number | undefined;
  /** LIMITS.windowRevisions and LIMITS.windowBytes if unsaid. */
  readonly window?: Window;
  /** What only Redis needs. */
  readonly redis?: Pick<RedisStoreOptions, "files" | "onNode" | "onPartitions">;
}

/**
 * `memory`, `embedded`, or one of REDIS_FORMS. Throws an Error with one sentence for the operator when the
 * setting is none of them or the store cannot be used; a Redis that is away is no such case.
 */
export async function openStore(setting: string, options: OpenStoreOptions): Promise<Store> {
  if (setting === "memory") return new MemoryStore(options.clock, options.random, options);
  if (setting === "embedded") return openEmbeddedStore(options);
  if (/^rediss?(\+[a-z]+)?:/.test(setting)) return openRedisStore({ ...options, ...options.redis, url: setting });
  // Not repeated when it could hold a password.
  const shown = setting.includes("@") ? "the given one" : `'${setting}'`;
  throw new Error(`the store must be memory, embedded, or a redis:// or rediss:// URL, not ${shown}`);
}
