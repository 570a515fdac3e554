import type { Metrics } from "../ops.js";

/** Metrics with the moment at which they were read, ms on a clock that never goes back. */
export interface Reading {
  readonly metrics: Metrics;
  readonly atMs: number;
}

export interface MethodRate {
  /** Such as `GetStubs`. */
  readonly method: string;
  readonly perSecond: number;
  readonly errorsPerSecond: number;
  /** Mean time to answer a unary call in between; undefined where none was answered. */
  readonly meanMs: number | undefined;
  readonly inFlight: number;
}

/** Codes of calls that ended as their caller wanted. */
const FINE = new Set(["OK", "CANCELLED"]);

/** The busiest first; methods that never were called are left out. */
export function methodRates(before: Reading, after: Reading): MethodRate[] {
  const seconds = (after.atMs - before.atMs) / 1_000;
  const methods = new Set(
    after.metrics.samples("toolcrib_rpc_requests_total").map(({ labels }) => labels["method"] ?? ""),
  );
  for (const { labels, value } of after.metrics.samples("toolcrib_rpc_in_flight"))
    if (value > 0) methods.add(labels["method"] ?? "");
  const rates = [...methods].map((method): MethodRate => {
    const growth = (name: string, more: (code: string) => boolean = () => true): number => {
      const matches = (labels: Readonly<Record<string, string>>): boolean =>
        labels["method"] === method && more(labels["code"] ?? "");
      // A counter that fell began anew: the registry was restarted.
      return Math.max(0, (after.metrics.total(name, matches) ?? 0) - (before.metrics.total(name, matches) ?? 0));
    };
    const answered = growth("toolcrib_rpc_duration_seconds_count");
    return {
      method: method.slice(method.lastIndexOf("/") + 1),
      perSecond: growth("toolcrib_rpc_requests_total") / seconds,
      errorsPerSecond: growth("toolcrib_rpc_requests_total", (code) => !FINE.has(code)) / seconds,
      meanMs: answered > 0 ? (growth("toolcrib_rpc_duration_seconds_sum") / answered) * 1_000 : undefined,
      inFlight: after.metrics.total("toolcrib_rpc_in_flight", (labels) => labels["method"] === method) ?? 0,
    };
  });
  return rates.sort((a, b) => b.perSecond - a.perSecond || b.inFlight - a.inFlight || (a.method < b.method ? -1 : 1));
}

/** Growth a second of a counter, over all of its labels. */
export function rateOf(name: string, before: Reading, after: Reading): number {
  const growth = (after.metrics.total(name) ?? 0) - (before.metrics.total(name) ?? 0);
  return Math.max(0, growth) / ((after.atMs - before.atMs) / 1_000);
}
