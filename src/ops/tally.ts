import { Counter, Gauge, type Registry } from "prom-client";

/** One count, to be changed in place by whoever counts often. */
export interface Cell {
  value: number;
}

/**
 * Counts by up to two labels in plain cells, and tells prom-client when it is scraped: to find a labelled value there takes
 * longer than to count, and each call would do it several times.
 */
export class Tally<L extends string> {
  private readonly rows = new Map<string, Map<string, Cell>>();

  constructor(private readonly labels: readonly [L] | readonly [L, L]) {}

  /** The count of these labels, for good: a hot path asks once. */
  cell(labels: Readonly<Record<L, string>>): Cell {
    const [first, second] = this.labels;
    const inner = second === undefined ? "" : labels[second];
    const row = this.rows.get(labels[first]) ?? new Map<string, Cell>();
    this.rows.set(labels[first], row);
    const cell = row.get(inner) ?? { value: 0 };
    row.set(inner, cell);
    return cell;
  }

  inc(labels: Readonly<Record<L, string>>, value = 1): void {
    this.cell(labels).value += value;
  }

  dec(labels: Readonly<Record<L, string>>): void {
    this.cell(labels).value--;
  }

  /** Every labelled count so far. */
  *entries(): Generator<{ labels: Record<L, string>; count: number }> {
    const [first, second] = this.labels;
    for (const [key, row] of this.rows) {
      for (const [inner, { value }] of row) {
        const labels = second === undefined ? { [first]: key } : { [first]: key, [second]: inner };
        yield { labels: labels as Record<L, string>, count: value };
      }
    }
  }
}

interface Told<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [L] | readonly [L, L];
  readonly registers: Registry[];
}

/** A counter that is told its counts at each scrape. */
export function tallyCounter<L extends string>(told: Told<L>): Tally<L> {
  const tally = new Tally<L>(told.labelNames);
  new Counter<L>({
    ...told,
    labelNames: [...told.labelNames],
    collect() {
      this.reset();
      for (const { labels, count } of tally.entries()) this.inc(labels, count);
    },
  });
  return tally;
}

/** A gauge that is told its counts at each scrape. */
export function tallyGauge<L extends string>(told: Told<L>): Tally<L> {
  const tally = new Tally<L>(told.labelNames);
  new Gauge<L>({
    ...told,
    labelNames: [...told.labelNames],
    collect() {
      for (const { labels, count } of tally.entries()) this.set(labels, count);
    },
  });
  return tally;
}
