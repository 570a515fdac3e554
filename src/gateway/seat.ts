/** Whose turn it is: a caller, and the toolset that its session works with. */
import type { Seen, ToolsetChange } from "./toolsets.js";
import type { Caller, Toolset } from "./words.js";

export interface Seat {
  readonly caller: Caller;
  /** What a client can answer a server that asks back, where its era can; undefined elsewhere. */
  readonly clientCapabilities: Readonly<Record<string, unknown>> | undefined;
  /** The session's own toolset. Rejects with RegistryError, and with SessionGone where it is not there any more. */
  read(): Promise<Seen>;
  /** As Toolsets.change. */
  change(change: (now: Toolset) => ToolsetChange): Promise<Toolset>;
}

/** The session ended: it expired, or somebody ended it. */
export class SessionGone extends Error {
  constructor() {
    super("Session not found: it was not used for too long, or it was ended. Initialize a new one.");
    this.name = "SessionGone";
  }
}
