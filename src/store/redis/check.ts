/** Whether a Redis fits: its version, how it evicts, and the number of partitions that the store was created with. */
import type { Logger } from "../../catalogue/ports.js";
import { metaKey } from "./keys.js";
import type { Reply } from "./reply.js";
import { textOf } from "./reply.js";

/** Scripts with flags came with this one. */
const OLDEST_MAJOR = 7;

/** Redis is there and cannot be used as it is. The message is a sentence for the operator. */
export class MisfitError extends Error {
  override readonly name = "MisfitError";
}

type Send = (command: string, args: readonly (string | number)[]) => Promise<Reply>;

export async function checkServer(
  send: Send,
  wanted: { readonly keyPrefix: string; readonly partitions: number; readonly logger: Logger },
): Promise<void> {
  await checkInfo(send, wanted.logger);
  const key = metaKey(wanted.keyPrefix);
  await send("HSETNX", [key, "partitions", wanted.partitions]);
  const created = textOf(await send("HGET", [key, "partitions"]));
  if (created !== String(wanted.partitions))
    throw new MisfitError(
      `the store under the prefix ${wanted.keyPrefix} was created with ${created} partitions, and ${wanted.partitions} were asked for: the number is fixed when a store is created`,
    );
}

async function checkInfo(send: Send, logger: Logger): Promise<void> {
  let info: string;
  try {
    info = textOf(await send("INFO", []));
  } catch (error) {
    // Some hosts forbid INFO. Everything else works without it.
    if (error instanceof Error && /^NOPERM|^ERR unknown command/.test(error.message)) return;
    throw error;
  }
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? "";
  if (version !== "" && Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new MisfitError(`Redis ${version} is too old: version ${OLDEST_MAJOR} or newer is needed`);
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? "";
  if (policy.startsWith("allkeys-"))
    logger.warn({ policy }, "Redis evicts keys when it is full, the registry's too: set maxmemory-policy noeviction");
}
