/** Stores that break one promise each. The suite must catch every one of them. */
import type { PartitionStore } from "../../src/catalogue/ports.js";
import type { Harness } from "./check.js";
import { openMemory } from "./memory.harness.js";
import type { OpenHarness } from "./store.suite.js";

export interface Mutant {
  readonly name: string;
  /** Name of the check that catches it. */
  readonly caughtBy: string;
  readonly open: OpenHarness;
}

type Parts = { readonly [P in "log" | "leases" | "blobs" | "notes"]?: Partial<PartitionStore[P]> };

/** A memory store with some calls of each handle's partition replaced. */
export function mutated(mutate: (real: PartitionStore) => Parts): OpenHarness {
  return async (window) => {
    const real = await openMemory(window);
    const wrap = (store: Harness["store"]): Harness["store"] => ({
      kind: store.kind,
      close: () => store.close(),
      partitions: store.partitions.map((p) => {
        const parts = mutate(p);
        return {
          partition: p.partition,
          log: { ...p.log, ...parts.log },
          leases: { ...p.leases, ...parts.leases },
          blobs: { ...p.blobs, ...parts.blobs },
          notes: { ...p.notes, ...parts.notes },
        };
      }),
    });
    return {
      store: wrap(real.store),
      other: wrap(real.other),
      fresh: async () => wrap(await real.fresh()),
      elapse: real.elapse,
      close: real.close,
    };
  };
}
