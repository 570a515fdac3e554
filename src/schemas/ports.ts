/** What the lazy loader needs from the rooms below it. `main` wires them. */
import type { ServerRecord } from "../domain/server.js";

/** The catalogue as the loader sees it: memory only, no waiting. */
export interface Directory {
  server(namespace: string, serverId: string): ServerRecord | undefined;
  /** Some server of the namespace with a tool whose current digest is this one. */
  holderOf(namespace: string, digest: string): { readonly record: ServerRecord; readonly toolName: string } | undefined;
  /** The store is away or a new history is growing: answers are STALE at best. */
  stale(namespace: string): boolean;
}
