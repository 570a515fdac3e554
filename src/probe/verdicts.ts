/** What the failure of a look, or of a listing, says about a server. */
import { FAILURE_WORDS } from "../catalogue/failure-words.js";
import type { UpstreamError } from "../catalogue/upstream-port.js";
import { DRAINING, type Verdict } from "../domain/health/verdict.js";

export function verdictOf(error: UpstreamError): Verdict {
  const { message, retryAfterMs } = error;
  const { verdict, reason, reachable } = FAILURE_WORDS[error.kind];
  switch (verdict) {
    case "barred":
      return { kind: "barred", reason, message };
    case "answered":
      return { kind: "answered", reason, message, retryAfterMs };
    case "failed":
      // A server that names a time to come back says that it is going, or gone for a while.
      return error.kind === "away" && retryAfterMs !== undefined
        ? { kind: "failed", reachable, reason: DRAINING, message, retryAfterMs }
        : { kind: "failed", reachable, reason, message, retryAfterMs };
  }
}
