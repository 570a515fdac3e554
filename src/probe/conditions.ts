/** What a listing or its failure says about a server, in the words that ListingWriter publishes. */
import { FAILURE_WORDS } from "../catalogue/failure-words.js";
import type { Listing, UpstreamError } from "../catalogue/upstream-port.js";
import type { ListingWriter } from "../catalogue/writer-port.js";
import type { ServerRecord } from "../domain/server.js";

export type Seen = Parameters<ListingWriter["condition"]>[2];

export function unreachableSeen(error: UpstreamError): Seen {
  return { ...FAILURE_WORDS[error.kind], listed: false, message: error.message };
}

export function reachableSeen(): Seen {
  return { reachable: true, listed: true, reason: "", message: "" };
}

/** For a declared server that answers: whether it lists what its registrant declared. */
export function mismatchOf(record: ServerRecord, listing: Listing): Seen {
  const listed = new Map(listing.tools.map((t) => [t.name, t.digest]));
  const other = record.tools.filter((t) => t.digestDeclared && listed.has(t.name) && listed.get(t.name) !== t.digest);
  if (other.length === 0) return reachableSeen();
  const names = other
    .slice(0, 5)
    .map((t) => t.name)
    .join(", ");
  const more = other.length > 5 ? ` and ${other.length - 5} more` : "";
  const message = `listed with another definition than declared: ${names}${more}`;
  return { reachable: true, listed: false, reason: "DIGEST_MISMATCH", message };
}
