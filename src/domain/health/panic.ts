/** The panic rule: when most servers turn bad at once, it is likelier that the registry is cut off than that they all failed. */

/** Fewer bad ones than this are ordinary, whatever share they are. */
export const PANIC_MIN_BAD = 5;

/** The newest look at a server whose breaker is closed: those that are known to be down say nothing about us. */
export interface Newest {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly bad: boolean;
}

export type PanicJudgement =
  | "calm"
  /** So far it looks like it; the servers that were not looked at since decide. */
  | "doubt"
  /** More than half of all servers turned bad at once. */
  | "panic";

/**
 * `sinceMs` is when the server that is about to fall turned bad: an older look at another one would count it as good though
 * nobody has asked it since.
 */
export function judgePanic(newest: Iterable<Newest>, sinceMs: number): PanicJudgement {
  let bad = 0;
  let looked = 0;
  let all = 0;
  for (const { atMs, bad: isBad } of newest) {
    all++;
    if (atMs < sinceMs) continue;
    looked++;
    if (isBad) bad++;
  }
  if (bad * 2 <= looked) return "calm";
  if (bad >= PANIC_MIN_BAD && bad * 2 > all) return "panic";
  const possible = bad + all - looked;
  return possible >= PANIC_MIN_BAD && looked < all ? "doubt" : "calm";
}
