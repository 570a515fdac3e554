/**
 * What clients of one or more replicas saw, in the order in which one recorder saw it. A history is plain data: chaos runs write
 * it as JSON lines, and validators are functions of it alone. Bytes are base64.
 */
import type { Filter } from "../../src/domain/filter.js";

/** `n` orders everything that one recorder saw; `ms` is its monotonic clock. */
export interface Moment {
  readonly n: number;
  readonly ms: number;
}

export type Outcome<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "error"; readonly reason: string; readonly cause: string; readonly message: string }
  /** No answer came before the history was closed. */
  | { readonly kind: "pending" };

interface Call<K extends string, T> {
  readonly kind: K;
  readonly replica: string;
  readonly namespace: string;
  readonly call: Moment;
  readonly back: Moment | undefined;
  readonly outcome: Outcome<T>;
}

export interface SentTool {
  readonly name: string;
  /** Empty when no well-formed definition came along. */
  readonly digest: string;
  /** The definition; empty when none came along. */
  readonly bytes: string;
}

export interface RegisterCall
  extends Call<
    "register",
    {
      readonly revision: string;
      readonly leaseId: string;
      readonly tools: readonly { readonly name: string; readonly rejected: boolean }[];
    }
  > {
  readonly serverId: string;
  readonly instanceId: string;
  readonly requestId: string;
  readonly offer: "declared" | "introspect" | "none";
  /** 0 for standing. */
  readonly ttlMs: number;
  readonly validateOnly: boolean;
  readonly tools: readonly SentTool[];
}

export interface RenewCall extends Call<"renew", { readonly states: readonly string[] }> {
  readonly leaseIds: readonly string[];
}

export interface DeregisterCall extends Call<"deregister", { readonly revision: string; readonly removed: boolean }> {
  readonly target: { readonly kind: "lease" | "server" | "tool" | "none"; readonly id: string };
}

/** AdminService. */
export interface OperatorCall extends Call<"operator", { readonly revision: string }> {
  readonly action: "isolate" | "resume" | "refresh";
  readonly serverId: string;
}

/** One page of GetStubs. */
export interface StubsCall
  extends Call<
    "stubs",
    {
      readonly revision: string;
      readonly stale: boolean;
      readonly notModified: boolean;
      readonly nextPageToken: string;
      /** The elements of `stubs` as they came, one after the other. */
      readonly frames: string;
    }
  > {
  readonly filter: Filter;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly minRevision: string;
}

export interface SchemaCall
  extends Call<
    "schema",
    {
      readonly revision: string;
      readonly digest: string;
      readonly bytes: string;
      readonly freshness: "live" | "cached" | "stale";
    }
  > {
  readonly toolId: string;
  readonly view: "full" | "part";
  readonly minRevision: string;
}

export interface SeenServer {
  readonly serverId: string;
  readonly available: boolean;
  /** The breaker's word, in lower case. */
  readonly breaker: string;
}

/** ListServers (a page) and GetServer. */
export interface ServersCall
  extends Call<
    "servers",
    { readonly revision: string; readonly stale: boolean; readonly servers: readonly SeenServer[] }
  > {
  readonly minRevision: string;
}

export interface WatchOpened {
  readonly kind: "watch";
  readonly watcher: string;
  readonly replica: string;
  readonly namespace: string;
  readonly at: Moment;
  readonly filter: Filter;
  readonly resumeToken: string;
}

export interface SeenStub {
  readonly toolId: string;
  readonly digest: string;
  readonly tags: readonly string[];
  /** Canonically encoded. */
  readonly bytes: string;
}

export interface SeenEvent {
  readonly type: string;
  /** Empty for AVAILABILITY_CHANGED. */
  readonly toolId: string;
  readonly serverId: string;
  readonly stub: SeenStub | undefined;
  readonly oldDigest: string;
  readonly newDigest: string;
  /** 0 unless it is AVAILABILITY_CHANGED. */
  readonly availability: number;
}

export type WatchMessage =
  | { readonly kind: "snapshot"; readonly stubs: readonly SeenStub[]; readonly last: boolean; readonly token: string; readonly revision: string }
  | { readonly kind: "change"; readonly events: readonly SeenEvent[]; readonly token: string; readonly revision: string }
  | { readonly kind: "bookmark"; readonly token: string; readonly revision: string };

export interface WatchSaid {
  readonly kind: "message";
  readonly watcher: string;
  readonly at: Moment;
  readonly message: WatchMessage;
}

export interface WatchEnded {
  readonly kind: "ended";
  readonly watcher: string;
  readonly at: Moment;
  /** Empty for a watch that its client left. */
  readonly reason: string;
  readonly cause: string;
}

/** What the test did to the world. */
export interface FaultDone {
  readonly kind: "fault";
  /** `store-lost`: acknowledged writes may be gone; `store-away`: it cannot be reached; `replica-down`: killed or frozen. */
  readonly what: "store-lost" | "store-away" | "replica-down";
  /** Empty: all. */
  readonly replica: string;
  readonly from: Moment;
  /** Undefined: to the end of the history. */
  readonly to: Moment | undefined;
}

/** The registry asked an MCP server for something. */
export interface UpstreamAsked {
  readonly kind: "upstream";
  readonly at: Moment;
  readonly endpoint: string;
  readonly method: string;
}

/** The test says that in this time nothing but lists and watches gave the registry a reason to ask a server. */
export interface QuietTime {
  readonly kind: "quiet";
  readonly from: Moment;
  readonly to: Moment;
}

/** What the registrants of a server hold from here on; undefined: nobody holds it any more. */
export interface Belief {
  readonly kind: "belief";
  readonly at: Moment;
  readonly namespace: string;
  readonly serverId: string;
  /** Sorted names. */
  readonly tools: readonly string[] | undefined;
}

/** An MCP server answers every request in this time. */
export interface AnsweringTime {
  readonly kind: "answering";
  readonly namespace: string;
  readonly serverId: string;
  readonly from: Moment;
  readonly to: Moment | undefined;
}

export type AnyCall =
  | RegisterCall
  | RenewCall
  | DeregisterCall
  | OperatorCall
  | StubsCall
  | SchemaCall
  | ServersCall;

export type Item =
  | AnyCall
  | WatchOpened
  | WatchSaid
  | WatchEnded
  | FaultDone
  | UpstreamAsked
  | QuietTime
  | Belief
  | AnsweringTime;

/** What a test knows of its world, in ms. */
export interface Facts {
  /** No commit that was acknowledged is ever lost. Otherwise a test marks each loss as a `store-lost` fault. */
  readonly oneHistory: boolean;
  /** After the last fault the catalogue and its registrants agree within this. */
  readonly healMs: number;
  /** A replica notices within this that its store is away. */
  readonly noticeMs: number;
  /** A call is answered within this. */
  readonly answerMs: number;
  /** A server that answers again is available within this. */
  readonly recoverMs: number;
  /** Revisions that every replica can still look up. */
  readonly window: number;
}

export const DEFAULT_FACTS: Facts = {
  oneHistory: true,
  healMs: 60_000,
  noticeMs: 10_000,
  answerMs: 30_000,
  recoverMs: 400_000,
  window: 10_000,
};

export interface History {
  readonly facts: Facts;
  readonly items: readonly Item[];
  /** When it was closed. */
  readonly end: Moment;
}

export function toJsonLines({ facts, items, end }: History): string {
  return [{ kind: "history", facts, end }, ...items].map((item) => `${JSON.stringify(item)}\n`).join("");
}

export function fromJsonLines(text: string): History {
  const [first, ...items] = text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  if (first?.kind !== "history") throw new Error("the first line of a history says what is known of its world");
  return { facts: first.facts, end: first.end, items };
}

const kinds = new WeakMap<History, ReadonlyMap<string, readonly Item[]>>();

/** All items of one kind, in a list of the caller's own. Long histories are asked for this again and again. */
export function only<K extends Item["kind"]>(history: History, kind: K): Extract<Item, { kind: K }>[] {
  const known = kinds.get(history) ?? byKind(history);
  kinds.set(history, known);
  return [...(known.get(kind) ?? [])] as Extract<Item, { kind: K }>[];
}

function byKind({ items }: History): Map<string, Item[]> {
  const out = new Map<string, Item[]>();
  for (const item of items) {
    const list = out.get(item.kind);
    if (list) list.push(item);
    else out.set(item.kind, [item]);
  }
  return out;
}

/** One broken promise. */
export interface Violation {
  /** `P1` … `P12`, or `breaker`. */
  readonly promise: string;
  /** Begins with the promise's name. */
  readonly text: string;
}

export type Validator = (history: History) => Violation[];
