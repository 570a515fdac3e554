/**
 * Which revision came before which. While no commit was ever lost, numbers say it. Otherwise the same number may stand for
 * several commits, and only what somebody saw one after the other is known to be of one history.
 */
import type { Position } from "../../src/domain/revision.js";
import type { History } from "./history.js";
import { streamsOf } from "./streams.js";

export function keyOf({ partition, revision, chain }: Position): string {
  return `${partition}.${revision}.${chain}`;
}

export class Lineage {
  /** Places by key, in the order in which they were first met. */
  readonly #index = new Map<string, number>();
  readonly #keys: string[] = [];
  /** Of each place, those that somebody saw directly before it. */
  readonly #before: Set<number>[] = [];
  /** Of each place that was asked for, one bit for every place before it: a long history has too many pairs for sets. */
  readonly #ancestors = new Map<number, Uint32Array>();
  readonly #byNumber: boolean;

  constructor(history: History) {
    this.#byNumber = history.facts.oneHistory;
    for (const { resumed, steps } of streamsOf(history)) {
      let last = resumed;
      for (const { position } of steps) {
        // Out of order is another validator's business, and proves nothing here.
        if (last && position.revision > last.revision) this.#before[this.#place(position)]?.add(this.#place(last));
        last = position;
      }
    }
  }

  /** Whether `a` is `b` or is known to be before it. */
  upTo(a: Position, b: Position): boolean {
    if (a.partition !== b.partition || a.revision > b.revision) return false;
    if (this.#byNumber || keyOf(a) === keyOf(b)) return true;
    const [earlier, later] = [this.#index.get(keyOf(a)), this.#index.get(keyOf(b))];
    return earlier !== undefined && later !== undefined && has(this.#ancestorsOf(later), earlier);
  }

  /** Whether `a` is known to be before `b`. */
  before(a: Position, b: Position): boolean {
    return a.revision < b.revision && this.upTo(a, b);
  }

  /** Keys of all places that were seen before this one, directly or not. */
  *ancestorsOf(place: Position): Generator<string> {
    const index = this.#index.get(keyOf(place));
    if (index === undefined) return;
    const found = this.#ancestorsOf(index);
    for (const [i, key] of this.#keys.entries()) if (has(found, i)) yield key;
  }

  #ancestorsOf(place: number): Uint32Array {
    // Ancestors first, without recursion: a history may be longer than the stack.
    const open = [place];
    for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
      const parents = [...(this.#before[at] ?? [])];
      const unknown = this.#ancestors.has(at) ? [] : parents.filter((p) => !this.#ancestors.has(p));
      if (unknown.length > 0) {
        open.push(...unknown);
        continue;
      }
      open.pop();
      if (!this.#ancestors.has(at)) this.#ancestors.set(at, this.#union(parents));
    }
    return this.#ancestors.get(place) as Uint32Array;
  }

  #union(parents: readonly number[]): Uint32Array {
    const bits = new Uint32Array(Math.ceil(this.#keys.length / 32));
    for (const parent of parents) {
      const theirs = this.#ancestors.get(parent) as Uint32Array;
      for (let i = 0; i < bits.length; i++) bits[i] = (bits[i] ?? 0) | (theirs[i] ?? 0);
      bits[parent >>> 5] = (bits[parent >>> 5] ?? 0) | (1 << (parent & 31));
    }
    return bits;
  }

  #place(position: Position): number {
    const key = keyOf(position);
    const known = this.#index.get(key);
    if (known !== undefined) return known;
    this.#index.set(key, this.#keys.length);
    this.#before.push(new Set());
    return this.#keys.push(key) - 1;
  }
}

function has(bits: Uint32Array, index: number): boolean {
  return ((bits[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0;
}

const cache = new WeakMap<History, Lineage>();

export function lineageOf(history: History): Lineage {
  const known = cache.get(history) ?? new Lineage(history);
  cache.set(history, known);
  return known;
}
