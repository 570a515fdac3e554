import type { History } from "../catalogue/history.js";
import { LIMITS } from "../domain/limits.js";
import type { Definitions } from "./definitions.js";

/**
 * After a broken chain, puts back into the store what memory still holds of the histories that were lost: the definitions of a
 * standing server came with its Register, and nobody brings them a second time (P7). Never rejects.
 */
export async function rescue(definitions: Pick<Definitions, "held" | "keep">, lost: readonly History[]): Promise<void> {
  for (const [namespace, ns] of lost.flatMap((history) => [...history.namespaces])) {
    const digests = new Set(ns.ordered.flatMap((view) => view.record.tools.map((t) => t.digest)));
    digests.delete("");
    const all = [...digests];
    for (let from = 0; from < all.length; from += LIMITS.batchTools) {
      const batch = all.slice(from, from + LIMITS.batchTools);
      await definitions.keep(
        namespace,
        batch.flatMap((digest) => definitions.held(namespace, digest) ?? []),
      );
    }
  }
}
