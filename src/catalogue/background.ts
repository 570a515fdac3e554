import { LIMITS } from "../domain/limits.js";
import type { Deps } from "./deps.js";
import { keepBlobs } from "./keep-blobs.js";
import type { Partition } from "./partition.js";
import type { RegistryObserver } from "./observer.js";
import type { Sweeper } from "./sweep.js";

/** Between two sweeps of a partition by one replica. */
const SWEEP_MS = 1_000;
/** Definitions that are still referenced say so this often; a fraction of LIMITS.blobKeepMs. */
const KEEP_BLOBS_MS = 3_600_000;

/** What a replica does by itself for one partition: sweep, bookmark, keep definitions. Runs until the signal aborts. */
export function startBackground(
  deps: Deps,
  partition: Partition,
  sweeper: Sweeper,
  observer: Pick<RegistryObserver, "swept" | "blobsSwept">,
  signal: AbortSignal,
): Promise<unknown> {
  const { clock, random } = partition.deps;
  /** Repeats a job; a failure is logged and the next turn comes all the same. */
  const repeat = async (name: string, everyMs: number, job: () => Promise<void> | void): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(everyMs * (0.9 + 0.2 * random.next()), signal);
      // While the store is away the tail says so once; each job would only repeat it.
      if (signal.aborted || partition.state.kind === "starting" || partition.awaySince !== undefined) continue;
      try {
        await job();
      } catch (error) {
        if (!signal.aborted)
          deps.logger.warn(
            { job: name, partition: partition.index, err: error },
            "a background job failed; it is tried again",
          );
      }
    }
  };
  return Promise.all([
    repeat("sweep", SWEEP_MS, async () => observer.swept(partition.index, await sweeper.sweep())),
    repeat("bookmark", LIMITS.bookmarkMs * 0.9, () => partition.bookmark()),
    repeat("keep-blobs", KEEP_BLOBS_MS, async () => observer.blobsSwept(await keepBlobs(partition))),
  ]);
}
