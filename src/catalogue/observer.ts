import type { RenewState } from "./api.js";
import type { SweepReport } from "./sweep.js";
import type { HubObserver } from "./watch/hub.js";

/** What the catalogue tells the metrics. */
export interface RegistryObserver extends HubObserver {
  commit(result: "committed" | "kept" | "conflict" | "not-due" | "failed"): void;
  renewed(state: RenewState): void;
  swept(partition: number, report: SweepReport): void;
}
