/** A store on Redis 7 or newer, shared by any number of replicas. */
import type { Logger, Random, Store } from "../../catalogue/ports.js";
import { REDIS_FORMS, type RedisNode, readRedisAddress } from "../../domain/redis-address.js";
import { DEFAULT_WINDOW } from "../memory/memory-store.js";
import type { Window } from "../prepare.js";
import { type Access, readSecret } from "./client.js";
import { Connection } from "./connection.js";
import { partitionKeys } from "./keys.js";
import { redisPartition } from "./partition.js";
import { Tail } from "./tail.js";

export interface RedisStoreOptions {
  /** One of REDIS_FORMS. */
  readonly url: string;
  readonly random: Random;
  readonly logger: Logger;
  /** `toolcrib:` if unsaid. No braces. */
  readonly keyPrefix?: string;
  /** Fixed when the store is created; what the store has if unsaid, 1 for a new one. */
  readonly partitions?: number | undefined;
  /** LIMITS.windowRevisions and LIMITS.windowBytes if unsaid. */
  readonly window?: Window;
  /** A command that is not answered within this has failed; 3 s if unsaid. */
  readonly commandTimeoutMs?: number;
  /** How long to wait for Redis before going on without; 2 s if unsaid. */
  readonly openTimeoutMs?: number;
  /** How often settings, rights and the number of partitions are looked at again; 30 s if unsaid. */
  readonly lookMs?: number;
  readonly files?: RedisFiles;
  /** Hears of every server that is connected to. */
  readonly onNode?: (node: RedisNode) => void;
  /** Hears the number of partitions of the store where it is not the one that this was opened with; opening again helps. */
  readonly onPartitions?: (count: number) => void;
}

/** Paths of files that hold what is shown to Redis; empty or unsaid = none. */
export interface RedisFiles {
  readonly password?: string;
  readonly sentinelPassword?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Answers also when Redis is away: then calls throw STORE_UNAVAILABLE until it is there. Throws an Error, in one sentence,
 * for a bad setting and for a Redis that does not fit.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const { random, logger, keyPrefix = "toolcrib:", window = DEFAULT_WINDOW } = options;
  const access = accessOf(options.url, options.files ?? {});
  if (/[{}]/.test(keyPrefix))
    throw new Error(`the key prefix ${keyPrefix} must not hold braces: they decide where Redis Cluster keeps a key`);
  const connection = new Connection({
    access,
    keyPrefix,
    partitions: options.partitions,
    logger,
    commandTimeoutMs: options.commandTimeoutMs ?? 3_000,
    openTimeoutMs: options.openTimeoutMs ?? 2_000,
    lookMs: options.lookMs ?? 30_000,
    onNode: options.onNode ?? (() => {}),
    onPartitions: (count) => options.onPartitions?.(count),
  });
  await connection.open();
  const count = options.partitions ?? connection.partitions ?? 1;
  const tails: Tail[] = [];
  const partitions = Array.from({ length: count }, (_, partition) => {
    const keys = partitionKeys(keyPrefix, partition);
    const tail = new Tail(access, partition, keys);
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
function accessOf(url: string, { password = "", sentinelPassword = "", ca = "", cert = "", key = "" }: RedisFiles): Access {
  const address = readRedisAddress(url);
  if (!address) throw new Error(`the address of Redis must be ${REDIS_FORMS}`);
  const shown = password === "" ? address.password : secretIn("--redis-password-file", password);
  const toSentinels = sentinelPassword === "" ? "" : secretIn("--redis-sentinel-password-file", sentinelPassword);
  return { address, password: shown, sentinelPassword: toSentinels, ca, cert, key };
}

/** Without the line's end that editors add. */
function secretIn(setting: string, path: string): string {
  const secret = readSecret(setting, path).replace(/\r?\n$/, "");
  if (secret === "") throw new Error(`the file of ${setting}, ${path}, is empty`);
  return secret;
}
