/** What an operator should know about how a Redis is set. */

/** Settings as Redis writes them; undefined where it would not tell. */
export interface RedisSettings {
  readonly "maxmemory-policy": string | undefined;
  /** Bytes; 0 = without limit. */
  readonly maxmemory: string | undefined;
  readonly appendonly: string | undefined;
  readonly appendfsync: string | undefined;
  /** Empty = no snapshots. */
  readonly save: string | undefined;
  readonly "min-replicas-to-write": string | undefined;
  /** How many replicas are connected. */
  readonly replicas: string | undefined;
}

export interface Advice {
  readonly level: "warn" | "info";
  /** The settings it is about, with their values. */
  readonly settings: Readonly<Record<string, string>>;
  /** What it means and what to set. */
  readonly text: string;
}

export function adviceOn(settings: RedisSettings): readonly Advice[] {
  return [eviction(settings), persistence(settings), splitBrain(settings)].filter((one) => one !== undefined);
}

function eviction({ "maxmemory-policy": policy, maxmemory }: RedisSettings): Advice | undefined {
  // Without a limit it is never full, and nothing is evicted.
  if (policy === undefined || policy === "noeviction" || maxmemory === "0") return undefined;
  const settings = { "maxmemory-policy": policy };
  if (policy.startsWith("allkeys-"))
    return {
      level: "warn",
      settings,
      text:
        "when it is full, Redis throws away keys of the registry: parts of the catalogue, leases or the log would be gone " +
        "without a word, and every watcher would have to start over. Set maxmemory-policy noeviction; the registry then " +
        "refuses new servers (STORE_FULL) and keeps what it has",
    };
  // Only notes have an expiry: records, log, leases and definitions have none, since an expiry must be an event.
  return {
    level: "warn",
    settings,
    text:
      "when it is full, Redis throws away keys that have an expiry. The catalogue, its leases and definitions have none and " +
      "stay; the claims by which replicas share their work have one, so that two replicas may do the same work. Set " +
      "maxmemory-policy noeviction",
  };
}

function persistence({ appendonly, appendfsync, save }: RedisSettings): Advice | undefined {
  if (appendonly === undefined) return undefined;
  if (appendonly === "yes") {
    if (appendfsync !== "no") return undefined;
    return {
      level: "warn",
      settings: { appendonly, appendfsync },
      text:
        "the operating system decides when Redis's writes reach the disk, commonly after up to 30 s: a crash of the machine " +
        "loses what was written since, and the catalogue goes back by as much. Set appendfsync everysec",
    };
  }
  if (save === "")
    return {
      level: "warn",
      settings: { appendonly, save },
      text:
        "Redis keeps nothing over a restart: every watcher has to start over, leased servers come back when they register " +
        "again, standing servers only from a replica that still runs, and stored definitions are fetched anew. Set " +
        "appendonly yes",
    };
  return {
    level: "warn",
    settings: { appendonly, ...(save !== undefined && { save }) },
    text:
      "Redis writes no append-only file: a restart takes the catalogue back to the last snapshot, if any, and every watcher has " +
      "to start over. Set appendonly yes",
  };
}

function splitBrain(settings: RedisSettings): Advice | undefined {
  const { replicas, "min-replicas-to-write": least } = settings;
  if (replicas === undefined || replicas === "0" || least !== "0") return undefined;
  return {
    level: "info",
    settings: { replicas, "min-replicas-to-write": least },
    text:
      "a primary that is cut off from its replicas goes on taking writes, which a failover then loses. Set " +
      "min-replicas-to-write 1 to refuse them",
  };
}
