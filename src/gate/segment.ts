import type { ToolDocument } from "./document.js";
import { COUNT_UNIT, countsOf } from "./fields.js";

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
  /** Answers, for a tool, the places of those terms that it has, ascending. */
  matcher(terms: readonly string[]): (doc: number) => number[];
  remove(doc: number): void;
}

/** Parallel arrays from `from` to before `to`, ascending by doc. */
export interface Postings {
  readonly docs: Uint32Array;
  /** `impactOf` of what the term counts there. */
  readonly impacts: Float32Array;
  readonly from: number;
  readonly to: number;
}

/** BM25 over weighted fields (BM25F); what the lengths of fields do is in `fields.ts`. */
export const K1 = 1.2;

/** What a term counts in a tool, as a share of what it can: 0 to 1. Worked out when a tool is indexed, not when it is found. */
export function impactOf(count: number): number {
  return count / (count + K1 / COUNT_UNIT);
}

/** Where the given terms stand in a list of places, ascending. */
export function placesOf<T>(terms: Iterable<T>, places: ReadonlyMap<T | undefined, number>): number[] {
  const found: number[] = [];
  for (const term of terms) {
    const place = places.get(term);
    if (place !== undefined) found.push(place);
  }
  return found.sort((a, b) => a - b);
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
