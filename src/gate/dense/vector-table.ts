import { normOf } from "./quantised.js";
import type { Pace } from "../live-index.js";

/** A native exact search over rows: answers the rows nearest by cosine. A plain loop does the same, at a tenth of the speed. */
export type ExactSearch = (
  rows: Int8Array,
  query: Int8Array,
  dimensions: number,
  count: number,
) => readonly { readonly row: number; readonly similarity: number }[];

export interface Near {
  readonly toolId: string;
  /** Cosine, -1 to 1. */
  readonly similarity: number;
}

/** The loop lets others run after this many values: about three milliseconds. */
const SLICE_VALUES = 1_500_000;
const FIRST_ROWS = 64;

/** The vectors of one namespace in one array, a row a tool. All have the same number of dimensions. */
export class VectorTable {
  private rows = new Int8Array(0);
  private norms = new Float32Array(0);
  private readonly ids: string[] = [];
  private readonly rowOf = new Map<string, number>();

  constructor(
    readonly dimensions: number,
    private readonly pace: Pick<Pace, "pause">,
    private readonly exact: ExactSearch | undefined,
  ) {}

  get size(): number {
    return this.ids.length;
  }

  set(toolId: string, vector: Int8Array): void {
    if (vector.length !== this.dimensions) throw new RangeError(`${vector.length} dimensions instead of ${this.dimensions}`);
    let row = this.rowOf.get(toolId);
    if (row === undefined) {
      row = this.ids.push(toolId) - 1;
      this.rowOf.set(toolId, row);
      if (row >= this.norms.length) this.grow(Math.max(FIRST_ROWS, 2 * row));
    }
    this.rows.set(vector, row * this.dimensions);
    this.norms[row] = normOf(vector);
  }

  /** The last row takes the place of the one that goes, so that there are no holes. */
  delete(toolId: string): void {
    const row = this.rowOf.get(toolId);
    if (row === undefined) return;
    this.rowOf.delete(toolId);
    const lastId = this.ids.pop() as string;
    const last = this.ids.length;
    if (row === last) return;
    this.rows.copyWithin(row * this.dimensions, last * this.dimensions, (last + 1) * this.dimensions);
    this.norms[row] = this.norms[last] as number;
    this.ids[row] = lastId;
    this.rowOf.set(lastId, row);
  }

  /** The `count` nearest, the nearest first, ties by tool id. Changes made meanwhile may count or not. */
  async nearest(query: Int8Array, count: number): Promise<readonly Near[]> {
    const near = this.exact ? this.byExact(this.exact, query, count) : await this.byLoop(query, count);
    return near.sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  private byExact(exact: ExactSearch, query: Int8Array, count: number): Near[] {
    if (this.size === 0) return [];
    const used = this.rows.subarray(0, this.size * this.dimensions);
    const found = exact(used, query, this.dimensions, Math.min(count, this.size));
    return found.map(({ row, similarity }) => ({ toolId: this.ids[row] as string, similarity }));
  }

  private async byLoop(query: Int8Array, count: number): Promise<Near[]> {
    const norm = normOf(query);
    const best: Near[] = [];
    const step = Math.max(1, Math.floor(SLICE_VALUES / this.dimensions));
    for (let from = 0; from < this.size; from += step) {
      if (from > 0) await this.pace.pause();
      const to = Math.min(this.size, from + step);
      for (let row = from; row < to; row++) {
        const similarity = this.product(query, row) / (norm * (this.norms[row] as number));
        keepBest(best, { toolId: this.ids[row] as string, similarity }, count);
      }
    }
    return best;
  }

  private product(query: Int8Array, row: number): number {
    const { rows, dimensions } = this;
    const at = row * dimensions;
    let sum = 0;
    for (let i = 0; i < dimensions; i++) sum += Math.imul(rows[at + i] as number, query[i] as number);
    return sum;
  }

  private grow(capacity: number): void {
    const rows = new Int8Array(capacity * this.dimensions);
    rows.set(this.rows);
    const norms = new Float32Array(capacity);
    norms.set(this.norms);
    this.rows = rows;
    this.norms = norms;
  }
}

/** `best` stays sorted, and short: hardly any row gets as far as the insertion. */
function keepBest(best: Near[], near: Near, count: number): void {
  const last = best[count - 1];
  if (last && !isBefore(near, last)) return;
  let at = best.length;
  while (at > 0 && isBefore(near, best[at - 1] as Near)) at--;
  best.splice(at, 0, near);
  if (best.length > count) best.pop();
}

function isBefore(a: Near, b: Near): boolean {
  return a.similarity > b.similarity || (a.similarity === b.similarity && a.toolId < b.toolId);
}
