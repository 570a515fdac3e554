import { Histogram } from "prom-client";

/** Durations of one label value. */
export class Durations {
  /** One count per bound, and one for what is longer than all of them. Not cumulative. */
  readonly counts: number[];
  sum = 0;

  constructor(private readonly bounds: readonly number[]) {
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(seconds: number): void {
    let at = 0;
    while (at < this.bounds.length && seconds > (this.bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += seconds;
  }
}

type Told = ConstructorParameters<typeof Histogram<"method">>[0];
type Value = Awaited<ReturnType<Histogram<"method">["get"]>>["values"][number];

/** A histogram by method that is added up in plain arrays and only at a scrape put into prom-client's form; see Tally. */
export class DurationHistogram extends Histogram<"method"> {
  private readonly methods = new Map<string, Durations>();
  private readonly bounds: readonly number[];

  constructor(told: Told & { readonly buckets: number[] }) {
    super(told);
    this.bounds = told.buckets;
  }

  /** The durations of a method, for good: a hot path asks once. */
  of(method: string): Durations {
    const known = this.methods.get(method);
    if (known) return known;
    const made = new Durations(this.bounds);
    this.methods.set(method, made);
    return made;
  }

  override async get(): ReturnType<Histogram<"method">["get"]> {
    const values = [...this.methods].flatMap(([method, durations]) => this.valuesOf(method, durations));
    return { ...(await super.get()), values };
  }

  private valuesOf(method: string, { counts, sum }: Durations): Value[] {
    const { name } = this as unknown as { readonly name: string };
    let total = 0;
    const buckets = counts.map((count, i): Value => {
      total += count;
      // prom-client itself adds `le` to the labels that its types allow.
      return { metricName: `${name}_bucket`, labels: { method, le: this.bounds[i] ?? "+Inf" }, value: total } as Value;
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: { method }, value: sum },
      { metricName: `${name}_count`, labels: { method }, value: total },
    ];
  }
}
