import { SessionGone, type Seat } from "../seat.js";
import type { Seen, ToolsetChange, Toolsets } from "../toolsets.js";
import type { Caller, Toolset } from "../words.js";

/** The seat of a session whose id is the handle of its toolset. Nothing of it stays in memory. */
export class SessionSeat implements Seat {
  readonly clientCapabilities = undefined;

  constructor(
    private readonly toolsets: Toolsets,
    readonly caller: Caller,
    readonly handle: string,
  ) {}

  async read(): Promise<Seen> {
    const seen = await this.toolsets.read(this.caller, this.handle);
    if (!seen) throw new SessionGone();
    return seen;
  }

  async change(change: (now: Toolset) => ToolsetChange): Promise<Toolset> {
    const toolset = await this.toolsets.change(this.caller, this.handle, change);
    if (!toolset) throw new SessionGone();
    return toolset;
  }
}
