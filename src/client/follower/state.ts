import type { Event } from "../../gen/toolcrib/v1/registry_service_pb.js";
import type { RegistryError } from "../registry-error.js";

/**
 * How far a follower's catalogue can be trusted. Times are milliseconds on the follower's clock (`performance.now()` by
 * default). Everything but `live` means: this may not be what the registry says now.
 */
export type FollowerState =
  /** Not started, or stopped; a catalogue that was read before stays readable. */
  | { readonly kind: "stopped" }
  /** There is no catalogue yet. `error` is why the last attempt failed. */
  | { readonly kind: "connecting"; readonly error?: RegistryError }
  /** The first list is being read, or waits for the registry's word that it is current. */
  | { readonly kind: "snapshot" }
  /** The catalogue is what the registry had at `revision`; the registry last said so at `at`. */
  | { readonly kind: "live"; readonly revision: string; readonly at: number }
  /** The catalogue is that of `revision`, and was not known to be current since `since`. */
  | {
      readonly kind: "stale";
      readonly since: number;
      readonly why: StaleWhy;
      readonly revision: string;
      /** What the registry or the network said, where that was the cause. */
      readonly error?: RegistryError;
    }
  /** Trying again cannot help without a change: of the request, of rights, of the credential. */
  | {
      readonly kind: "refused";
      readonly error: RegistryError;
      /** Milliseconds until it asks again nevertheless, because credentials are replaced; absent where it gave up. */
      readonly retryMs?: number;
    };

export type StaleWhy =
  /** The stream broke. */
  | "disconnected"
  /** Nothing was heard for so long that the connection is given up. */
  | "silent"
  /** Changes arrive, but no word that these are all: the follower, or the registry, lags. */
  | "behind"
  /** The follower did not read fast enough, and goes on from where it was. */
  | "too-slow"
  /** The history cannot be continued; the list is read again. */
  | "relist"
  /** The list was read, but the registry does not say that it is current: its store is away. */
  | "unconfirmed"
  /** The list was read from a replica whose store lost its history. */
  | "registry";

/** Why a list has to be read again, as the registry names it; `token` when it cannot read the token any more. */
export type RelistCause = "compacted" | "chain" | "ahead" | "token";

/** All that one revision changed, told after the catalogue has it. */
export interface CatalogueChange {
  /**
   * `registry`: as the registry told it. `snapshot`: the first list, every tool in it as REGISTERED. `relist`: how the list that
   * was read again differs from the one before; the events are made here, and the steps between are not known.
   */
  readonly source: "registry" | "snapshot" | "relist";
  readonly revision: string;
  /** When the registry committed it; unknown for lists. */
  readonly committedAt?: Date;
  /** In the registry's order. Applied in order to an empty catalogue, all events so far make the present one. */
  readonly events: readonly Event[];
}

/** What a follower tells, by name. */
export interface FollowerEvents {
  change: CatalogueChange;
  /** Told when the kind, the reason or the error changes, not at every bookmark. */
  state: FollowerState;
  /** The history cannot be continued: a list is read again, and its differences come as a change. */
  relist: { readonly cause: RelistCause; readonly error: RegistryError };
}
