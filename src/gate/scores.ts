import type { Segment } from "./segment.js";

/** How much the best tool of a server lends to its others: a tool among tools that fit is likelier than one that fits by chance. */
export const SERVICE = 0.3;
const OWN = 1 / (1 + SERVICE);
const LENT = SERVICE / (1 + SERVICE);

/** A term and what it is worth in a tool that is nothing but this term. */
export interface Worth {
  readonly term: string;
  readonly worth: number;
}

/**
 * The scores of all tools of some segments, in arrays that one search after another uses. Every pass goes over all tools in their
 * order rather than over those that were touched: that costs a tool a nanosecond, and a list of those costs each posting more.
 */
export class Scores {
  private all = new Float64Array(0);
  private views: Float64Array[] = [];
  private best = new Float64Array(0);
  private segments: readonly Segment[] = [];
  private services = 0;

  /** Scores all tools; until `clear` the other methods answer for these. */
  score(segments: readonly Segment[], services: number, terms: readonly Worth[]): void {
    this.reserve(segments, services);
    for (const { term, worth } of terms) {
      for (let s = 0; s < segments.length; s++) {
        const postings = (segments[s] as Segment).postings(term);
        if (postings) add(this.views[s] as Float64Array, postings, worth);
      }
    }
    this.findBest();
  }

  of(segment: Segment, doc: number): number {
    const own = this.views[this.segments.indexOf(segment)]?.[doc] as number;
    // A server lends to tools that say something themselves.
    if (own === 0) return 0;
    return OWN * own + LENT * (this.best[segment.services[doc] as number] as number);
  }

  /** Live tools that have any of the terms, in no order that means anything; `least` is asked again and again: below it none is told. */
  each(least: () => number, tell: (segment: Segment, doc: number, score: number) => void): void {
    const { best } = this;
    for (let s = 0; s < this.segments.length; s++) {
      const segment = this.segments[s] as Segment;
      const view = this.views[s] as Float64Array;
      const { gone, services } = segment;
      let bar = least();
      for (let doc = 0; doc < segment.size; doc++) {
        const own = view[doc] as number;
        if (own === 0) continue;
        const ofService = best[services[doc] as number] as number;
        // No tool is better than the best of its server.
        if (ofService * (1 + ROUNDING) < bar) continue;
        const score = OWN * own + LENT * ofService;
        if (score < bar || gone[doc] === 1) continue;
        tell(segment, doc, score);
        bar = least();
      }
    }
  }

  /** A score that at least `count` tools reach, and not many more; 0 where there are not so many. */
  reachedBy(count: number): number {
    let most = 0;
    for (let service = 0; service < this.services; service++) most = Math.max(most, this.best[service] as number);
    if (most === 0) return 0;
    const held = new Uint32Array(STEPS + 1);
    const hold = (score: number) => {
      const step = Math.min(STEPS, Math.floor((score / most) * STEPS));
      held[step] = (held[step] as number) + 1;
    };
    // The best tool of a server has the best's own score, so that many servers are that many tools, and there are fewer of them.
    if (this.services >= MANY * count) for (let service = 0; service < this.services; service++) hold(this.best[service] as number);
    else this.each(() => 0, (_segment, _doc, score) => hold(score));
    let found = 0;
    for (let step = STEPS; step > 0; step--) {
      found += held[step] as number;
      if (found >= count) return (step / STEPS) * most * (1 - ROUNDING);
    }
    return 0;
  }

  clear(): void {
    for (const view of this.views) view.fill(0);
    this.best.fill(0, 0, this.services);
    this.views = [];
    this.segments = [];
  }

  private reserve(segments: readonly Segment[], services: number): void {
    const size = segments.reduce((sum, segment) => sum + segment.size, 0);
    if (this.all.length < size) this.all = new Float64Array(Math.ceil(size * 1.2));
    if (this.best.length < services) this.best = new Float64Array(Math.ceil(services * 1.2));
    this.segments = segments;
    this.services = services;
    let offset = 0;
    this.views = segments.map((segment) => {
      const view = this.all.subarray(offset, offset + segment.size);
      offset += segment.size;
      return view;
    });
  }

  private findBest(): void {
    const { best } = this;
    for (let s = 0; s < this.segments.length; s++) {
      const { gone, services, size } = this.segments[s] as Segment;
      const view = this.views[s] as Float64Array;
      for (let doc = 0; doc < size; doc++) {
        const score = view[doc] as number;
        const service = services[doc] as number;
        if (score > (best[service] as number) && gone[doc] === 0) best[service] = score;
      }
    }
  }
}

/** Of the best score, what the search for a bar tells apart. */
const STEPS = 512;
/** From this many servers for each tool that is sought, they tell enough. */
const MANY = 4;
/** Sums of shares may come out a little below the whole. */
const ROUNDING = 1e-9;

function add(scores: Float64Array, { docs, impacts, from, to }: NonNullable<ReturnType<Segment["postings"]>>, worth: number): void {
  for (let i = from; i < to; i++) {
    const doc = docs[i] as number;
    scores[doc] = (scores[doc] as number) + worth * (impacts[i] as number);
  }
}
