/** A partition's rows in the database: one batch a write. */
import type { ClassicLevel } from "classic-level";
import type { Blob } from "../../catalogue/ports.js";
import { Fault, storeUnavailable } from "../../domain/fault.js";
import type { Journal } from "../memory/engine.js";
import type { Place, Row, TableName, Tables, TableTypes } from "../memory/tables.js";
import { emptyTables, logState, TABLE_NAMES } from "../memory/tables.js";
import { decodeBlob, decodeRow, encodeRow } from "./rows.js";

export type Database = ClassicLevel<string, Uint8Array>;

/** The open database, and how to open it anew after a failed write. */
export interface DatabaseHolder {
  readonly current: Database;
  /** Closes and opens; LevelDB answers no write after a failed one until then. */
  reopen(): Promise<void>;
  close(): Promise<void>;
}

export class LevelJournal implements Journal {
  constructor(
    private readonly holder: DatabaseHolder,
    private readonly partition: number,
  ) {}

  async write(rows: readonly Row[], synced: boolean): Promise<void> {
    const operations = rows.map((row) => {
      const key = this.key(row.table, row.key);
      return row.value === undefined
        ? ({ type: "del", key } as const)
        : ({ type: "put", key, value: encodeRow(row.table, row.value) } as const);
    });
    try {
      await this.holder.current.batch(operations, { sync: synced });
    } catch (error) {
      throw writeFault(error);
    }
  }

  async blob(key: string): Promise<Blob | undefined> {
    const digest = key.slice(key.indexOf("/") + 1);
    const row = await this.reading((db) => db.get(this.key("blobs", key)));
    return row && decodeBlob(digest, row);
  }

  async load(): Promise<Tables> {
    await this.reading(() => this.holder.reopen());
    return this.read();
  }

  async read(): Promise<Tables> {
    const tables = emptyTables();
    for (const table of TABLE_NAMES) if (table !== "blobs") await this.readTable(table, tables[table]);
    checkWhole(tables);
    return tables;
  }

  private async readTable<T extends TableName>(table: T, into: Map<string, TableTypes[T]>): Promise<void> {
    const prefix = this.key(table, "");
    // `0` is the character after the `/` that ends the prefix.
    const range = { gte: prefix, lt: `${prefix.slice(0, -1)}0` };
    for await (const [key, value] of this.holder.current.iterator(range))
      into.set(key.slice(prefix.length), decodeRow(table, value));
  }

  private key(table: TableName, key: string): string {
    return `p${this.partition}/${table}/${key}`;
  }

  private async reading<R>(read: (db: Database) => Promise<R>): Promise<R> {
    try {
      return await read(this.holder.current);
    } catch (error) {
      throw storeUnavailable(error);
    }
  }
}

/** LevelDB passes over damaged parts of its own log without a word; what is left then no longer links up. */
function checkWhole(tables: Tables): void {
  const { head, base } = logState(tables);
  let last: Place = base;
  for (const entry of tables.entries.values()) {
    if (entry.revision !== last.revision + 1 || entry.prev !== last.chain)
      throw new Error(`entry ${entry.revision} of its log does not follow entry ${last.revision}`);
    last = entry;
  }
  if (last.revision !== head.revision || last.chain !== head.chain)
    throw new Error(`its log ends at entry ${last.revision}, and should at ${head.revision}`);
  for (const [key, record] of tables.records)
    if (record.revision > head.revision) throw new Error(`the record ${key} is newer than its log`);
}

/** LevelDB reports the system's error only as text. */
function writeFault(error: unknown): Fault {
  if (error instanceof Error && /no space left|disk quota|file too large/i.test(messages(error)))
    return new Fault("STORE_FULL", "the store has no room left on its disk: free some, or move the data folder", {
      retryAfterMs: 10_000,
      cause: error,
    });
  return storeUnavailable(error);
}

function messages(error: Error): string {
  return error.cause instanceof Error ? `${error.message} ${messages(error.cause)}` : error.message;
}
