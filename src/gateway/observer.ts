/** What a gateway tells the metrics. Every word that is told comes from a short list, whatever clients send. */
import type { ForwardOutcome } from "./forward/api.js";

export interface GatewayObserver {
  /** A call to somebody else's tool came to its end; `ms` from its coming to its answer, waiting included. */
  called(outcome: "ok" | Exclude<ForwardOutcome["errorKind"], "">, ms: number): void;
  /** find_tools was answered. */
  found(by: FoundBy): void;
  /** A session began, or a toolset of the stable mode. */
  created(what: "session" | "toolset"): void;
  /** Streams of sessions that are open now. */
  streams(open: number): void;
  /** A request over HTTP got no answer of MCP. */
  refused(reason: RefusedFor): void;
}

/** Who chose: the registry's search, the model, search because the model was of no use, or the caller by a category; or nothing was asked. */
export type FoundBy = "search" | "model" | "fallback" | "category" | "nothing";

export type RefusedFor = "malformed" | "token" | "forbidden" | "absent" | "too-large" | "unavailable" | "bug";

export const NO_OBSERVER: GatewayObserver = {
  called: () => undefined,
  found: () => undefined,
  created: () => undefined,
  streams: () => undefined,
  refused: () => undefined,
};

/** Why a request was refused, by its HTTP status; undefined for one that was answered. */
export function refusedFor(status: number): RefusedFor | undefined {
  if (status < 400) return undefined;
  return REFUSED[status] ?? (status < 500 ? "malformed" : "bug");
}

const REFUSED: Readonly<Record<number, RefusedFor>> = { 401: "token", 403: "forbidden", 404: "absent", 413: "too-large", 503: "unavailable" };
