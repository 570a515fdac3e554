/** What a client of the gateway can ask for: a list of tools, and a call. */
import type { CallParams } from "./calling.js";
import type { Seat } from "./seat.js";
import type { Line, Result } from "./words.js";

export interface Face {
  /** The result of `tools/list`. Rejects with RegistryError and SessionGone. */
  list(seat: Seat): Promise<Result>;
  /** The result of `tools/call`. Rejects with RpcError, RegistryError and SessionGone. */
  call(seat: Seat, name: string, params: CallParams, line: Line): Promise<Result>;
}
