/** What the lazy loader needs from the rooms below it. `main` wires them. */
import type { Listing, UpstreamError } from "../catalogue/upstream-port.js";
import type { ServerRecord } from "../domain/server.js";

/** The catalogue as the loader sees it: memory only, no waiting. */
export interface Directory {
  server(namespace: string, serverId: string): ServerRecord | undefined;
  /** Some server of the namespace with a tool whose current digest is this one. */
  holderOf(namespace: string, digest: string): { readonly record: ServerRecord; readonly toolName: string } | undefined;
  /** The store is away or a new history is growing: answers are STALE at best. */
  stale(namespace: string): boolean;
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
