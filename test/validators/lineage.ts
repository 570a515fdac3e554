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
  /** Place → places that somebody saw directly before it. */
  readonly #before = new Map<string, Set<string>>();
  readonly #ancestors = new Map<string, ReadonlySet<string>>();
  readonly #byNumber: boolean;

  constructor(history: History) {
    this.#byNumber = history.facts.oneHistory;
    for (const { resumed, steps } of streamsOf(history)) {
      let last = resumed;
      for (const { position } of steps) {
        // Out of order is another validator's business, and proves nothing here.
        if (last && position.revision > last.revision) this.#edge(last, position);
        last = position;
      }
    }
  }

  /** Whether `a` is `b` or is known to be before it. */
  upTo(a: Position, b: Position): boolean {
    if (a.partition !== b.partition || a.revision > b.revision) return false;
    if (this.#byNumber) return true;
    return keyOf(a) === keyOf(b) || this.ancestorsOf(b).has(keyOf(a));
  }

  /** Whether `a` is known to be before `b`. */
  before(a: Position, b: Position): boolean {
    return a.revision < b.revision && this.upTo(a, b);
  }

  /** Keys of all places that were seen before this one, directly or not. */
  ancestorsOf(place: Position): ReadonlySet<string> {
    const key = keyOf(place);
    const known = this.#ancestors.get(key);
    if (known) return known;
    const found = new Set<string>();
    const open = [key];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      for (const earlier of this.#before.get(next) ?? []) {
        if (found.has(earlier)) continue;
        found.add(earlier);
        open.push(earlier);
      }
    }
    this.#ancestors.set(key, found);
    return found;
  }

  #edge(from: Position, to: Position): void {
    const key = keyOf(to);
    const set = this.#before.get(key);
    if (set) set.add(keyOf(from));
    else this.#before.set(key, new Set([keyOf(from)]));
  }
}

const cache = new WeakMap<History, Lineage>();

export function lineageOf(history: History): Lineage {
  const known = cache.get(history) ?? new Lineage(history);
  cache.set(history, known);
  return known;
}
