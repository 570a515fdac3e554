/** A consistent cut of a partition, taken without stopping Redis: records are scanned, then brought up to one revision. */
import type { Snapshot } from "../../catalogue/ports.js";
import { applyChange } from "../../domain/change.js";
import { storeUnavailable } from "../../domain/fault.js";
import { serverKey } from "../../domain/ids.js";
import type { ServerRecord } from "../../domain/server.js";
import { splitRow } from "../codec/rows.js";
import { decodeRecord } from "../codec/storage.js";
import type { EntryRow } from "../prepare.js";
import { entryOf } from "../prepare.js";
import type { Connection } from "./connection.js";
import type { Head } from "./entries.js";
import { entryRowOf, HEAD_FIELDS, parseHead } from "./entries.js";
import type { PartitionKeys } from "./keys.js";
import { bytesOf, listOf, textOf } from "./reply.js";

/** The log moved too far, or began anew, while it was read; then all is read again. */
const ATTEMPTS = 5;
/** Records and entries of one reply: a reply of large ones still fits into memory and the command's time. */
const SCAN_COUNT = 64;
const RANGE_COUNT = 128;

interface Source {
  readonly connection: Connection;
  readonly keys: PartitionKeys;
  readonly partition: number;
}

export async function readHead({ connection, keys }: Source): Promise<Head> {
  return parseHead(listOf(await connection.call("HMGET", keys.head, ...HEAD_FIELDS)));
}

export async function readSnapshot(source: Source): Promise<Snapshot> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const snapshot = await tryRead(source);
    if (snapshot) return snapshot;
  }
  throw storeUnavailable(
    new Error(`no consistent snapshot in ${ATTEMPTS} attempts: the log changes faster than it is read`),
  );
}

/** Undefined when the log was trimmed past its start, or is another one by now. */
async function tryRead(source: Source): Promise<Snapshot | undefined> {
  const { partition } = source;
  const before = await readHead(source);
  const records = await scanRecords(source);
  const head = await readHead(source);
  if (head.revision < before.revision || head.base > before.revision) return undefined;
  const rows = await readEntries(source, head);
  if (!rows || !links(rows, head, before)) return undefined;
  const entries = rows.map((row) => entryOf(partition, row));
  for (const { change, position } of entries) {
    if (position.revision <= before.revision) continue;
    const key = serverKey(change.namespace, change.serverId);
    const record = records.get(key);
    if (record && record.revision >= position.revision) continue;
    const after = applyChange(record, change, position.revision);
    if (after) records.set(key, after);
    else records.delete(key);
  }
  return {
    position: { partition, revision: head.revision, chain: head.chain },
    records: [...records.values()],
    base: { partition, revision: head.base, chain: head.baseChain },
    entries,
  };
}

/** A scan may show a record twice, of two revisions: the newer one counts. */
async function scanRecords({ connection, keys }: Source): Promise<Map<string, ServerRecord>> {
  const newest = new Map<string, { revision: number; bytes: Uint8Array }>();
  let cursor = "0";
  do {
    const [next, found] = listOf(await connection.call("HSCAN", keys.records, cursor, "COUNT", SCAN_COUNT));
    const flat = listOf(found);
    for (let i = 0; i + 1 < flat.length; i += 2) {
      const { text, bytes } = splitRow(bytesOf(flat[i + 1]));
      const key = textOf(flat[i]);
      const revision = Number(text);
      if ((newest.get(key)?.revision ?? 0) < revision) newest.set(key, { revision, bytes });
    }
    cursor = textOf(next);
  } while (cursor !== "0");
  return new Map([...newest].map(([key, row]) => [key, decodeRecord(row.bytes, row.revision)]));
}

/** All kept entries up to the head; undefined when the oldest were trimmed meanwhile. */
async function readEntries({ connection, keys }: Source, head: Head): Promise<EntryRow[] | undefined> {
  const rows: EntryRow[] = [];
  let last = head.base;
  while (last < head.revision) {
    const range = [`${last + 1}-0`, `${head.revision}-0`, "COUNT", RANGE_COUNT];
    const page = listOf(await connection.call("XRANGE", keys.log, ...range)).map(entryRowOf);
    if (page[0]?.revision !== last + 1) return undefined;
    rows.push(...page);
    last = page[page.length - 1]?.revision ?? last;
  }
  return rows;
}

/** Whether the entries link base and head, through the place where the scan began. */
function links(rows: readonly EntryRow[], head: Head, start: Head): boolean {
  let place = { revision: head.base, chain: head.baseChain };
  let passed = samePlace(place, start);
  for (const row of rows) {
    if (row.revision !== place.revision + 1 || row.prev !== place.chain) return false;
    place = row;
    passed ||= samePlace(place, start);
  }
  return passed && samePlace(place, head);
}

function samePlace(a: { revision: number; chain: string }, b: { revision: number; chain: string }): boolean {
  return a.revision === b.revision && a.chain === b.chain;
}
