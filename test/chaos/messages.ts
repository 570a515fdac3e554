/** What the run and its child processes say to each other. */
import type { NamedReplica } from "./taps.js";

export interface RegistrarOrders {
  readonly kind: "registrars";
  readonly index: number;
  readonly seed: number;
  readonly tape: string;
  readonly replicas: readonly NamedReplica[];
  readonly servers: readonly ServerSpec[];
}

export interface ServerSpec {
  readonly namespace: string;
  readonly serverId: string;
  readonly tags: readonly string[];
  /** The registry fetches its definitions and looks after its health. */
  readonly dialled: boolean;
}

export interface WatcherOrders {
  readonly kind: "watchers";
  readonly index: number;
  readonly seed: number;
  readonly tape: string;
  readonly replicas: readonly NamedReplica[];
  readonly namespaces: readonly string[];
  readonly servers: readonly ServerSpec[];
  readonly watchers: number;
  /** Milliseconds between two reads of one replica. */
  readonly readEveryMs: number;
}

export type ToChild =
  | { readonly kind: "begin"; readonly orders: RegistrarOrders | WatcherOrders }
  /** Change nothing any more; keep what is. */
  | { readonly kind: "calm" }
  /** MCP endpoints fail for so long. */
  | { readonly kind: "servers-down"; readonly ms: number }
  /** Every watcher leaves and comes back, at another replica. */
  | { readonly kind: "drop" }
  /** Compare what the followers hold with what is listed, and tell what differs. */
  | { readonly kind: "compare" }
  /** Close the tape and end. */
  | { readonly kind: "finish" };

export type FromChild =
  | { readonly kind: "ready" }
  | { readonly kind: "belief"; readonly namespace: string; readonly serverId: string; readonly tools: readonly string[] | undefined }
  | { readonly kind: "compared"; readonly followers: number; readonly differences: readonly string[] }
  | { readonly kind: "finished" };

export const LEASE_MS = 10_000;
