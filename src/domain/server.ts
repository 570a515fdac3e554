/** The state of one MCP server in the catalogue. Values are immutable; a change makes a new one. */
import type { Probing } from "./health/probing.js";
import type { Laid } from "./overlay.js";
import type { Quarantine } from "./quarantine.js";

export type Availability = "available" | "unavailable";
export type ToolSource = "declared" | "introspected";
export type Retention = "leased" | "standing";
/** `http-sse` is that of MCP 2024-11-05: a GET stream that names where to post. */
export type Transport = "streamable-http" | "http-sse";

/** One listed tool: its encoded label and the few decoded facts that filters and loads need. */
export interface Tool {
  readonly name: string;
  /** An encoded `toolcrib.v1.Stub` without availability. Encoded once, when it enters. */
  readonly stub: Uint8Array;
  /** Effective tags, sorted. */
  readonly tags: readonly string[];
  /** Empty until the definition was first seen. */
  readonly digest: string;
  /** The registrant gave the digest (true), or a load or listing learned it (false). */
  readonly digestDeclared: boolean;
  /** Other words that an operator approved, and that fit. `stub` has them, but for a trial; `own` is the registrant's own stub. */
  readonly overlay?: Laid;
  /** Withholds the tool unless its digest is the approved one (`isWithheld`). */
  readonly quarantine?: Quarantine;
  /** What a newer version stored beside this and this one does not understand, encoded; kept as it is when the rest is rewritten. */
  readonly beyond?: Uint8Array;
}

/** One running process of a server. */
export interface Instance {
  readonly instanceId: string;
  /** Empty for a standing registration. */
  readonly leaseId: string;
  /** Empty if the instance is never dialled. */
  readonly endpoint: string;
  readonly transport: Transport;
  /** What it registered; the digest of an introspect offer is empty. */
  readonly setDigest: string;
  /** 0 for standing. */
  readonly ttlMs: number;
  readonly registeredAtMs: number;
  /** Revision of its last effective Register. 0 inside a change means that change's own revision. */
  readonly revision: number;
  readonly requestId: string;
  readonly introspect: boolean;
  /** Name of the operator's credential that is shown to it; empty = none. */
  readonly credential: string;
  /** A list that it gave because of the credential, and marked private, may be listed all the same. */
  readonly sharePrivate: boolean;
  /** Whether calls are likely to reach it. */
  readonly availability: Availability;
  readonly probing: Probing;
  /** What a newer version stored beside this and this one does not understand, encoded; kept as it is when the rest is rewritten. */
  readonly beyond?: Uint8Array;
}

/** The breaker as everybody sees it. Half-open is a matter of seconds and of one replica, and so is not published. */
export type PublishedBreaker =
  | { readonly kind: "closed" }
  | { readonly kind: "open"; readonly sinceMs: number; readonly untilMs: number; readonly attempt: number }
  | { readonly kind: "isolated"; readonly sinceMs: number; readonly by: string; readonly why: string };

export const BREAKER_CLOSED: PublishedBreaker = Object.freeze({ kind: "closed" });

export interface RejectedTool {
  readonly name: string;
  readonly reasons: readonly string[];
}

export const CONDITION_TYPES = ["Reachable", "Listed", "AuthRequired", "Slow", "Flapping", "Draining"] as const;

export interface Condition {
  /** The first two are always said once they are known; the others only while they hold. */
  readonly type: (typeof CONDITION_TYPES)[number];
  readonly status: "true" | "false" | "unknown";
  /** A word such as `CONNECT_FAILED`. */
  readonly reason: string;
  readonly message: string;
  readonly sinceMs: number;
}

/** Everything of a server but its tools. */
export interface ServerHeader {
  readonly namespace: string;
  readonly serverId: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly source: ToolSource;
  readonly retention: Retention;
  /** Newest Register last: its set is the server's set, and loads ask it first. */
  readonly instances: readonly Instance[];
  readonly availability: Availability;
  readonly breaker: PublishedBreaker;
  readonly conditions: readonly Condition[];
  /** At most LIMITS.rejectedKept of them. */
  readonly rejected: readonly RejectedTool[];
  readonly rejectedCount: number;
  readonly setDigest: string;
  readonly protocolVersion: string;
  /** 0 if never. */
  readonly listedAtMs: number;
  /** Introspected and never listed yet. */
  readonly pending: boolean;
  /** Id of the principal that registered it first; empty in records from before there were owners. */
  readonly owner: string;
  /** What a newer version stored beside this and this one does not understand, encoded; kept as it is when the rest is rewritten. */
  readonly beyond?: Uint8Array;
}

/** A header with its tools in name order, at the revision that last changed it. */
export interface ServerRecord {
  readonly revision: number;
  readonly header: ServerHeader;
  readonly tools: readonly Tool[];
}

/** The server's etag: opaque, changes with every revision of the server. */
export function etagOf(record: ServerRecord | undefined): string {
  return record ? `r${record.revision}` : "0";
}
