/** What the gate needs of the rooms beside it; they are wired where a replica is put together. */
import type { Fault } from "../domain/fault.js";
import type { Position } from "../domain/revision.js";
import type { Availability, Tool } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";
import type { Pace } from "./live-index.js";

/** A tool as the catalogue holds it now, also one that is withheld. */
export interface ListedTool {
  readonly tool: Tool;
  readonly serverId: string;
  /** What its server is called; its id where it has no title. */
  readonly service: string;
  readonly availability: Availability;
  /** The tools of its server, this one among them, withheld ones only where it is one itself; never written to. */
  readonly siblings: readonly Tool[];
}

/** What one question is answered from. */
export interface Cut {
  readonly position: Position;
  readonly stale: boolean;
  /** Undefined for a tool that is not there. */
  tool(toolId: string): ListedTool | undefined;
  /** The listed tools of a server, in name order; undefined for a server that is not there. */
  server(serverId: string): readonly Tool[] | undefined;
  servers(): readonly { readonly serverId: string; readonly names: readonly Tool[] }[];
}

export interface GateCatalogue {
  /** The cut that answers a read; waits for `minRevision` if it is not empty. Throws Fault as every read does. */
  at(namespace: string, minRevision: string): Promise<Cut>;
  /** What the index should hold of a tool now: also what is about to be served, and is not yet. */
  current(namespace: string, toolId: string): ListedTool | undefined;
  all(namespace: string): Iterable<ListedTool>;
  /** Definitions from the store by digest, in order; undefined where there is none, or no store. Never rejects. */
  definitions(namespace: string, digests: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
}

export type SchemaView = "full" | "input-only" | "compact";

export interface Schema {
  readonly toolId: string;
  readonly definition: Uint8Array;
  readonly digest: string;
  readonly freshness: "live" | "cached" | "stale";
  readonly fetchedAtMs: number;
}

export type LoadedSchema =
  { readonly kind: "schema"; readonly schema: Schema } | { readonly kind: "fault"; readonly fault: Fault };

/** Loads side by side, one answer per tool, in order; at most LIMITS.batchTools. */
export type LoadSchemas = (
  namespace: string,
  toolIds: readonly string[],
  view: SchemaView,
  deadlineMs: number | undefined,
) => Promise<readonly LoadedSchema[]>;

/** Reads a label back from its stored bytes. */
export type DecodeStub = (stub: Uint8Array) => StubFields;

/**
 * Where what past calls taught is kept: small bytes by key inside a namespace, with compare-and-set and expiry. Versions grow with every
 * put. Throws Fault STORE_UNAVAILABLE.
 */
export interface PastStore {
  get(namespace: string, key: string): Promise<{ readonly bytes: Uint8Array; readonly version: number } | undefined>;
  /** Writes where the version is `expect` (0 = absent) and answers the new one; undefined where it is another. */
  put(namespace: string, key: string, bytes: Uint8Array, ttlMs: number, expect: number): Promise<number | undefined>;
}

export interface Clocked {
  /** Wall clock, ms since the epoch. */
  now(): number;
}

export interface GateClock extends Pace, Clocked {
  /** Resolves after `ms`, or at once (without throwing) when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
