/** What a listing or its failure says about whether a server can be listed. */
import { FAILURE_WORDS } from "../catalogue/failure-words.js";
import type { Listing, UpstreamError } from "../catalogue/upstream-port.js";
import type { ConditionFact } from "../catalogue/writer-port.js";
import type { ServerRecord } from "../domain/server.js";

export const LISTED: ConditionFact = { type: "Listed", status: "true", reason: "LISTED", message: "" };

/** Undefined: nobody was reached, which says nothing about the list. */
export function unlisted(error: UpstreamError): ConditionFact | undefined {
  const { reason, reachable, verdict } = FAILURE_WORDS[error.kind];
  if (!reachable && verdict === "failed") return undefined;
  return { type: "Listed", status: "false", reason, message: error.message };
}

/** For a declared server that answers: whether it lists what its registrant declared. */
export function mismatchOf(record: ServerRecord, listing: Listing): ConditionFact {
  const listed = new Map(listing.tools.map((t) => [t.name, t.digest]));
  const other = record.tools.filter((t) => t.digestDeclared && listed.has(t.name) && listed.get(t.name) !== t.digest);
  if (other.length === 0) return LISTED;
  const names = other
    .slice(0, 5)
    .map((t) => t.name)
    .join(", ");
  const more = other.length > 5 ? ` and ${other.length - 5} more` : "";
  const message = `listed with another definition than declared: ${names}${more}`;
  return { type: "Listed", status: "false", reason: "DIGEST_MISMATCH", message };
}
