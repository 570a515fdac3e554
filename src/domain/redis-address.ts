/** How a Redis is named: one server, a primary that Sentinels know, or a Cluster. */

export interface RedisNode {
  /** Without the brackets of an IPv6 literal. */
  readonly host: string;
  readonly port: number;
}

export type RedisTopology =
  | { readonly kind: "single"; readonly node: RedisNode; readonly database: number }
  /** The Sentinels say which server is the primary `name`. */
  | { readonly kind: "sentinel"; readonly sentinels: readonly RedisNode[]; readonly name: string; readonly database: number }
  /** Some nodes of it; the others are learned from them. */
  | { readonly kind: "cluster"; readonly nodes: readonly RedisNode[] };

export interface RedisAddress {
  readonly topology: RedisTopology;
  readonly tls: boolean;
  /** Empty = none. */
  readonly user: string;
  readonly password: string;
}

const REDIS_PORT = 6_379;
const SENTINEL_PORT = 26_379;

/** What a refusal says is expected. */
export const REDIS_FORMS =
  "redis://host[:port][/db], redis+sentinel://host[:port],…/primary[/db] or redis+cluster://host[:port],… (rediss… for TLS), " +
  "each with user:password@ before the hosts where needed, and # ? / @ in a password written as %23 %3F %2F %40";

// A password with an unescaped / ? # or @ would move the end of the hosts, so none of them fits here.
const SHAPE = /^(rediss?)(\+sentinel|\+cluster)?:\/\/(?:([^@/?#\s]*)@)?([^@/?#\s]+?)(?:\/([^@?#\s]*))?$/;
const NODE = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/;
const DATABASE = /^\d{0,4}$/;
const NAME = /^[A-Za-z0-9._-]{1,128}$/;

/** Undefined for anything that is not one of REDIS_FORMS. */
export function readRedisAddress(text: string): RedisAddress | undefined {
  const match = SHAPE.exec(text);
  if (!match) return undefined;
  const [, scheme, kind = "", userInfo = "", hosts = "", path = ""] = match;
  const caller = readUserInfo(userInfo);
  const nodes = hosts.split(",").map((host) => readNode(host, kind === "+sentinel" ? SENTINEL_PORT : REDIS_PORT));
  const topology = topologyOf(kind, nodes.flatMap((node) => node ?? []), path);
  if (!topology || !caller || nodes.includes(undefined)) return undefined;
  return { topology, tls: scheme === "rediss", ...caller };
}

function topologyOf(kind: string, nodes: readonly RedisNode[], path: string): RedisTopology | undefined {
  const [first] = nodes;
  if (!first) return undefined;
  if (kind === "+cluster") return path === "" || path === "0" ? { kind: "cluster", nodes } : undefined;
  if (kind === "+sentinel") {
    const [name = "", database = "", ...rest] = path.split("/");
    if (!NAME.test(name) || !DATABASE.test(database) || rest.length > 0) return undefined;
    return { kind: "sentinel", sentinels: nodes, name, database: Number(database) };
  }
  if (nodes.length > 1 || !DATABASE.test(path)) return undefined;
  return { kind: "single", node: first, database: Number(path) };
}

function readNode(text: string, usualPort: number): RedisNode | undefined {
  const match = NODE.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = match?.[3] === undefined ? usualPort : Number(match[3]);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

function readUserInfo(text: string): { user: string; password: string } | undefined {
  const colon = text.indexOf(":");
  const [user, password] = colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
  try {
    return { user: decodeURIComponent(user), password: decodeURIComponent(password) };
  } catch {
    return undefined;
  }
}

/** The hosts that the address names. */
export function redisNodes({ topology }: RedisAddress): readonly RedisNode[] {
  switch (topology.kind) {
    case "single":
      return [topology.node];
    case "sentinel":
      return topology.sentinels;
    case "cluster":
      return topology.nodes;
  }
}

/** For logs and people: what it is and where, without user and password. */
export function describeRedis(address: RedisAddress): string {
  const hosts = redisNodes(address).map(formatNode).join(",");
  switch (address.topology.kind) {
    case "single":
      return `Redis at ${hosts}`;
    case "sentinel":
      return `Redis ${address.topology.name} by the Sentinels at ${hosts}`;
    case "cluster":
      return `Redis Cluster at ${hosts}`;
  }
}

export function formatNode({ host, port }: RedisNode): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
