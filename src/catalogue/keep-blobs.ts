import { LIMITS } from "../domain/limits.js";
import type { Partition } from "./partition.js";

/** Digests touched in one call. */
const BATCH = 1_000;

/**
 * Says which definitions are still referenced, then lets those go that nobody has referenced for LIMITS.blobKeepMs.
 * Answers how many went.
 */
export async function keepBlobs(partition: Partition): Promise<number> {
  // A catalogue that is still growing does not know yet what is referenced.
  if (partition.stale) return 0;
  const { blobs } = partition.deps.store;
  for (const [namespace, ns] of partition.live().history.namespaces) {
    const digests = new Set(ns.ordered.flatMap((s) => s.record.tools.map((t) => t.digest).filter((d) => d !== "")));
    const all = [...digests];
    for (let i = 0; i < all.length; i += BATCH) await blobs.touch(namespace, all.slice(i, i + BATCH));
  }
  return blobs.sweep(LIMITS.blobKeepMs);
}
