/** The state of one partition as tables, and a draft of changes to them that becomes true all at once or not at all. */
import type { Blob } from "../../catalogue/ports.js";
import { EMPTY_CHAIN } from "../../domain/revision.js";
import type { EntryRow } from "../prepare.js";

export interface RecordRow {
  readonly revision: number;
  readonly bytes: Uint8Array;
}

export interface LeaseRow {
  readonly namespace: string;
  readonly serverId: string;
  readonly instanceId: string;
  readonly ttlMs: number;
  readonly endMs: number;
  readonly braked: boolean;
}

export interface NoteRow {
  readonly bytes: Uint8Array;
  readonly version: number;
  readonly expiresAtMs: number;
}

export interface Place {
  readonly revision: number;
  readonly chain: string;
}

/** Where the log ends, the place before its oldest kept entry, and the size of what is kept. */
export interface LogState {
  readonly head: Place;
  readonly base: Place;
  readonly bytes: number;
}

export interface TableTypes {
  /** By server key. */
  readonly records: RecordRow;
  /** By revisionKey. */
  readonly entries: EntryRow;
  /** One row, `log`. */
  readonly log: LogState;
  /** By lease id. */
  readonly leases: LeaseRow;
  /** Ended leases and removed servers: until when the tombstone stands. */
  readonly ended: number;
  readonly buried: number;
  /** By blob key: when it was last put or touched. The bytes are the journal's to keep. */
  readonly refs: number;
  readonly blobs: Blob;
  readonly notes: NoteRow;
  /** One row, `notes`: the last version given. */
  readonly versions: number;
}

export type TableName = keyof TableTypes;
export type Tables = { readonly [T in TableName]: Map<string, TableTypes[T]> };
/** One row after a change; undefined removes it. */
export type Row = {
  [T in TableName]: { readonly table: T; readonly key: string; readonly value: TableTypes[T] | undefined };
}[TableName];

export const TABLE_NAMES: readonly TableName[] = [
  "records",
  "entries",
  "log",
  "leases",
  "ended",
  "buried",
  "refs",
  "blobs",
  "notes",
  "versions",
];

export function emptyTables(): Tables {
  return {
    records: new Map(),
    entries: new Map(),
    log: new Map(),
    leases: new Map(),
    ended: new Map(),
    buried: new Map(),
    refs: new Map(),
    blobs: new Map(),
    notes: new Map(),
    versions: new Map(),
  };
}

const START: Place = { revision: 0, chain: EMPTY_CHAIN };
const EMPTY_LOG: LogState = { head: START, base: START, bytes: 0 };

export function logState(tables: Tables): LogState {
  return tables.log.get("log") ?? EMPTY_LOG;
}

/** Sorts as text in the order of revisions. */
export function revisionKey(revision: number): string {
  return String(revision).padStart(16, "0");
}

/** Neither part holds a slash. */
export function blobKey(namespace: string, digest: string): string {
  return `${namespace}/${digest}`;
}

/** Changes on top of the tables, seen by whoever reads through the draft and by nobody else. */
export class Draft {
  private readonly changes = new Map<TableName, Map<string, Row>>();

  constructor(private readonly tables: Tables) {}

  get<T extends TableName>(table: T, key: string): TableTypes[T] | undefined {
    const row = this.changes.get(table)?.get(key);
    return row ? (row.value as TableTypes[T] | undefined) : this.tables[table].get(key);
  }

  set<T extends TableName>(table: T, key: string, value: TableTypes[T]): void {
    this.put({ table, key, value } as Row);
  }

  delete(table: TableName, key: string): void {
    if (this.get(table, key) !== undefined) this.put({ table, key, value: undefined });
  }

  /** Removes a row that the tables themselves do not show: blob bytes. */
  drop(table: "blobs", key: string): void {
    this.put({ table, key, value: undefined });
  }

  /** Keys of the table before the draft; read each through `get`. */
  keys(table: TableName): IterableIterator<string> {
    return this.tables[table].keys();
  }

  get log(): LogState {
    return this.get("log", "log") ?? EMPTY_LOG;
  }

  rows(): Row[] {
    return [...this.changes.values()].flatMap((rows) => [...rows.values()]);
  }

  private put(row: Row): void {
    let rows = this.changes.get(row.table);
    if (!rows) this.changes.set(row.table, (rows = new Map<string, Row>()));
    rows.set(row.key, row);
  }
}

/** Makes a draft's rows true. Blob bytes are left to the journal. */
export function applyRows(tables: Tables, rows: readonly Row[]): void {
  for (const row of rows) {
    if (row.table === "blobs") continue;
    const table = tables[row.table] as Map<string, TableTypes[TableName]>;
    if (row.value === undefined) table.delete(row.key);
    else table.set(row.key, row.value);
  }
}
