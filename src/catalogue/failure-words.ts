/** What a failed listing says about a server, in the words of its conditions. */
import type { UpstreamErrorKind } from "./upstream-port.js";

/** An answer that is no list still shows that somebody is there. */
export const FAILURE_WORDS = {
  egress: { reachable: false, reason: "EGRESS_DENIED" },
  connect: { reachable: false, reason: "CONNECT_FAILED" },
  timeout: { reachable: false, reason: "TIMEOUT" },
  http: { reachable: true, reason: "HTTP_ERROR" },
  auth: { reachable: true, reason: "AUTH_REQUIRED" },
  // Not asked: whether somebody is there is not known, and a call by the same way would not arrive either.
  credential: { reachable: false, reason: "UNKNOWN_CREDENTIAL" },
  "private-list": { reachable: true, reason: "PRIVATE_LIST" },
  protocol: { reachable: true, reason: "PROTOCOL_ERROR" },
  "too-large": { reachable: true, reason: "TOO_LARGE" },
} as const satisfies Record<UpstreamErrorKind, { reachable: boolean; reason: string }>;
