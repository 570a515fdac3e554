/** Whether a Redis fits: its version, what its user may do, how it is set, and the partitions that the store has. */
import type { Logger } from "../../catalogue/ports.js";
import type { RedisSettings } from "./advice.js";
import { adviceOn } from "./advice.js";
import { metaKey } from "./keys.js";
import type { Reply } from "./reply.js";
import { listOf, textOf } from "./reply.js";
import { checkRights, deniedCommand } from "./rights.js";
import { MisfitError, type Send } from "./send.js";

/** Scripts with flags came with this one. */
const OLDEST_MAJOR = 7;

export interface Wanted {
  readonly keyPrefix: string;
  /** As the ACL knows it; empty = default. */
  readonly user: string;
  /** Undefined takes what the store has. */
  readonly partitions: number | undefined;
  readonly logger: Logger;
  /** What was said before: nothing is said twice. */
  readonly said: Set<string>;
}

/** One server that holds keys of the registry. */
export interface CheckedServer {
  readonly name: string;
  readonly send: Send;
}

/** Throws a MisfitError where the registry cannot work. Everything else is advice, and goes to the log. */
export async function checkServer({ name, send }: CheckedServer, wanted: Wanted): Promise<void> {
  const info = await readInfo(send);
  const version = info?.get("redis_version") ?? "";
  if (version !== "" && Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new MisfitError(`Redis ${version} is too old: version ${OLDEST_MAJOR} or newer is needed`);
  await checkRights(send, wanted.keyPrefix, wanted.user);
  const config = await readConfig(send);
  sayOnce(wanted, name, unread(info, config));
  for (const { level, settings, text } of adviceOn(settingsOf(info, config)))
    sayOnce(wanted, name, { level, facts: settings, text });
}

/** Records the number of partitions in a new store; answers what the store has. */
export async function checkPartitions(send: Send, { keyPrefix, partitions }: Wanted): Promise<number> {
  const key = metaKey(keyPrefix);
  await send("HSETNX", [key, "partitions", partitions ?? 1]);
  const created = Number(textOf(await send("HGET", [key, "partitions"])));
  if (partitions !== undefined && created !== partitions)
    throw new MisfitError(
      `the store under the prefix ${keyPrefix} was created with ${created} partitions, and ${partitions} were asked for: the number is fixed when a store is created`,
    );
  return created;
}

type Facts = ReadonlyMap<string, string>;

/** Undefined where it is denied: some hosts forbid it, and everything else works without it. */
async function readInfo(send: Send): Promise<Facts | undefined> {
  const reply = await unlessDenied(() => send("INFO", []));
  if (reply === undefined) return undefined;
  const lines = textOf(reply).split("\r\n");
  return new Map(lines.flatMap((line) => (line.includes(":") ? [line.split(/:(.*)/s) as [string, string]] : [])));
}

const READ = ["maxmemory-policy", "maxmemory", "appendonly", "appendfsync", "save", "min-replicas-to-write"] as const;

async function readConfig(send: Send): Promise<Facts | undefined> {
  const reply = await unlessDenied(() => send("CONFIG", ["GET", ...READ]));
  if (reply === undefined) return undefined;
  const flat = listOf(reply).map(textOf);
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) pairs.push([flat[i] ?? "", flat[i + 1] ?? ""]);
  return new Map(pairs);
}

async function unlessDenied(ask: () => Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (deniedCommand(error) !== undefined) return undefined;
    if (error instanceof Error && /^ERR unknown (sub)?command/i.test(error.message)) return undefined;
    throw error;
  }
}

/** INFO tells a part of what CONFIG GET does. */
function settingsOf(info: Facts | undefined, config: Facts | undefined): RedisSettings {
  const aof = info?.get("aof_enabled");
  return {
    "maxmemory-policy": config?.get("maxmemory-policy") ?? info?.get("maxmemory_policy"),
    maxmemory: config?.get("maxmemory") ?? info?.get("maxmemory"),
    appendonly: config?.get("appendonly") ?? (aof === undefined ? undefined : aof === "1" ? "yes" : "no"),
    appendfsync: config?.get("appendfsync"),
    save: config?.get("save"),
    "min-replicas-to-write": config?.get("min-replicas-to-write"),
    replicas: info?.get("connected_slaves"),
  };
}

interface Saying {
  readonly level: "warn" | "info";
  readonly facts: Readonly<Record<string, string>>;
  readonly text: string;
}

function unread(info: Facts | undefined, config: Facts | undefined): Saying | undefined {
  if (config) return undefined;
  const text = info
    ? "this Redis does not let the registry read its settings, so appendfsync and save were not checked: allow +config|get, or see to " +
      "appendonly yes and maxmemory-policy noeviction yourself"
    : "this Redis lets the registry read neither its settings nor its state, so version, eviction and persistence were not checked: " +
      "allow +info and +config|get, or see to appendonly yes and maxmemory-policy noeviction yourself";
  return { level: "info", facts: {}, text };
}

function sayOnce({ logger, said }: Wanted, redis: string, saying: Saying | undefined): void {
  if (!saying) return;
  const key = JSON.stringify([redis, saying.facts, saying.text]);
  if (said.has(key)) return;
  said.add(key);
  logger[saying.level]({ redis, ...saying.facts }, saying.text);
}
