/** Where a model run takes place: one store, its replicas, and what can be done to them there. */
import type { Client } from "../validators/client.js";
import type { Recorder } from "../validators/recorder.js";

export interface Ground {
  readonly recorder: Recorder;
  /** One or two. */
  readonly clients: readonly Client[];
  /** Time passes for leases, and whatever is due then may happen. */
  elapse(ms: number): Promise<void>;
  /** Polls until it holds, for as long as anything may honestly take. Answers whether it does. */
  until(holds: () => Promise<boolean>): Promise<boolean>;
  /** The store loses everything: another history begins. Undefined where that cannot be done in a process. */
  readonly lose: (() => Promise<void>) | undefined;
  /** Remembers what the store holds now; the answer takes it back there, as a failover that loses acknowledged writes. */
  readonly save: (() => Promise<() => Promise<void>>) | undefined;
  /** Stops, and starts again on what was kept. Undefined where nothing is kept. */
  readonly reopen: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

export type OpenGround = () => Promise<Ground>;

/** So small that tokens fall out of it within a run. */
export const WINDOW = { revisions: 12, bytes: 1 << 24 };
export const RING = { revisions: 8, bytes: 1 << 24 };
