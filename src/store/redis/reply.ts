/** Replies of Redis as bytes, and their errors as faults. */
import { Fault, storeUnavailable } from "../../domain/fault.js";
import { NewerFormatError } from "../codec/storage.js";

export type Reply = Buffer | number | null | Reply[];

export function textOf(reply: Reply | undefined): string {
  if (reply instanceof Uint8Array) return reply.toString("latin1");
  if (typeof reply === "number") return String(reply);
  throw unexpected(reply, "text");
}

export function numberOf(reply: Reply | undefined): number {
  const value = typeof reply === "number" ? reply : Number(textOf(reply));
  if (!Number.isFinite(value)) throw unexpected(reply, "a number");
  return value;
}

export function bytesOf(reply: Reply | undefined): Buffer {
  if (reply instanceof Uint8Array) return reply;
  throw unexpected(reply, "bytes");
}

export function listOf(reply: Reply | undefined): Reply[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply, "a list");
}

function unexpected(reply: Reply | undefined, wanted: string): Error {
  const got = reply === null || reply === undefined ? "nothing" : Array.isArray(reply) ? "a list" : typeof reply;
  return new Error(`Redis answered ${got} where ${wanted} was expected`);
}

/** First words of errors by which Redis says that it cannot serve now, though it can be reached. */
const AWAY = new Set([
  "READONLY",
  "LOADING",
  "MASTERDOWN",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "NOREPLICAS",
  "MISCONF",
  "BUSY",
  "UNBLOCKED",
  "NOAUTH",
  "WRONGPASS",
  "NOPERM",
]);

/** What ioredis says of a command that found its connection gone. */
const LOST = /^(Stream isn't writeable|Connection is closed|Cluster isn't ready)/;

function lost(cause: Error): Error {
  return new Error("the connection to Redis was lost", { cause });
}

/** What is denied to the caller of a script has no word of its own. */
const DENIED_IN_SCRIPT = /^ERR (The user executing the script can't|ACL failure in script)/;

/**
 * What a failed command means for the caller: STORE_FULL, STORE_UNAVAILABLE, or the error itself where a command was
 * wrong, which is a bug of this program.
 */
export function faultOf(error: unknown): unknown {
  if (error instanceof Fault || error instanceof NewerFormatError) return error;
  if (!(error instanceof Error)) return storeUnavailable(error);
  if (error.name !== "ReplyError") return storeUnavailable(LOST.test(error.message) ? lost(error) : error);
  const word = /^[A-Z]+/.exec(error.message)?.[0] ?? "";
  if (word === "OOM")
    return new Fault("STORE_FULL", "the store has no room left: raise maxmemory of Redis, or remove servers", {
      retryAfterMs: 10_000,
      cause: error,
    });
  return AWAY.has(word) || DENIED_IN_SCRIPT.test(error.message) ? storeUnavailable(error) : error;
}

export function isReplyError(error: unknown, word: string): boolean {
  return error instanceof Error && error.name === "ReplyError" && error.message.startsWith(word);
}
