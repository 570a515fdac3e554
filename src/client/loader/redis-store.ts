import type { Cluster, Redis } from "ioredis";
import { DIGEST_PATTERN } from "../../domain/ids.js";
import type { DefinitionStore, StoredDefinition } from "./definition-store.js";

/** An ioredis client, single or Cluster. */
export type RedisClient = Redis | Cluster;

export interface RedisStoreOptions {
  /** `redis[s]://[user:password@]host[:port][/db]`, or a connected client of your own, which stays open when the store closes. */
  readonly redis: string | RedisClient;
  /** What every key begins with; agents that share definitions share it. Default `toolcrib:definition:`. */
  readonly prefix?: string;
  /** How long a definition stays after it was last written, ms; default 7 days. */
  readonly ttlMs?: number;
}

const WEEK_MS = 7 * 24 * 3_600_000;
/** A definition that is not read at once is loaded from the registry instead. */
const COMMAND_MS = 1_000;

/**
 * Definitions in Redis, shared by any number of agents: loaded once by one of them, known to all. Uses GET, SET and DEL. Rejects
 * at once while Redis is away. Throws a TypeError for a `ttlMs` that is no positive whole number.
 */
export function redisStore(options: RedisStoreOptions): DefinitionStore {
  return new RedisStore(options);
}

class RedisStore implements DefinitionStore {
  readonly #redis: string | RedisClient;
  readonly #prefix: string;
  readonly #ttlMs: number;
  #opened: Promise<RedisClient> | undefined;

  constructor({ redis, prefix = "toolcrib:definition:", ttlMs = WEEK_MS }: RedisStoreOptions) {
    if (!Number.isSafeInteger(ttlMs) || ttlMs < 1) throw new TypeError(`ttlMs is ${ttlMs}: give a positive number of whole milliseconds`);
    this.#redis = redis;
    this.#prefix = prefix;
    this.#ttlMs = ttlMs;
  }

  /** One GET each and not one MGET: the keys lie in different slots of a Cluster, and ioredis sends them together anyway. */
  async get(digests: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    const client = await this.#client();
    return Promise.all(digests.map(async (digest) => (await client.getBuffer(this.#key(digest))) ?? undefined));
  }

  async put(definitions: readonly StoredDefinition[]): Promise<void> {
    const client = await this.#client();
    await Promise.all(
      definitions.map(({ digest, bytes }) => client.set(this.#key(digest), Buffer.from(bytes), "PX", this.#ttlMs)),
    );
  }

  async drop(digest: string): Promise<void> {
    await (await this.#client()).del(this.#key(digest));
  }

  async close(): Promise<void> {
    if (typeof this.#redis !== "string" || !this.#opened) return;
    (await this.#opened).disconnect();
  }

  #key(digest: string): string {
    if (!DIGEST_PATTERN.test(digest)) throw new TypeError(`"${digest}" is not a digest`);
    return this.#prefix + digest;
  }

  #client(): Promise<RedisClient> {
    this.#opened ??= typeof this.#redis === "string" ? open(this.#redis) : Promise.resolve(this.#redis);
    return this.#opened;
  }
}

/** ioredis is loaded by those alone who use it: an agent without Redis starts without it. */
async function open(url: string): Promise<Redis> {
  const { Redis } = await import("ioredis");
  const client = new Redis(url, {
    protocol: 2,
    connectionName: "toolcrib-agent",
    connectTimeout: COMMAND_MS,
    commandTimeout: COMMAND_MS,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    disableClientInfo: true,
    lazyConnect: true,
    retryStrategy: (times) => Math.min(50 * times, COMMAND_MS),
  });
  // Each failed command says the same to whoever sent it.
  client.on("error", () => undefined);
  // Refused here, it is tried again in the background; commands fail until then.
  await client.connect().catch(() => undefined);
  return client;
}
