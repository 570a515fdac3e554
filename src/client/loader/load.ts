import type { Follower } from "../follower/follower.js";

/** The labels that a loader goes by: a follower, started or not. */
export type Labels = Pick<Follower, "stub" | "stubs" | "state" | "on">;

/**
 * `live`: just read from its server. `cached`: the definition under the tool's present digest. `stale`: the last one known;
 * nobody can say now whether it still is: the registry, its store or the tool's server is away.
 */
export type Freshness = "live" | "cached" | "stale";

/** A tool with its whole definition. */
export interface LoadedTool {
  readonly toolId: string;
  /** `sha256:` and 64 hex digits, of the whole definition. */
  readonly digest: string;
  /** UTF-8 JSON text of the MCP tool object, byte for byte as the registry has it. Not to be written to. */
  readonly bytes: Uint8Array;
  readonly freshness: Freshness;
  /** Where it was found this time. */
  readonly from: "memory" | "store" | "registry";
}

/** A tool that was asked for and is left out. */
export interface MissingTool {
  readonly toolId: string;
  readonly why: MissingWhy;
  /** A sentence that names the tool and the cause. */
  readonly message: string;
  /** When to ask again, ms, where the registry said so. */
  readonly retryAfterMs?: number;
  /** What can be used in its place: its first substitute that is here, else the next best candidate. */
  readonly instead?: LoadedTool;
}

export type MissingWhy =
  /** Not here within the turn's deadline; it goes on loading, and is likely here at the next turn. */
  | "late"
  /** Not registered, or not any more. */
  | "gone"
  /** The registry answered that it cannot be had. */
  | "failed"
  /** The registry cannot be asked, and the definition is not known here. */
  | "unreachable";

/** What one turn got. */
export interface Load {
  /** In the order asked. */
  readonly tools: readonly LoadedTool[];
  /** In the order asked. */
  readonly missing: readonly MissingTool[];
}

export interface LoadOptions {
  /** For the whole turn, ms; default the loader's. */
  readonly deadlineMs?: number;
  /** The next best candidates, the best first: offered in place of what is missing. */
  readonly next?: readonly string[];
}

/** What became of one tool. */
export type Brought =
  | { readonly kind: "loaded"; readonly tool: LoadedTool }
  /** `substitutes` are tool_ids that the registry named. */
  | { readonly kind: "missing"; readonly missing: MissingTool; readonly substitutes: readonly string[] };

export function missing(
  toolId: string,
  why: MissingWhy,
  message: string,
  more: { readonly retryAfterMs?: number | undefined; readonly substitutes?: readonly string[] } = {},
): Brought {
  const { retryAfterMs, substitutes = [] } = more;
  return {
    kind: "missing",
    missing: { toolId, why, message, ...(retryAfterMs !== undefined && { retryAfterMs }) },
    substitutes,
  };
}
