import type { RenewState } from "./api.js";
import type { RelistCause } from "../domain/fault.js";
import type { Sheddable } from "../domain/overload.js";
import type { SweepReport } from "./sweep.js";

/** What the catalogue tells the metrics. */
export interface RegistryObserver {
  /** Refused because this replica has too much to do. */
  shed(what: Sheddable): void;
  commit(result: "committed" | "kept" | "conflict" | "not-due" | "failed"): void;
  registered(outcome: "committed" | "kept" | "validated"): void;
  /** The history that this replica followed is broken. */
  relist(cause: RelistCause): void;
  /** Standing servers that a broken log had lost were committed again. */
  restored(servers: number): void;
  renewed(state: RenewState): void;
  /** Definitions that nobody referenced any more were removed. */
  blobsSwept(count: number): void;
  swept(partition: number, report: SweepReport): void;
}
