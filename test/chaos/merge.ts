/** The parts of a history that several processes wrote, as one. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { Facts, History, Item, Moment } from "../validators/history.js";
import type { Line } from "./tape.js";

export interface TapeFile {
  readonly path: string;
  /** When its process was killed: what lasted then is over. */
  readonly killedMs?: number | undefined;
}

/** Any item, by its moments. */
type Open = { -readonly [K in "at" | "call" | "back" | "from" | "to"]?: Moment | undefined } & { readonly kind: Item["kind"] };

export async function merged(files: readonly TapeFile[], facts: Facts, endMs: number): Promise<History> {
  const items: Item[] = [];
  for (const file of files) for (const item of await itemsOf(file)) items.push(item);
  const moments = items.flatMap((item, source) => momentsOf(item as Open).map((at) => ({ at, source })));
  moments.sort((a, b) => a.at.ms - b.at.ms || a.at.n - b.at.n || a.source - b.source);
  // Each process counted for itself; time alone orders what several saw.
  for (const [i, { at }] of moments.entries()) (at as { n: number }).n = i + 1;
  items.sort((a, b) => firstOf(a as Open) - firstOf(b as Open));
  return { facts, items, end: { n: moments.length + 1, ms: endMs } };
}

async function itemsOf({ path, killedMs }: TapeFile): Promise<Item[]> {
  const free: Item[] = [];
  const keyed = new Map<string, Item>();
  for await (const text of createInterface({ input: createReadStream(path) })) {
    const line = lineFrom(text);
    if (!line) continue;
    if (line.key === undefined) free.push(line.item);
    else keyed.set(line.key, line.item);
  }
  const all = [...free, ...keyed.values()];
  if (killedMs !== undefined) for (const item of all) endSpan(item as Open, killedMs);
  return all;
}

/** A process that was killed may leave half a line, and only as its last. */
function lineFrom(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}

function endSpan(item: Open, ms: number): void {
  if (item.kind === "answering" && item.to === undefined) item.to = { n: Number.MAX_SAFE_INTEGER, ms };
}

function momentsOf({ at, call, back, from, to }: Open): Moment[] {
  return [at, call, back, from, to].filter((m): m is Moment => m !== undefined && m !== null);
}

function firstOf({ at, call, from }: Open): number {
  return (at ?? call ?? from)?.n ?? 0;
}
