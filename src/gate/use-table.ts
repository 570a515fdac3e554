import type { Intent } from "./intent.js";
import { nthLargest } from "./nth-largest.js";
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
  /** Squares of the worths together, as they were at that version of the table. */
  all: number;
  own: number;
  version: number;
}

/** Uses by tool, by caller and by term, and which of them are like an intent. */
export class UseTable {
  private readonly tools = new Map<string, Entry[]>();
  private readonly perCaller = new Map<number, number>();
  private readonly byTerm = new Map<number, SlotList>();
  private readonly entries: (Entry | undefined)[] = [];
  private readonly free: number[] = [];
  private shared = new Float64Array(0);
  private ownShared = new Float64Array(0);
  private touched = new Uint32Array(0);
  private version = 0;
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
    const slots = this.sharing(asked);
    const alike = new Float64Array(slots.length);
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as number;
      alike[i] = this.likeness(slot, asked);
      this.shared[slot] = this.ownShared[slot] = 0;
    }
    const bar = Math.max(least, slots.length > most ? nthLargest(alike.slice(), most) : 0);
    const near: Near[] = [];
    for (let i = 0; i < slots.length; i++) {
      const likeness = alike[i] as number;
      if (likeness < bar) continue;
      const { toolId, use } = this.entries[slots[i] as number] as Entry;
      near.push({ toolId, use, likeness });
    }
    const order = (a: Near, b: Near) =>
      (a.likeness > b.likeness ? -1 : a.likeness < b.likeness ? 1 : 0) || newer(a.use, b.use) || (a.toolId < b.toolId ? -1 : a.toolId > b.toolId ? 1 : 0);
    return near.sort(order).slice(0, most);
  }

  private likeness(slot: number, asked: Asked): number {
    const entry = this.entries[slot] as Entry;
    this.measure(entry);
    const shared = this.shared[slot] as number;
    const own = this.ownShared[slot] as number;
    return Math.min(cosine(shared, entry.all, asked.all), cosine(own, entry.own, asked.own), 1);
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

  /** Slots of the entries that share most with what is asked; how much, in all and of the intents themselves, is left in the arrays. */
  private sharing({ terms }: Asked): Uint32Array {
    if (this.shared.length < this.entries.length) {
      this.shared = new Float64Array(this.entries.length * 2);
      this.ownShared = new Float64Array(this.entries.length * 2);
      this.touched = new Uint32Array(this.entries.length * 2);
    }
    const { shared, ownShared, touched } = this;
    let found = 0;
    for (const [hash, { worth, own }] of terms) {
      const list = this.byTerm.get(hash);
      if (!list) continue;
      const weight = worth * this.rarity(hash);
      const { slots, marks, length } = list;
      for (let i = 0; i < length; i++) {
        const slot = slots[i] as number;
        const mark = marks[i] as number;
        const adds = weight * (mark & ~OWN);
        const before = shared[slot] as number;
        if (before === 0) touched[found++] = slot;
        shared[slot] = before + adds;
        if (own && mark & OWN) ownShared[slot] = (ownShared[slot] as number) + adds;
      }
    }
    return found <= CONSIDERED ? touched.slice(0, found) : this.mostOf(touched.subarray(0, found));
  }

  /** Those of the slots that share most; the others are cleared. */
  private mostOf(slots: Uint32Array): Uint32Array {
    const { shared, ownShared } = this;
    const amounts = new Float64Array(slots.length);
    for (let i = 0; i < slots.length; i++) amounts[i] = shared[slots[i] as number] as number;
    const least = nthLargest(amounts, CONSIDERED);
    let kept = 0;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as number;
      if ((shared[slot] as number) >= least) slots[kept++] = slot;
      else shared[slot] = ownShared[slot] = 0;
    }
    return slots.slice(0, kept);
  }

  /** Rarities move with every use; what hangs on them is made anew when it is needed after that. */
  private measure(entry: Entry): void {
    if (entry.version === this.version) return;
    const { terms, marks } = entry.use;
    entry.all = 0;
    entry.own = 0;
    for (let i = 0; i < terms.length; i++) {
      const mark = marks[i] as number;
      const worth = (mark & ~OWN) * this.rarity(terms[i] as number);
      entry.all += worth * worth;
      if (mark & OWN) entry.own += worth * worth;
    }
    entry.version = this.version;
  }

  private rarity(hash: number): number {
    return Math.log(1 + this.count / (1 + (this.byTerm.get(hash)?.length ?? 0)));
  }

  private take(toolId: string, use: Use): Entry {
    const slot = this.free.pop() ?? this.entries.length;
    const entry = { toolId, use, slot, all: 0, own: 0, version: -1 };
    this.entries[slot] = entry;
    this.count++;
    this.perCaller.set(use.caller, this.usesOf(use.caller) + 1);
    for (const [i, hash] of use.terms.entries()) {
      const list = this.byTerm.get(hash) ?? new SlotList();
      list.add(slot, use.marks[i] as number);
      this.byTerm.set(hash, list);
    }
    this.version++;
    return entry;
  }

  private drop({ use, slot }: Entry): void {
    this.entries[slot] = undefined;
    this.free.push(slot);
    this.version++;
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

/** Where a term stands: slots of entries, and its marks there. */
class SlotList {
  slots = new Uint32Array(2);
  marks = new Uint16Array(2);
  length = 0;

  add(slot: number, mark: number): void {
    if (this.length === this.slots.length) {
      this.slots = doubled(this.slots, new Uint32Array(this.length * 2));
      this.marks = doubled(this.marks, new Uint16Array(this.length * 2));
    }
    this.slots[this.length] = slot;
    this.marks[this.length++] = mark;
  }

  remove(slot: number): void {
    const at = this.slots.subarray(0, this.length).indexOf(slot);
    if (at < 0) return;
    this.length--;
    this.slots[at] = this.slots[this.length] as number;
    this.marks[at] = this.marks[this.length] as number;
  }
}

function doubled<T extends Uint32Array | Uint16Array>(old: T, bigger: T): T {
  bigger.set(old);
  return bigger;
}
