/** A store that a test can empty or take away under its replicas. */
import type { PartitionStore, Store } from "../../src/catalogue/ports.js";
import { storeUnavailable } from "../../src/domain/fault.js";

export class SwitchedStore {
  away = false;

  constructor(
    private current: Store,
    private readonly fresh: () => Store,
  ) {}

  /** Everything is gone, as after FLUSHALL: another history begins. */
  flush(): void {
    this.current = this.fresh();
  }

  /** For one more replica. Each call goes to what the store is at that moment. */
  attach(): Store {
    const now = (): PartitionStore => {
      if (this.away) throw storeUnavailable(new Error("the test took it away"));
      return this.current.partitions[0] as PartitionStore;
    };
    const port = <P extends "log" | "leases" | "blobs" | "notes">(name: P): PartitionStore[P] =>
      new Proxy({} as PartitionStore[P], {
        get: (_, method) => async (...args: unknown[]) => {
          const real = now()[name] as unknown as Record<string | symbol, (...args: unknown[]) => Promise<unknown>>;
          return real[method]?.call(real, ...args);
        },
      });
    const partition = { partition: 0, log: port("log"), leases: port("leases"), blobs: port("blobs"), notes: port("notes") };
    return { kind: this.current.kind, partitions: [partition], close: async () => undefined };
  }
}
