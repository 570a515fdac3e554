/** Connections of ioredis to whatever the address names. */
import { readFileSync } from "node:fs";
import { Cluster, Redis } from "ioredis";
import type { RedisOptions } from "ioredis";
import type { RedisAddress, RedisNode } from "../../domain/redis-address.js";

export type Client = Redis | Cluster;

/** Where Redis is, and what is shown there. */
export interface Access {
  readonly address: RedisAddress;
  /** Empty = none. */
  readonly password: string;
  readonly sentinelPassword: string;
  /** Paths of PEM files; empty = none. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface ClientOptions {
  /** As Redis lists it among its clients. */
  readonly name: string;
  /** Of each connection; timeouts most of all. */
  readonly options: RedisOptions;
  /** Ms until the next attempt, by number of attempts; null: none, and the connection ends. */
  readonly retry: ((times: number) => number) | null;
}

/** Replies come as RESP2, whose lists are the same on all versions. */
const COMMON: RedisOptions = {
  protocol: 2,
  connectTimeout: 2_000,
  autoResendUnfulfilledCommands: false,
  // A command whose connection went away is refused at once; whoever sent it decides whether to send it again.
  maxRetriesPerRequest: 0,
  maxLoadingRetryTime: 1_000,
  // Older servers do not know it, and their ACL rules cannot name it.
  disableClientInfo: true,
  // The primary of before takes no writes: whoever is asked anew for the way there knows the one of now.
  reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 1 : false),
};
const SENTINEL_ANSWER_MS = 2_000;

/** Does not connect yet. */
export function createClient(access: Access, { name, options, retry }: ClientOptions): Client {
  const { topology, user } = access.address;
  const tls = access.address.tls ? tlsOf(access) : undefined;
  const each: RedisOptions = {
    ...COMMON,
    ...options,
    connectionName: name,
    ...(user !== "" && { username: user }),
    ...(access.password !== "" && { password: access.password }),
    ...(tls && { tls }),
  };
  const alone: RedisOptions = { ...each, enableOfflineQueue: false, lazyConnect: true, retryStrategy: retry };
  switch (topology.kind) {
    case "single":
      return new Redis({ ...alone, ...topology.node, db: topology.database });
    case "sentinel":
      return new Redis({
        ...alone,
        sentinels: topology.sentinels.map((node) => ({ ...node })),
        name: topology.name,
        role: "master",
        db: topology.database,
        sentinelRetryStrategy: (times) => retry?.(times) ?? null,
        sentinelCommandTimeout: SENTINEL_ANSWER_MS,
        // Sentinels tell of a failover; without that, a primary that lives on cut off from them would be followed for ever.
        failoverDetector: true,
        ...(access.sentinelPassword !== "" && { sentinelPassword: access.sentinelPassword }),
        ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
      });
    case "cluster":
      return new Cluster([...topology.nodes], {
        redisOptions: each,
        enableOfflineQueue: false,
        lazyConnect: true,
        clusterRetryStrategy: retry,
        // A write whose connection went away may have been done: it is not sent again here.
        retryDelayOnFailover: 0,
        slotsRefreshTimeout: 2_000,
        slotsRefreshInterval: 10_000,
        // Names stay names, which certificates are judged by.
        dnsLookup: (host, done) => done(null, host),
      });
  }
}

/** Files are read again for every connection, so that renewed certificates need no restart. */
function tlsOf({ ca, cert, key }: Access): NonNullable<RedisOptions["tls"]> {
  const files = { ca: fileOf("--redis-ca", ca), cert: fileOf("--redis-cert", cert), key: fileOf("--redis-key", key) };
  return Object.defineProperties(
    {},
    Object.fromEntries(Object.entries(files).flatMap(([name, get]) => (get ? [[name, { get, enumerable: true }]] : []))),
  );
}

/** Answers what the file holds now, or held when it could last be read. Throws if it never could be. */
function fileOf(setting: string, path: string): (() => string) | undefined {
  if (path === "") return undefined;
  let last = readSecret(setting, path);
  return () => {
    try {
      last = readFileSync(path, "utf8");
    } catch {
      // It is being replaced, or was taken away; what was read before may still do, and if not, Redis says so.
    }
    return last;
  };
}

/** Throws an Error that names the setting. */
export function readSecret(setting: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new Error(`the file of ${setting}, ${path}, cannot be read (${why})`, { cause: error });
  }
}

/** Hears of every server that is connected to. */
export function onNode(client: Client, heard: (node: RedisNode) => void): void {
  if (client instanceof Cluster) {
    client.on("+node", ({ options }: Redis) => heard({ host: options.host ?? "", port: options.port ?? 0 }));
    return;
  }
  client.on("connect", () => {
    const { remoteAddress, remotePort } = client.stream as { remoteAddress?: string; remotePort?: number };
    if (remoteAddress !== undefined && remotePort !== undefined) heard({ host: remoteAddress, port: remotePort });
  });
}
