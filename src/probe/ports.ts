/** What the prober needs from the rooms beside it. `main` wires them. */
import type { Listing } from "../catalogue/upstream-port.js";
import type { ServerRecord } from "../domain/server.js";

export interface ServerName {
  readonly namespace: string;
  readonly serverId: string;
}

/** The catalogue as the prober sees it: memory only, no waiting. */
export interface Records {
  server(namespace: string, serverId: string): ServerRecord | undefined;
}

/** A listing that starts after the call; settles once the intake has taken it in. Rejects when the server was not listed. */
export type Relist = (namespace: string, serverId: string) => Promise<Listing>;
