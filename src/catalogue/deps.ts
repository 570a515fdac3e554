import type { Blob, Logger, StubCodec } from "./ports.js";
import type { Upstream } from "./upstream-port.js";

/** What the use-cases of all partitions share. */
export interface Deps {
  readonly logger: Logger;
  readonly stubs: StubCodec;
  readonly upstream: Upstream;
  /** Wall clock, ms since the epoch. */
  readonly now: () => number;
  /** Definitions that came along with a Register or a listing; the loader keeps them in memory. */
  readonly onDefinitions: (namespace: string, blobs: readonly Blob[]) => void;
}
