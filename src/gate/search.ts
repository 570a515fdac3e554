import { COUNT_UNIT } from "./fields.js";
import type { Intent, IntentTerm } from "./intent.js";
import { nameKey } from "./intent.js";
import type { IndexedTool, Segment } from "./segment.js";

export type { IndexedTool };

/** BM25 over weighted fields (BM25F); what the lengths of fields do is in `fields.ts`. */
export const SCORING = {
  k1: 1.2,
  /** How much the best tool of a server lends to its others. */
  service: 0.3,
} as const;

export interface Hit {
  readonly tool: IndexedTool;
  /** Lexical score; comparable within one answer. */
  readonly raw: number;
  /** Raw ÷ the score of an ideal tool for this intent: 0 to 1, comparable between intents. */
  readonly absolute: number;
  /** Words of the intent that the tool has, as they stood there, the rarest first. */
  readonly matched: readonly string[];
  /** The intent names this tool, or its id. */
  readonly exactName: boolean;
}

export interface SearchOptions {
  /** Hits wanted; exactly named tools come on top of it. 1 to 1,000. */
  readonly limit: number;
  /** Tools it turns down are left out; asked only about tools that would be answered. */
  readonly accept?: (tool: IndexedTool) => boolean;
  /** Tools whose hits are wanted whatever their score, on top of the limit; unknown ones are left out. */
  readonly also?: Iterable<string>;
}

export interface SearchResult {
  /** Exactly named tools first, then by score, ties by tool id. */
  readonly hits: readonly Hit[];
  /** The raw score that a tool would have that says nothing but the words asked for. */
  readonly ideal: number;
  /** What a word adds to the raw score of the one tool that has it: the measure of what is much. */
  readonly rare: number;
}

interface Weighed extends IntentTerm {
  /** Weight × inverse document frequency × (k1 + 1). */
  readonly worth: number;
}

/** Exactly named tools of one answer: a server that registers one name a thousand times shows no more of it. */
const EXACT_MOST = 100;

/** Scores tools of several segments as if they were one. Holds the scratch arrays, so one search at a time. */
export class Searcher {
  private scores = new Float64Array(0);
  private touched = new Uint32Array(0);
  private best = new Float64Array(0);

  search(segments: readonly Segment[], services: number, intent: Intent, options: SearchOptions): SearchResult {
    const weighed = weigh(segments, intent.terms);
    // Pairs come on top of their words: a tool that has the words alone fits as well as it can.
    const ideal = weighed.reduce((sum, { worth, pair }) => sum + (pair ? 0 : worth), 0);
    const rare = (SCORING.k1 + 1) * rarity(liveOf(segments), 1);
    this.reserve(segments, services);
    const found = this.accumulate(segments, weighed);
    this.lend(segments, found);
    const exact = exactlyNamed(segments, intent.names, options.accept);
    const also = wanted(segments, exact, options);
    const top = new Top(options.limit);
    this.select(segments, found, (toolId) => exact.has(toolId) || also.has(toolId), options, top);
    // A tool that has two words side by side has both of them, and they are told once.
    const words = weighed.filter(({ pair }) => !pair);
    const matchers = new Map(segments.map((segment) => [segment, segment.matcher(words.map(({ term }) => term))]));
    const rank = ({ segment, doc, raw }: Place): Hit => {
      const matched = (matchers.get(segment)?.(doc) ?? []).map((i) => (words[i] as Weighed).word);
      const tool = segment.tool(doc);
      return { tool, raw, absolute: ideal > 0 ? Math.min(1, raw / ideal) : 0, matched, exactName: exact.has(tool.toolId) };
    };
    const scored = (place: Place) => ({ ...place, raw: this.scoreOf(segments, place) });
    const named = [...exact.values()].map(scored).sort(better);
    const others = [...top.places(), ...[...also.values()].map(scored)].sort(better);
    const hits = [...named, ...others].map(rank);
    this.clear(found);
    return { hits, ideal, rare };
  }

  private reserve(segments: readonly Segment[], services: number): void {
    const size = segments.reduce((sum, segment) => sum + segment.size, 0);
    if (this.scores.length < size) {
      this.scores = new Float64Array(Math.ceil(size * 1.2));
      this.touched = new Uint32Array(this.scores.length);
    }
    if (this.best.length < services) this.best = new Float64Array(Math.ceil(services * 1.2));
  }

  /** Adds up the worth of terms per tool; answers how many tools have any. */
  private accumulate(segments: readonly Segment[], weighed: readonly Weighed[]): number {
    const { scores, touched } = this;
    const half = SCORING.k1 / COUNT_UNIT;
    let found = 0;
    for (const { term, worth } of weighed) {
      let offset = 0;
      for (const segment of segments) {
        const postings = segment.postings(term);
        if (postings) {
          const { docs, counts, to } = postings;
          const { gone } = segment;
          for (let i = postings.from; i < to; i++) {
            const doc = docs[i] as number;
            if (gone[doc] === 1) continue;
            const count = counts[i] as number;
            const before = scores[offset + doc] as number;
            if (before === 0) touched[found++] = offset + doc;
            scores[offset + doc] = before + (worth * count) / (count + half);
          }
        }
        offset += segment.size;
      }
    }
    return found;
  }

  /** A tool among tools that fit is likelier than one that fits by chance: the best of a server lends to the others. */
  private lend(segments: readonly Segment[], found: number): void {
    const { scores, touched, best } = this;
    const first = segments[0]?.size ?? 0;
    const serviceOf = (place: number) =>
      (place < first ? segments[0]?.services[place] : segments[1]?.services[place - first]) as number;
    for (let i = 0; i < found; i++) {
      const place = touched[i] as number;
      const service = serviceOf(place);
      const score = scores[place] as number;
      if (score > (best[service] as number)) best[service] = score;
    }
    const own = 1 / (1 + SCORING.service);
    const lent = SCORING.service / (1 + SCORING.service);
    for (let i = 0; i < found; i++) {
      const place = touched[i] as number;
      scores[place] = own * (scores[place] as number) + lent * (best[serviceOf(place)] as number);
    }
  }

  private select(
    segments: readonly Segment[],
    found: number,
    taken: (toolId: string) => boolean,
    { accept }: SearchOptions,
    top: Top,
  ): void {
    const first = segments[0]?.size ?? 0;
    for (let i = 0; i < found; i++) {
      const number = this.touched[i] as number;
      const raw = this.scores[number] as number;
      if (raw < top.least) continue;
      const segment = (number < first ? segments[0] : segments[1]) as Segment;
      const doc = number < first ? number : number - first;
      const tool = segment.tool(doc);
      const place = { segment, doc, raw, toolId: tool.toolId };
      if (top.wouldTake(place) && !taken(tool.toolId) && (!accept || accept(tool))) top.take(place);
    }
  }

  private scoreOf(segments: readonly Segment[], { segment, doc }: Place): number {
    const offset = segment === segments[0] ? 0 : (segments[0]?.size ?? 0);
    return this.scores[offset + doc] as number;
  }

  private clear(found: number): void {
    for (let i = 0; i < found; i++) this.scores[this.touched[i] as number] = 0;
    this.best.fill(0);
  }
}

function liveOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, segment) => sum + segment.live, 0);
}

/** Inverse document frequency, always above 0. */
function rarity(live: number, frequency: number): number {
  return Math.log(1 + (live - frequency + 0.5) / (frequency + 0.5));
}

/** The terms with their worth, the rarest first; equal ones in the order of their letters, so that sums are made alike. */
function weigh(segments: readonly Segment[], terms: readonly IntentTerm[]): Weighed[] {
  const live = liveOf(segments);
  const weighed = terms.map((term) => {
    const frequency = segments.reduce((sum, segment) => sum + segment.frequency(term.term), 0);
    return { ...term, worth: term.weight * rarity(live, frequency) * (SCORING.k1 + 1) };
  });
  return weighed.sort((a, b) => b.worth - a.worth || (a.term < b.term ? -1 : 1));
}

function exactlyNamed(
  segments: readonly Segment[],
  names: readonly string[],
  accept: SearchOptions["accept"],
): Map<string, Place> {
  const exact = new Map<string, Place>();
  const add = (segment: Segment, doc: number) => {
    const tool = segment.tool(doc);
    if (segment.gone[doc] === 1 || exact.size >= EXACT_MOST || (accept && !accept(tool))) return;
    exact.set(tool.toolId, { segment, doc, raw: 0, toolId: tool.toolId });
  };
  for (const name of names) {
    const key = nameKey(name);
    for (const segment of segments) {
      const byId = segment.find(name);
      if (byId !== undefined) add(segment, byId);
      for (const doc of segment.named(key)) add(segment, doc);
    }
  }
  return exact;
}

function wanted(
  segments: readonly Segment[],
  exact: ReadonlyMap<string, Place>,
  { also = [], accept }: SearchOptions,
): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const toolId of also) {
    if (exact.has(toolId)) continue;
    for (const segment of segments) {
      const doc = segment.find(toolId);
      if (doc !== undefined && (!accept || accept(segment.tool(doc)))) places.set(toolId, { segment, doc, raw: 0, toolId });
    }
  }
  return places;
}

interface Place {
  readonly segment: Segment;
  readonly doc: number;
  readonly raw: number;
  readonly toolId: string;
}

function better(a: Place, b: Place): number {
  return b.raw - a.raw || (a.toolId < b.toolId ? -1 : a.toolId > b.toolId ? 1 : 0);
}

/** The best places seen so far, in a heap whose root is the worst of them. */
class Top {
  private readonly heap: Place[] = [];

  constructor(private readonly limit: number) {}

  /** A score below it has no chance. */
  get least(): number {
    return this.heap.length < this.limit ? 0 : (this.heap[0] as Place).raw;
  }

  wouldTake(place: Place): boolean {
    return this.heap.length < this.limit || better(place, this.heap[0] as Place) < 0;
  }

  take(place: Place): void {
    const { heap } = this;
    if (heap.length < this.limit) {
      heap.push(place);
      this.rise(heap.length - 1);
    } else {
      heap[0] = place;
      this.sink();
    }
  }

  /** In no order. */
  places(): readonly Place[] {
    return this.heap;
  }

  private rise(from: number): void {
    const { heap } = this;
    let i = from;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (better(heap[i] as Place, heap[parent] as Place) <= 0) return;
      this.swap(i, parent);
      i = parent;
    }
  }

  private sink(): void {
    const { heap } = this;
    let i = 0;
    for (;;) {
      let worst = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && better(heap[child] as Place, heap[worst] as Place) > 0) worst = child;
      }
      if (worst === i) return;
      this.swap(i, worst);
      i = worst;
    }
  }

  private swap(a: number, b: number): void {
    const { heap } = this;
    [heap[a], heap[b]] = [heap[b] as Place, heap[a] as Place];
  }
}
