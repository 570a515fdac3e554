/** What the registry's user must be allowed to do in Redis, and whether it is. */
import type { RedisAddress } from "../../domain/redis-address.js";
import { partitionKeys } from "./keys.js";
import { MisfitError, type Send } from "./send.js";
import { listOf, textOf } from "./reply.js";
import { SCRIPTS } from "./script.js";

/** Their first argument is a key, but for the three below. */
const ON_KEYS = (
  "get set del exists hget hset hsetnx hmget hdel hscan sadd srem sismember smembers " +
  "zadd zrem zscore zcard zcount zrangebyscore zremrangebyscore xadd xtrim xrange"
).split(" ");
/** Named without arguments: XREAD has its keys at the end, TIME has none. */
const PLAIN = ["time", "xread"];
/** Without these nothing can be asked about the others. */
const SCRIPTING = ["eval", "evalsha"];
/** The registry works without them, and then cannot see how Redis is set. */
const LOOKS = ["info", "config|get", "client|setname"];
const CLUSTER = ["cluster|slots", "cluster|info", "asking"];

/**
 * The least that a user needs, as the arguments of ACL SETUSER after its name and password. `database`: it is not
 * database 0.
 */
export function aclRule(prefix: string, kind: RedisAddress["topology"]["kind"], database = false): string {
  const extra = [...(kind === "cluster" ? CLUSTER : []), ...(database ? ["select"] : [])];
  const commands = [...LOOKS, ...SCRIPTING, ...PLAIN, ...ON_KEYS, ...extra];
  return `~${prefix}* resetchannels -@all ${commands.map((name) => `+${name}`).join(" ")}`;
}

/** Throws a MisfitError that names what is missing. */
export async function checkRights(send: Send, prefix: string, user: string): Promise<void> {
  const who = `the user ${user || "default"} of this Redis`;
  let answer: string[];
  try {
    const args = [partitionKeys(prefix, 0).head, PLAIN.length, ...PLAIN, ...ON_KEYS];
    answer = listOf(await send("EVAL", [SCRIPTS.rights.source, 0, ...args])).map(textOf);
  } catch (error) {
    const denied = deniedCommand(error);
    if (denied !== undefined) throw missing(who, [denied]);
    // Some that speak Redis's language cannot be asked this; they say NOPERM when it comes to it.
    if (error instanceof Error && /acl_check_cmd/.test(error.message)) return;
    throw error;
  }
  const [mayGet, ...commands] = answer;
  if (mayGet === "1" && ON_KEYS.every((name) => commands.includes(name)))
    throw new MisfitError(`${who} may not use the keys ${prefix}*: grant them (ACL SETUSER ${user || "default"} ~${prefix}*)`);
  // EVALSHA cannot be asked about in a script: one that nobody knows would only be answered NOSCRIPT.
  const denied = deniedCommand(await send("EVALSHA", ["0".repeat(40), 0]).catch((error: unknown) => error));
  const all = denied === undefined ? commands : ["evalsha", ...commands];
  if (all.length > 0) throw missing(who, all);
}

function missing(who: string, commands: readonly string[]): MisfitError {
  const rights = commands.map((name) => `+${name}`).join(" ");
  return new MisfitError(
    `${who} may not run ${commands.map((name) => name.toUpperCase()).join(", ")}: grant it ${rights} (ACL SETUSER)`,
  );
}

/** The command that Redis refused for want of a right. */
export function deniedCommand(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return /^NOPERM .*'([^']+)'/.exec(error.message)?.[1];
}
