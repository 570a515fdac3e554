/** Why there is no answer of the server, in words that the caller can act on. */
import type { CallEnd, UpstreamErrorKind } from "../../upstream/caller.js";
import type { ForwardAnswer, RefusalReason } from "./api.js";
import type { CallVerdict } from "./breakers.js";
import type { Found, KnownServer } from "./directory.js";

/** Why somebody stopped waiting. */
export type GaveUp = "cancelled" | "deadline" | "closing";

export type Refused = Extract<ForwardAnswer, { kind: "refused" }>;
type FailedEnd = Extract<CallEnd, { kind: "failed" }>;

/** Before anything was sent. */
export function refused(reason: RefusalReason, text: string, stale = false, retryAfterMs?: number): Refused {
  return { kind: "refused", reason, text, ran: "not-run", stale, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

export function notFound(found: Exclude<Found, { kind: "known" }>, serverId: string, namespace: string): Refused {
  switch (found.kind) {
    case "unknown":
      return refused("unknown-server", `there is no server ${serverId} in namespace ${namespace} now: look for tools again, and call one of those`);
    case "away":
      return refused("registry-away", `the registry cannot be asked where server ${serverId} is (${found.text}), and this gateway has not called it before: try again`);
    case "refused":
      return refused("registry-refused", `the registry does not let this gateway read server ${serverId}: ${found.text}`);
  }
}

/** Why a server is not called at all; undefined: it may be. `nowMs` is wall time. */
export function closedServer(server: KnownServer, stale: boolean, nowMs: number): Refused | undefined {
  const { serverId, breaker, instances } = server;
  if (breaker.kind === "isolated") {
    const why = breaker.why === "" ? "" : `: ${breaker.why}`;
    return refused("isolated", `an operator took server ${serverId} out${why}. Use another tool`, stale);
  }
  if (instances.length === 0) {
    return refused("no-endpoint", `server ${serverId} is registered without an endpoint, so its tools can be described but not called through a gateway`, stale);
  }
  // An old word about its health must not keep a server from its callers.
  if (stale || (breaker.kind === "closed" && instances.some(({ available }) => available))) return undefined;
  const retryAfterMs = breaker.kind === "open" && breaker.untilMs > nowMs ? Math.ceil(breaker.untilMs - nowMs) : undefined;
  const when = retryAfterMs === undefined ? "" : `; the registry looks at it again in ${Math.ceil(retryAfterMs / 1_000)} s`;
  return refused("unavailable", `server ${serverId} is down${when}. Nothing was sent: use another tool, or try again later`, stale, retryAfterMs);
}

const REASONS: Readonly<Record<UpstreamErrorKind, RefusalReason>> = {
  egress: "egress",
  credential: "credential",
  auth: "auth",
  throttled: "throttled",
  "too-large": "too-large",
  protocol: "protocol",
  timeout: "unreachable",
  connect: "unreachable",
  away: "unreachable",
  http: "unreachable",
  // Only a handshake fails like this: an error in the answer to the call itself is the answer.
  rpc: "unreachable",
  // A failure of listings.
  "private-list": "protocol",
};

/** Answers of a server, or of what stands before it, that say that the call was not let through to it. */
const TURNED_AWAY: ReadonlySet<UpstreamErrorKind> = new Set(["auth", "throttled"]);

const UNKNOWN_FATE = "The server had the call and may have executed it; it was not sent again. Find out what became of it before you repeat it";
const NOTHING_SENT = "The server did not get the call, so it is safe to repeat";

/** The end of a call that nobody gave up and whose time did not run out. */
export function failedCall({ error, sent }: FailedEnd, stale: boolean): Refused {
  const ran = sent && !TURNED_AWAY.has(error.kind) ? "may-have-run" : "not-run";
  const reason = ran === "may-have-run" && REASONS[error.kind] === "unreachable" ? "lost" : REASONS[error.kind];
  const text = `${error.message}. ${ran === "may-have-run" ? UNKNOWN_FATE : hint(reason)}`;
  const { retryAfterMs } = error;
  return { kind: "refused", reason, text, ran, stale, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

function hint(reason: RefusalReason): string {
  if (reason === "unreachable") return NOTHING_SENT;
  return reason === "throttled" ? "The call was not taken: try again later" : "The call was not executed, and repeating it does not help";
}

/** The end of a call that was given up. */
export function givenUp(why: GaveUp, sent: boolean, deadlineMs: number, stale: boolean): Refused {
  const texts = {
    cancelled: "the caller gave up",
    deadline: `there was no answer within ${deadlineMs} ms, the deadline of this call`,
    closing: "this gateway is shutting down",
  };
  const told = sent ? "The server was told to stop, and may have executed the call; do not take it for undone" : NOTHING_SENT;
  return { kind: "refused", reason: why, text: `${texts[why]}. ${told}`, ran: sent ? "may-have-run" : "not-run", stale };
}

/** What the end of a call says about the server; `heard`: it said something on the way. */
export function verdictOn(end: CallEnd, gaveUp: GaveUp | undefined, heard: boolean): CallVerdict {
  if (end.kind !== "failed") return { kind: "good" };
  if (gaveUp === "cancelled" || gaveUp === "closing") return { kind: "none" };
  if (gaveUp === "deadline") return heard ? { kind: "good" } : { kind: "bad" };
  const { kind, retryAfterMs } = end.error;
  if (kind === "egress" || kind === "credential") return { kind: "none" };
  // Somebody is there, and says what he does not like.
  if (kind === "auth" || kind === "throttled" || kind === "rpc" || kind === "too-large") return { kind: "good" };
  return { kind: "bad", retryAfterMs };
}
