import type { ToolDocument } from "./document.js";
import { countsOf } from "./fields.js";

/** What a hit says about its tool; everything else is the catalogue's. */
export interface IndexedTool {
  readonly toolId: string;
  readonly serverId: string;
  readonly name: string;
}

/** A document after its analysis: what an index keeps of it. */
export interface PreparedTool {
  readonly tool: IndexedTool;
  readonly terms: readonly string[];
  /** How much each of them counts, in units of COUNT_UNIT. */
  readonly counts: readonly number[];
}

export function prepare(document: ToolDocument): PreparedTool {
  const counts = countsOf(document);
  const { toolId, serverId, name } = document;
  return { tool: { toolId, serverId, name }, terms: [...counts.keys()], counts: [...counts.values()] };
}

/** Tools by number with their postings. Numbers are this segment's own. */
export interface Segment {
  readonly size: number;
  tool(doc: number): IndexedTool;
  /** Number of each tool's server in the index's table. */
  readonly services: Uint32Array;
  /** 1 for a tool that is no more. */
  readonly gone: Uint8Array;
  /** Tools that are still there. */
  readonly live: number;
  /** Live tools that have the term. */
  frequency(term: string): number;
  /** Where the term stands; `gone` tools among them. */
  postings(term: string): Postings | undefined;
  /** Live or gone tools of that name key. */
  named(key: string): readonly number[];
  find(toolId: string): number | undefined;
  /** Whether a tool has a term. */
  has(doc: number, term: string): boolean;
  remove(doc: number): void;
}

/** Parallel arrays from `from` to before `to`, ascending by doc. */
export interface Postings {
  readonly docs: Uint32Array;
  readonly counts: Uint16Array;
  readonly from: number;
  readonly to: number;
}

/** Position of a doc in ascending postings, or −1. */
export function positionIn({ docs, from, to }: Postings, doc: number): number {
  let low = from;
  let high = to - 1;
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const found = docs[middle] as number;
    if (found === doc) return middle;
    if (found < doc) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/** Numbers of servers, so that a score per server is an array. */
export class ServiceTable {
  private readonly numbers = new Map<string, number>();

  get size(): number {
    return this.numbers.size;
  }

  numberOf(serverId: string): number {
    const known = this.numbers.get(serverId);
    if (known !== undefined) return known;
    this.numbers.set(serverId, this.numbers.size);
    return this.numbers.size - 1;
  }
}
