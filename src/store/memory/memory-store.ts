/** A store in this process's memory: for tests and throw-away runs. */
import type { Blob, Clock, Logger, PartitionStore, Random, Store } from "../../catalogue/ports.js";
import { LIMITS } from "../../domain/limits.js";
import type { Window } from "../prepare.js";
import type { Journal } from "./engine.js";
import { PartitionEngine } from "./engine.js";
import { enginePartition } from "./partition.js";
import type { Row, Tables } from "./tables.js";
import { emptyTables } from "./tables.js";

export interface MemoryOptions {
  /** 1 if unsaid. */
  readonly partitions?: number | undefined;
  /** LIMITS.windowRevisions and LIMITS.windowBytes if unsaid. */
  readonly window?: Window;
  readonly logger?: Logger;
}

export const DEFAULT_WINDOW: Window = { revisions: LIMITS.windowRevisions, bytes: LIMITS.windowBytes };

export class MemoryStore implements Store {
  readonly kind = "memory";
  readonly partitions: readonly PartitionStore[];
  private readonly closed = new AbortController();
  private readonly engines: readonly PartitionEngine[];

  constructor(clock: Clock, random: Random, options: MemoryOptions = {}) {
    const { partitions = 1, window = DEFAULT_WINDOW, logger = SILENT } = options;
    this.engines = Array.from({ length: partitions }, (_, partition) => {
      const journal = new MemoryJournal();
      return new PartitionEngine({ partition, journal, clock, random, window, logger }, emptyTables());
    });
    this.partitions = this.engines.map((engine) => enginePartition(engine, this.closed.signal));
  }

  /** The same data as another replica has it: closing it leaves the others open. */
  attach(): Store {
    const closed = new AbortController();
    return {
      kind: this.kind,
      partitions: this.engines.map((engine) => enginePartition(engine, closed.signal)),
      close: async () => closed.abort(),
    };
  }

  async close(): Promise<void> {
    this.closed.abort();
  }
}

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Keeps the bytes of blobs; everything else is in the engine's tables already. */
class MemoryJournal implements Journal {
  private readonly blobs = new Map<string, Blob>();

  async write(rows: readonly Row[]): Promise<void> {
    for (const row of rows) {
      if (row.table !== "blobs") continue;
      if (row.value) this.blobs.set(row.key, row.value);
      else this.blobs.delete(row.key);
    }
  }

  async blob(key: string): Promise<Blob | undefined> {
    return this.blobs.get(key);
  }

  async load(): Promise<Tables> {
    throw new Error("memory has nothing to be read again from: its writes do not fail");
  }
}
