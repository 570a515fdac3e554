/** Rows of the tables as keys and values of the database. */
import type { Blob } from "../../catalogue/ports.js";
import { joinRow, splitRow } from "../codec/rows.js";
import type { EntryRow } from "../prepare.js";
import type { LeaseRow, LogState, NoteRow, RecordRow, TableName, TableTypes } from "../memory/tables.js";

interface RowCodec<V> {
  encode(value: V): Uint8Array;
  decode(bytes: Uint8Array): V;
}

/** Values without bytes of their own are JSON; the others are `fact,fact:bytes`. */
const CODECS: { readonly [T in TableName]: RowCodec<TableTypes[T]> } = {
  records: {
    encode: (row) => joinRow(String(row.revision), row.bytes),
    decode: (row): RecordRow => {
      const { text, bytes } = splitRow(row);
      return { revision: integer(text), bytes };
    },
  },
  entries: {
    encode: (row) => joinRow(`${row.revision},${row.prev},${row.chain},${row.atMs}`, row.body),
    decode: (row): EntryRow => {
      const { text, bytes: body } = splitRow(row);
      const [revision, prev = "", chain = "", atMs] = text.split(",");
      return { revision: integer(revision), prev, chain, atMs: integer(atMs), body };
    },
  },
  log: json<LogState>(),
  leases: json<LeaseRow>(),
  ended: json<number>(),
  buried: json<number>(),
  refs: json<number>(),
  blobs: {
    encode: (blob) => joinRow(String(blob.fetchedAtMs), blob.bytes),
    decode: (): Blob => {
      throw new Error("blobs are decoded by decodeBlob, which knows their digest");
    },
  },
  notes: {
    encode: (row) => joinRow(`${row.version},${row.expiresAtMs}`, row.bytes),
    decode: (row): NoteRow => {
      const { text, bytes } = splitRow(row);
      const [version, expiresAtMs] = text.split(",");
      return { version: integer(version), expiresAtMs: integer(expiresAtMs), bytes };
    },
  },
  versions: json<number>(),
};

export function encodeRow<T extends TableName>(table: T, value: TableTypes[T]): Uint8Array {
  return CODECS[table].encode(value);
}

export function decodeRow<T extends TableName>(table: T, bytes: Uint8Array): TableTypes[T] {
  return CODECS[table].decode(bytes);
}

export function decodeBlob(digest: string, row: Uint8Array): Blob {
  const { text, bytes } = splitRow(row);
  return { digest, bytes, fetchedAtMs: integer(text) };
}

function json<V>(): RowCodec<V> {
  return {
    encode: (value) => Buffer.from(JSON.stringify(value)),
    decode: (bytes) => JSON.parse(Buffer.from(bytes).toString("utf8")) as V,
  };
}

function integer(text: string | undefined): number {
  const value = Number(text);
  if (text === undefined || text === "" || !Number.isSafeInteger(value))
    throw new Error(`a stored row says '${text ?? ""}' where a whole number belongs`);
  return value;
}
