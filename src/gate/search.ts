import type { Intent, IntentTerm } from "./intent.js";
import { nameKey } from "./intent.js";
import { Scores } from "./scores.js";
import { type IndexedTool, K1, type Segment } from "./segment.js";
import { better, type Place, Top } from "./top.js";

export type { IndexedTool };

export interface Hit {
  readonly tool: IndexedTool;
  /** Lexical score; comparable within one answer. */
  readonly raw: number;
  /** Raw ÷ the score of an ideal tool for this intent: 0 to 1, comparable between intents. */
  readonly absolute: number;
  /** Words of the intent that the tool has, as they stood there, the rarest first. */
  readonly matched: () => readonly string[];
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
  private readonly scores = new Scores();

  search(segments: readonly Segment[], services: number, intent: Intent, options: SearchOptions): SearchResult {
    const weighed = weigh(segments, intent.terms);
    // Pairs come on top of their words: a tool that has the words alone fits as well as it can.
    const ideal = weighed.reduce((sum, { worth, pair }) => sum + (pair ? 0 : worth), 0);
    const rare = (K1 + 1) * rarity(liveOf(segments), 1);
    const matchedIn = wordsMatched(weighed);
    const exact = exactlyNamed(segments, intent.names, options.accept);
    const also = wanted(segments, exact, options);
    this.scores.score(segments, services, weighed);
    try {
      const scored = ({ segment, doc, toolId }: Place) => ({ segment, doc, raw: this.scores.of(segment, doc), toolId });
      const named = [...exact.values()].map(scored).sort(better);
      const top = this.best((toolId) => exact.has(toolId) || also.has(toolId), options);
      const others = [...top, ...[...also.values()].map(scored)].sort(better);
      const hits = [...named, ...others].map(({ segment, doc, raw }): Hit => {
        const tool = segment.tool(doc);
        const absolute = ideal > 0 ? Math.min(1, raw / ideal) : 0;
        return { tool, raw, absolute, matched: () => matchedIn(segment, doc), exactName: exact.has(tool.toolId) };
      });
      return { hits, ideal, rare };
    } finally {
      this.scores.clear();
    }
  }

  private best(taken: (toolId: string) => boolean, { limit, accept }: SearchOptions): readonly Place[] {
    const from = (bar: number): readonly Place[] => {
      const top = new Top(limit);
      const least = () => Math.max(bar, top.least);
      this.scores.each(least, (segment, doc, raw) => {
        const tool = segment.tool(doc);
        const place = { segment, doc, raw, toolId: tool.toolId };
        if (top.wouldTake(place) && !taken(tool.toolId) && (!accept || accept(tool))) top.take(place);
      });
      return top.places();
    };
    // With a bar from the start few tools are looked at twice; where too many of those above it are turned down, none serves.
    const bar = this.scores.reachedBy(limit + SPARE);
    const found = from(bar);
    return found.length >= limit || bar === 0 ? found : from(0);
  }
}

/** Tools above the first bar that may be turned down. */
const SPARE = 20;

/** Answers, for a tool, the words of the intent that it has. */
function wordsMatched(weighed: readonly Weighed[]): (segment: Segment, doc: number) => readonly string[] {
  // A tool that has two words side by side has both of them, and they are told once.
  const words = weighed.filter(({ pair }) => !pair);
  const terms = words.map(({ term }) => term);
  const matchers = new Map<Segment, (doc: number) => number[]>();
  return (segment, doc) => {
    const matcher = matchers.get(segment) ?? segment.matcher(terms);
    matchers.set(segment, matcher);
    return matcher(doc).map((i) => (words[i] as Weighed).word);
  };
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
    return { ...term, worth: term.weight * rarity(live, frequency) * (K1 + 1) };
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
