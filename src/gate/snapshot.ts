import { nameKey } from "./intent.js";
import { type IndexedTool, impactOf, type Postings, type PreparedTool, placesOf, type Segment, type ServiceTable } from "./segment.js";

/**
 * The large segment: tools ascending by id, all numbers in typed arrays, in both directions (terms of a tool, tools of a
 * term). Its arrays are never written again; only who is gone, and what that takes from the counts, is kept beside them.
 */
export class Snapshot implements Segment {
  readonly gone: Uint8Array;
  live: number;
  private readonly frequencies: Uint32Array;

  constructor(private readonly parts: SnapshotParts) {
    this.gone = new Uint8Array(parts.tools.length);
    this.live = parts.tools.length;
    this.frequencies = new Uint32Array(parts.termNames.length);
    for (let t = 0; t < this.frequencies.length; t++) this.frequencies[t] = at(parts.termStart, t + 1) - at(parts.termStart, t);
  }

  get size(): number {
    return this.parts.tools.length;
  }

  get services(): Uint32Array {
    return this.parts.services;
  }

  tool(doc: number): IndexedTool {
    return this.parts.tools[doc] as IndexedTool;
  }

  frequency(term: string): number {
    const number = this.parts.terms.get(term);
    return number === undefined ? 0 : at(this.frequencies, number);
  }

  postings(term: string): Postings | undefined {
    const number = this.parts.terms.get(term);
    if (number === undefined) return undefined;
    const { termDocs, termImpacts, termStart } = this.parts;
    return { docs: termDocs, impacts: termImpacts, from: at(termStart, number), to: at(termStart, number + 1) };
  }

  named(key: string): readonly number[] {
    const found = this.parts.names.get(key);
    return found === undefined ? NONE : typeof found === "number" ? [found] : found;
  }

  find(toolId: string): number | undefined {
    const doc = this.parts.ids.get(toolId);
    return doc === undefined || this.gone[doc] === 1 ? undefined : doc;
  }

  matcher(terms: readonly string[]): (doc: number) => number[] {
    const { docStart, docTerms } = this.parts;
    const places = new Map(terms.map((term, i) => [this.parts.terms.get(term), i]));
    return (doc) => placesOf(docTerms.subarray(at(docStart, doc), at(docStart, doc + 1)), places);
  }

  remove(doc: number): void {
    if (this.gone[doc] === 1) return;
    this.gone[doc] = 1;
    this.live--;
    const { docStart, docTerms } = this.parts;
    for (let i = at(docStart, doc); i < at(docStart, doc + 1); i++) {
      const term = at(docTerms, i);
      this.frequencies[term] = at(this.frequencies, term) - 1;
    }
  }

  /** Hands a tool to the builder of the next snapshot: its terms by number, for looking up names again takes most of a rebuild. */
  copy(doc: number, into: SnapshotBuilder): void {
    const { docStart, docTerms, docCounts } = this.parts;
    const from = at(docStart, doc);
    const to = at(docStart, doc + 1);
    into.addKnown(this.tool(doc), this.parts.termNames, docTerms.subarray(from, to), docCounts.subarray(from, to));
  }

  /** Bytes of the typed arrays. */
  get arrayBytes(): number {
    return Object.values(this.parts).reduce((sum, part) => sum + (ArrayBuffer.isView(part) ? part.byteLength : 0), 0);
  }
}

interface SnapshotParts {
  readonly tools: readonly IndexedTool[];
  readonly ids: ReadonlyMap<string, number>;
  readonly names: ReadonlyMap<string, number | number[]>;
  readonly services: Uint32Array;
  readonly terms: ReadonlyMap<string, number>;
  readonly termNames: readonly string[];
  /** Terms of a tool: from docStart[d] to docStart[d + 1]. */
  readonly docStart: Uint32Array;
  readonly docTerms: Uint32Array;
  readonly docCounts: Uint16Array;
  /** Tools of a term: from termStart[t] to termStart[t + 1]. */
  readonly termStart: Uint32Array;
  readonly termDocs: Uint32Array;
  readonly termImpacts: Float32Array;
}

/** Gathers tools, ascending by id, and turns their terms into postings; both can be done piece by piece. */
export class SnapshotBuilder {
  private readonly tools: IndexedTool[] = [];
  private readonly ids = new Map<string, number>();
  private readonly names = new Map<string, number | number[]>();
  private readonly terms = new Map<string, number>();
  private readonly termNames: string[] = [];
  private readonly services: number[] = [];
  private readonly docStart: number[] = [0];
  private docTerms = new Uint32Array(1024);
  private docCounts = new Uint16Array(1024);
  private used = 0;
  /** Numbers of the other snapshot's terms in this one, plus 1; 0 where it is not known yet. */
  private known: Uint32Array | undefined;

  constructor(private readonly table: ServiceTable) {}

  add({ tool, terms, counts }: PreparedTool): void {
    this.begin(tool, terms.length);
    for (let i = 0; i < terms.length; i++) this.term(this.termNumber(terms[i] as string), counts[i] as number);
    this.docStart.push(this.used);
  }

  /** As `add`, with terms as numbers of another snapshot, always the same one: `names` are all of its terms. */
  addKnown(tool: IndexedTool, names: readonly string[], terms: Uint32Array, counts: Uint16Array): void {
    this.known ??= new Uint32Array(names.length);
    this.begin(tool, terms.length);
    for (let i = 0; i < terms.length; i++) {
      const old = at(terms, i);
      if (at(this.known, old) === 0) this.known[old] = this.termNumber(names[old] as string) + 1;
      this.term(at(this.known, old) - 1, at(counts, i));
    }
    this.docStart.push(this.used);
  }

  /** Turns the terms of tools into the tools of terms; every yield is a place to pause. */
  *finish(): Generator<void, Snapshot> {
    const { used, docStart } = this;
    const docTerms = this.docTerms.slice(0, used);
    const docCounts = this.docCounts.slice(0, used);
    yield;
    const termStart = new Uint32Array(this.termNames.length + 1);
    for (let i = 0; i < used; i++) {
      const next = at(docTerms, i) + 1;
      termStart[next] = at(termStart, next) + 1;
      if (i % STEP === STEP - 1) yield;
    }
    for (let t = 0; t < this.termNames.length; t++) termStart[t + 1] = at(termStart, t + 1) + at(termStart, t);
    yield;
    const termDocs = new Uint32Array(used);
    const termImpacts = new Float32Array(used);
    const next = termStart.slice();
    for (let doc = 0; doc < this.tools.length; doc++) {
      for (let i = docStart[doc] as number; i < (docStart[doc + 1] as number); i++) {
        const term = at(docTerms, i);
        const place = at(next, term);
        next[term] = place + 1;
        termDocs[place] = doc;
        termImpacts[place] = impactOf(at(docCounts, i));
      }
      if (doc % DOCS === DOCS - 1) yield;
    }
    return new Snapshot({
      tools: this.tools,
      ids: this.ids,
      names: this.names,
      services: Uint32Array.from(this.services),
      terms: this.terms,
      termNames: this.termNames,
      docStart: Uint32Array.from(docStart),
      docTerms,
      docCounts,
      termStart,
      termDocs,
      termImpacts,
    });
  }

  private begin(tool: IndexedTool, terms: number): void {
    const doc = this.tools.length;
    this.tools.push(tool);
    this.ids.set(tool.toolId, doc);
    this.addName(nameKey(tool.name), doc);
    this.services.push(this.table.numberOf(tool.serverId));
    while (this.used + terms > this.docTerms.length) this.grow();
  }

  private term(number: number, count: number): void {
    this.docTerms[this.used] = number;
    this.docCounts[this.used++] = count;
  }

  private termNumber(term: string): number {
    const known = this.terms.get(term);
    if (known !== undefined) return known;
    this.terms.set(term, this.termNames.length);
    return this.termNames.push(term) - 1;
  }

  private addName(key: string, doc: number): void {
    const known = this.names.get(key);
    if (known === undefined) this.names.set(key, doc);
    else if (typeof known === "number") this.names.set(key, [known, doc]);
    else known.push(doc);
  }

  private grow(): void {
    const terms = new Uint32Array(this.docTerms.length * 2);
    terms.set(this.docTerms);
    this.docTerms = terms;
    const counts = new Uint16Array(this.docCounts.length * 2);
    counts.set(this.docCounts);
    this.docCounts = counts;
  }
}

/** Postings and tools between two places to pause: some tenths of a millisecond each. */
const STEP = 100_000;
const DOCS = 1_000;

const NONE: readonly number[] = [];

function at(array: Uint32Array | Uint16Array, i: number): number {
  return array[i] as number;
}
