/** The writes that looks and listings lead to, as `probe` calls them. Implemented by the catalogue's use-cases. */
import type { ConditionFact } from "../domain/health/sight.js";
import type { Availability, ServerRecord } from "../domain/server.js";
import type { Listing, UpstreamError } from "./upstream-port.js";

export type { ConditionFact };

export type ListingOutcome = "committed" | "unchanged" | "gone" | "conflict";

/** What the health of a server's instances adds up to, for everybody to see. */
export interface SeenHealth {
  /** `Reachable` is as it was unless it is said; the passing ones that are not said do not hold. */
  readonly conditions: readonly ConditionFact[];
  readonly availability: Availability;
  /** Undefined: the breaker is closed. `untilMs` is since the epoch. */
  readonly open: { readonly untilMs: number; readonly attempt: number } | undefined;
  /** By instance_id; those that are not named stay as they are. */
  readonly instances: ReadonlyMap<string, Availability>;
  /** Asked when its turn comes: whoever saw it may no longer be the one who looks, or look at the same instances. */
  readonly stillTrue: () => boolean;
}

export interface HealthWriter {
  /** Coalesced to one revision per server and LIMITS.conditionEveryMs; none when nothing published would change. */
  health(namespace: string, serverId: string, seen: SeenHealth): void;
}

export interface ListingWriter extends HealthWriter {
  /**
   * Makes the listing the introspected server's set, by compare-and-set on `basedOn` (the server's revision when the
   * listing was asked for); puts definitions first. Clears pending and sets Listed; for a server that was pending also that it is
   * there.
   */
  commitListing(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome>;
  /** For a declared server: fills in digests that the registrant did not give, by compare-and-set. */
  learn(namespace: string, serverId: string, listing: Listing, basedOn: number): Promise<ListingOutcome>;
  /** Publishes whether the list could be read; coalesced like `health`. Renew answers REGISTER_AGAIN while it is DIGEST_MISMATCH. */
  listed(namespace: string, serverId: string, fact: ConditionFact): void;
}

/** Hears what every listing brought, whoever asked for it, and commits what it means. Never rejects. */
export interface ListingIntake {
  /**
   * `endpoint` is the one that answered, `basedOn` the record when it was asked. Resolves once the catalogue holds what
   * was learned (or nothing was).
   */
  listed(namespace: string, serverId: string, listing: Listing, endpoint: string, basedOn: ServerRecord): Promise<void>;
  failed(namespace: string, serverId: string, error: UpstreamError, endpoint: string): Promise<void>;
}
