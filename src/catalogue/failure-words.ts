/** What a failed call says about a server, in the words of its conditions. */
import type { UpstreamErrorKind } from "./upstream-port.js";

interface Words {
  /** Somebody is there. */
  readonly reachable: boolean;
  readonly reason: string;
  /** For the breaker: a failure, an answer of some kind, or nothing that the server is to blame for. */
  readonly verdict: "failed" | "answered" | "barred";
}

export const FAILURE_WORDS = {
  egress: { reachable: false, reason: "EGRESS_DENIED", verdict: "barred" },
  connect: { reachable: false, reason: "CONNECT_FAILED", verdict: "failed" },
  timeout: { reachable: false, reason: "TIMEOUT", verdict: "failed" },
  // Somebody answers, but at this address no MCP server can be called.
  http: { reachable: true, reason: "HTTP_ERROR", verdict: "failed" },
  // What stands before the server speaks for it: it is not there.
  away: { reachable: false, reason: "SERVICE_UNAVAILABLE", verdict: "failed" },
  throttled: { reachable: true, reason: "THROTTLED", verdict: "answered" },
  auth: { reachable: true, reason: "AUTH_REQUIRED", verdict: "answered" },
  // Not asked: whether somebody is there is not known, and a call by the same way would not arrive either.
  credential: { reachable: false, reason: "UNKNOWN_CREDENTIAL", verdict: "barred" },
  "private-list": { reachable: true, reason: "PRIVATE_LIST", verdict: "answered" },
  rpc: { reachable: true, reason: "RPC_ERROR", verdict: "answered" },
  protocol: { reachable: true, reason: "PROTOCOL_ERROR", verdict: "failed" },
  "too-large": { reachable: true, reason: "TOO_LARGE", verdict: "failed" },
} as const satisfies Record<UpstreamErrorKind, Words>;
