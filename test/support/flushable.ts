import type { PartitionStore, Store } from "../../src/catalogue/ports.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import type { World } from "./replica.js";

/** A store that can be flushed under its replicas; each replica's polls can be held. */
export class Flushable {
  current: MemoryStore;
  constructor(private readonly w: World) {
    this.current = new MemoryStore(w.clock, w.random);
  }
  flush() {
    this.current = new MemoryStore(this.w.clock, this.w.random);
  }
  attach() {
    const p = (): PartitionStore => this.current.partitions[0] as PartitionStore;
    const hold = {
      until: undefined as Promise<void> | undefined,
      release: () => {},
      hold() {
        this.until = new Promise<void>((r) => {
          this.release = r;
        });
      },
    };
    const store: Store = {
      kind: "memory",
      partitions: [
        {
          partition: 0,
          log: {
            commit: (c) => p().log.commit(c),
            snapshot: () => p().log.snapshot(),
            head: () => p().log.head(),
            poll: async (after, limit, signal) => {
              if (hold.until) {
                // The signal outlives all polls: a listener that stayed with each of them would be a leak.
                const { until } = hold;
                await new Promise<void>((resolve) => {
                  const go = (): void => {
                    signal.removeEventListener("abort", go);
                    resolve();
                  };
                  signal.addEventListener("abort", go);
                  void until.then(go);
                });
              }
              return p().log.poll(after, limit, signal);
            },
          },
          leases: {
            renew: (ids) => p().leases.renew(ids),
            due: (n) => p().leases.due(n),
            extend: (ids) => p().leases.extend(ids),
            buried: (a, b) => p().leases.buried(a, b),
          },
          blobs: {
            put: (n, b) => p().blobs.put(n, b),
            get: (n, d) => p().blobs.get(n, d),
            touch: (n, d) => p().blobs.touch(n, d),
            sweep: (k) => p().blobs.sweep(k),
          },
          notes: {
            get: (k) => p().notes.get(k),
            put: (k, b, t, e) => p().notes.put(k, b, t, e),
            remove: (k, v) => p().notes.remove(k, v),
          },
        },
      ],
      close: async () => {},
    };
    return { store, hold };
  }
}
