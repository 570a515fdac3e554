/** The writes that listings lead to, as `probe` calls them. Implemented by the catalogue's use-cases. */
import type { Listing } from "./upstream-port.js";

export type ListingOutcome = "committed" | "unchanged" | "gone" | "conflict";

export interface ListingWriter {
  /**
   * Makes the listing the introspected server's set, by compare-and-set on `basedOn` (the server's revision when the
   * listing was asked for); puts definitions first. Clears pending and sets Reachable and Listed.
   */
  commitListing(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome>;
  /**
   * For a declared server: fills in digests that the registrant did not give, by compare-and-set; tools whose declared
   * digest is not the listed one are reported as condition Listed=false, DIGEST_MISMATCH (Renew then answers REGISTER_AGAIN).
   */
  learn(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome>;
  /** Publishes reachability and availability; coalesced to one revision per server and LIMITS.conditionEveryMs. */
  condition(
    namespace: string,
    serverId: string,
    seen: { readonly reachable: boolean; readonly listed: boolean; readonly reason: string; readonly message: string },
  ): Promise<void>;
}
