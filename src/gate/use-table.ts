import type { Intent } from "./intent.js";
import { type Hasher, markOf, newer, OWN, rememberedTerms, type Use } from "./uses.js";

/** A use near to an intent. */
export interface Near {
  readonly toolId: string;
  readonly use: Use;
  /** Cosine, 0 to 1. */
  readonly likeness: number;
}

/** Uses whose likeness is computed: those that share most with the intent. */
const CONSIDERED = 400;

interface Entry {
  readonly toolId: string;
  readonly use: Use;
  readonly slot: number;
}

/** Uses by tool, by caller and by term, and which of them are like an intent. */
export class UseTable {
  private readonly tools = new Map<string, Entry[]>();
  private readonly perCaller = new Map<number, number>();
  private readonly byTerm = new Map<number, SlotList>();
  private readonly entries: (Entry | undefined)[] = [];
  private readonly free: number[] = [];
  private shared = new Float64Array(0);
  private count = 0;
  private once = 0;

  get size(): number {
    return this.count;
  }

  /** Tools with a single use. */
  get usedOnce(): number {
    return this.once;
  }

  get callers(): number {
    return this.perCaller.size;
  }

  usesOf(caller: number): number {
    return this.perCaller.get(caller) ?? 0;
  }

  toolIds(): Iterable<string> {
    return this.tools.keys();
  }

  /** The newest first. */
  uses(toolId: string): readonly Use[] {
    return (this.tools.get(toolId) ?? []).map(({ use }) => use);
  }

  /** Replaces the uses of a tool; uses that stay are not touched. */
  set(toolId: string, uses: readonly Use[]): void {
    const before = this.tools.get(toolId) ?? [];
    const known = new Map(before.map((entry) => [entry.use, entry]));
    const kept = new Set(uses);
    for (const entry of before) if (!kept.has(entry.use)) this.drop(entry);
    const after = uses.map((use) => known.get(use) ?? this.take(toolId, use));
    this.once += (after.length === 1 ? 1 : 0) - (before.length === 1 ? 1 : 0);
    if (after.length === 0) this.tools.delete(toolId);
    else this.tools.set(toolId, after);
  }

  /** Drops the oldest until `left` remain. */
  shed(left: number): void {
    const all = [...this.tools.values()].flat().sort((a, b) => newer(b.use, a.use) || (a.toolId < b.toolId ? -1 : 1));
    const going = new Set(all.slice(0, Math.max(0, this.count - left)));
    for (const toolId of new Set([...going].map((entry) => entry.toolId))) {
      const stay = (this.tools.get(toolId) ?? []).filter((entry) => !going.has(entry));
      this.set(toolId, stay.map(({ use }) => use));
    }
  }

  /**
   * The uses most like an intent, the nearest first. The intents themselves must be alike, and also all that was said: an
   * earlier turn that two intents of one conversation share does not make them alike.
   */
  nearest(intent: Intent, hasher: Hasher, most: number, least: number): Near[] {
    const asked = this.asked(intent, hasher);
    const near: Near[] = [];
    for (const entry of this.sharing(asked)) {
      const likeness = Math.min(1, this.likeness(asked, entry.use));
      if (likeness >= least) near.push({ toolId: entry.toolId, use: entry.use, likeness });
    }
    const order = (a: Near, b: Near) =>
      b.likeness - a.likeness || newer(a.use, b.use) || (a.toolId < b.toolId ? -1 : a.toolId > b.toolId ? 1 : 0);
    return near.sort(order).slice(0, most);
  }

  private asked(intent: Intent, hasher: Hasher): Asked {
    const terms = new Map<number, { worth: number; own: boolean }>();
    let all = 0;
    let own = 0;
    const marked = rememberedTerms(intent).map((term) => ({ hash: hasher.hash(term.term), mark: markOf(term) }));
    for (const { hash, mark } of marked.sort((a, b) => a.hash - b.hash)) {
      const worth = (mark & ~OWN) * this.rarity(hash);
      terms.set(hash, { worth, own: (mark & OWN) !== 0 });
      all += worth * worth;
      if (mark & OWN) own += worth * worth;
    }
    return { terms, all, own };
  }

  /** The entries that share most with what is asked. */
  private sharing({ terms }: Asked): Entry[] {
    if (this.shared.length < this.entries.length) this.shared = new Float64Array(this.entries.length * 2);
    const { shared } = this;
    const touched: number[] = [];
    for (const [hash, { worth }] of terms) {
      const list = this.byTerm.get(hash);
      if (!list) continue;
      const weight = worth * this.rarity(hash);
      for (let i = 0; i < list.length; i++) {
        const slot = list.slots[i] as number;
        if (shared[slot] === 0) touched.push(slot);
        shared[slot] = (shared[slot] as number) + weight;
      }
    }
    const least = touched.length > CONSIDERED ? leastOfBest(shared, touched, CONSIDERED) : 0;
    const entries = touched.filter((slot) => (shared[slot] as number) >= least).map((slot) => this.entries[slot] as Entry);
    for (const slot of touched) shared[slot] = 0;
    return entries;
  }

  private likeness(asked: Asked, { terms, marks }: Use): number {
    let dot = 0;
    let ownDot = 0;
    let all = 0;
    let own = 0;
    for (let i = 0; i < terms.length; i++) {
      const mark = marks[i] as number;
      const hash = terms[i] as number;
      const worth = (mark & ~OWN) * this.rarity(hash);
      all += worth * worth;
      if (mark & OWN) own += worth * worth;
      const other = asked.terms.get(hash);
      if (!other) continue;
      dot += worth * other.worth;
      if (mark & OWN && other.own) ownDot += worth * other.worth;
    }
    return Math.min(cosine(dot, all, asked.all), cosine(ownDot, own, asked.own));
  }

  private rarity(hash: number): number {
    return Math.log(1 + this.count / (1 + (this.byTerm.get(hash)?.length ?? 0)));
  }

  private take(toolId: string, use: Use): Entry {
    const slot = this.free.pop() ?? this.entries.length;
    const entry = { toolId, use, slot };
    this.entries[slot] = entry;
    this.count++;
    this.perCaller.set(use.caller, this.usesOf(use.caller) + 1);
    for (const hash of use.terms) {
      const list = this.byTerm.get(hash);
      if (list) list.add(slot);
      else this.byTerm.set(hash, new SlotList(slot));
    }
    return entry;
  }

  private drop({ use, slot }: Entry): void {
    this.entries[slot] = undefined;
    this.free.push(slot);
    this.count--;
    const left = this.usesOf(use.caller) - 1;
    if (left > 0) this.perCaller.set(use.caller, left);
    else this.perCaller.delete(use.caller);
    for (const hash of use.terms) {
      const list = this.byTerm.get(hash);
      list?.remove(slot);
      if (list?.length === 0) this.byTerm.delete(hash);
    }
  }
}

interface Asked {
  /** In ascending order of hashes, so that sums are made alike everywhere. */
  readonly terms: ReadonlyMap<number, { readonly worth: number; readonly own: boolean }>;
  /** Squares of the worths together, of all terms and of the intent's own. */
  readonly all: number;
  readonly own: number;
}

function cosine(dot: number, a: number, b: number): number {
  return a > 0 && b > 0 ? dot / Math.sqrt(a * b) : 0;
}

/** The value of the best `n` that is the least; equal ones beyond them count as well. */
function leastOfBest(values: Float64Array, places: readonly number[], n: number): number {
  const sorted = Float64Array.from(places, (place) => values[place] as number).sort();
  return sorted[sorted.length - n] as number;
}

class SlotList {
  slots = new Uint32Array(2);
  length = 1;

  constructor(first: number) {
    this.slots[0] = first;
  }

  add(slot: number): void {
    if (this.length === this.slots.length) {
      const bigger = new Uint32Array(this.length * 2);
      bigger.set(this.slots);
      this.slots = bigger;
    }
    this.slots[this.length++] = slot;
  }

  remove(slot: number): void {
    const at = this.slots.subarray(0, this.length).indexOf(slot);
    if (at >= 0) this.slots[at] = this.slots[--this.length] as number;
  }
}
