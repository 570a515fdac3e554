import { nameKey } from "./intent.js";
import { type IndexedTool, impactOf, type Postings, type PreparedTool, placesOf, type Segment, type ServiceTable } from "./segment.js";

/** The small segment that takes changes until the next snapshot: every tool that came lasts, marked gone when it went. */
export class GrowingSegment implements Segment {
  services = new Uint32Array(64);
  gone = new Uint8Array(64);
  size = 0;
  live = 0;

  private readonly prepared: PreparedTool[] = [];
  private readonly lists = new Map<string, GrowingPostings>();
  private readonly ids = new Map<string, number>();
  private readonly names = new Map<string, number[]>();

  constructor(private readonly table: ServiceTable) {}

  /** The tool must not be among the live ones. */
  add(tool: PreparedTool): void {
    const doc = this.size++;
    if (doc >= this.gone.length) this.grow();
    this.prepared.push(tool);
    this.services[doc] = this.table.numberOf(tool.tool.serverId);
    this.ids.set(tool.tool.toolId, doc);
    const key = nameKey(tool.tool.name);
    const named = this.names.get(key);
    if (named) named.push(doc);
    else this.names.set(key, [doc]);
    for (const [i, term] of tool.terms.entries()) this.list(term).push(doc, tool.counts[i] as number);
    this.live++;
  }

  remove(doc: number): void {
    if (this.gone[doc] === 1) return;
    const tool = this.prepared[doc] as PreparedTool;
    this.gone[doc] = 1;
    this.live--;
    this.ids.delete(tool.tool.toolId);
    for (const term of tool.terms) this.list(term).live--;
  }

  /** Live tools, ascending by id. */
  sorted(): PreparedTool[] {
    return this.prepared.filter((_, doc) => this.gone[doc] === 0).sort((a, b) => (a.tool.toolId < b.tool.toolId ? -1 : 1));
  }

  tool(doc: number): IndexedTool {
    return (this.prepared[doc] as PreparedTool).tool;
  }

  frequency(term: string): number {
    return this.lists.get(term)?.live ?? 0;
  }

  postings(term: string): Postings | undefined {
    return this.lists.get(term);
  }

  named(key: string): readonly number[] {
    return this.names.get(key) ?? NONE;
  }

  find(toolId: string): number | undefined {
    return this.ids.get(toolId);
  }

  matcher(terms: readonly string[]): (doc: number) => number[] {
    const places = new Map(terms.map((term, i) => [term, i]));
    return (doc) => placesOf((this.prepared[doc] as PreparedTool).terms, places);
  }

  private list(term: string): GrowingPostings {
    const known = this.lists.get(term);
    if (known) return known;
    const made = new GrowingPostings();
    this.lists.set(term, made);
    return made;
  }

  private grow(): void {
    this.services = doubled(this.services, new Uint32Array(this.services.length * 2));
    this.gone = doubled(this.gone, new Uint8Array(this.gone.length * 2));
  }
}

class GrowingPostings implements Postings {
  docs = new Uint32Array(2);
  impacts = new Float32Array(2);
  readonly from = 0;
  to = 0;
  live = 0;

  push(doc: number, count: number): void {
    if (this.to >= this.docs.length) {
      this.docs = doubled(this.docs, new Uint32Array(this.to * 2));
      this.impacts = doubled(this.impacts, new Float32Array(this.to * 2));
    }
    this.docs[this.to] = doc;
    this.impacts[this.to++] = impactOf(count);
    this.live++;
  }
}

function doubled<T extends Uint32Array | Float32Array | Uint8Array>(old: T, bigger: T): T {
  bigger.set(old);
  return bigger;
}

const NONE: readonly number[] = [];
