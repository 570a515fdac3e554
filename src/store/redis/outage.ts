/** Why Redis cannot be used, in a sentence for whoever set --store. */
import type { RedisAddress } from "../../domain/redis-address.js";

type Kind = RedisAddress["topology"]["kind"];

/** `text` begins a sentence that ends with `; trying again`; `reason` is what Redis or the client said. */
export interface Outage {
  readonly text: string;
  readonly reason: string;
  /** For callers that are refused meanwhile. */
  readonly problem: unknown;
}

export function outageOf(error: unknown, { topology }: RedisAddress): Outage {
  const said = saidBy(error);
  const wrong = wrongAddress(said, topology.kind, topology.kind === "sentinel" ? topology.name : "");
  const problem = wrong === undefined ? error : new Error(wrong, { cause: error });
  return { text: wrong ?? plain(error), reason: said, problem };
}

function plain(error: unknown): string {
  if (!(error instanceof Error)) return "Redis cannot be reached";
  if (/^(WRONGPASS|NOAUTH)/.test(error.message)) return "Redis does not take the user or password of --store";
  return error.name === "ReplyError" ? "Redis answers that it cannot be used now" : "Redis cannot be reached";
}

/** What listens there is something else than --store says; undefined where nothing hints at that. */
function wrongAddress(said: string, kind: Kind, name: string): string | undefined {
  if (/Unknown RESP type|Protocol error, got/i.test(said)) return "what listens at the address of --store is no Redis";
  const unknown = /unknown command '?`?(\w+)/i.exec(said)?.[1]?.toLowerCase();
  switch (kind) {
    case "sentinel":
      if (/No such master/i.test(said)) return `the Sentinels of --store know no primary by the name of ${name}`;
      return unknown === "sentinel"
        ? "a Redis and no Sentinel listens at the address of --store: name the Sentinels, or write redis:// for a Redis alone"
        : undefined;
    case "cluster":
      if (/cluster support disabled/i.test(said))
        return "the Redis of --store is no node of a Cluster: write redis:// instead of redis+cluster://";
      return unknown === "cluster" ? SENTINEL : undefined;
    case "single":
      return unknown === "eval" ? SENTINEL : undefined;
  }
}

const SENTINEL =
  "what listens at the address of --store runs no scripts, as a Sentinel does not: write redis+sentinel://HOST:PORT/NAME for " +
  "Sentinels, or name the Redis itself";

/**
 * A Cluster says only that no node could be asked; why is a level deeper. The arguments of a refused command are the
 * registry's scripts, and no bug is to be reported to the client's authors.
 */
function saidBy(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { lastNodeError } = error as { lastNodeError?: unknown };
  const whole = lastNodeError instanceof Error ? `${error.message} ${lastNodeError.message}` : error.message;
  return whole.replace(/, with args beginning with:.*$/s, "").replace(/ Please report this\.?/, "");
}
