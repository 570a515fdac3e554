/** What came of one call to a tool, and how much of that is kept. */

export interface Outcome {
  /** When it was reported, ms since 1970, with a fraction. */
  readonly atMs: number;
  /** Keyed hash of who reported it. */
  readonly caller: number;
  /** Tells outcomes of one caller at one time apart, so that none counts twice however often it is merged. */
  readonly nonce: number;
  readonly success: boolean;
  /** Undefined where nobody measured. */
  readonly latencyMs: number | undefined;
  /** Tools called with success just before it for the same task, the latest first; at most OUTCOME_LIMITS.after. */
  readonly after: readonly string[];
}

export const OUTCOME_LIMITS = {
  /** Outcomes of one tool: the newest stay. */
  perTool: 64,
  /** Outcomes of one tool that one caller may hold. */
  perToolAndCaller: 16,
  /** Earlier tools of an outcome. */
  after: 3,
} as const;

/**
 * The outcomes of one tool from several sources as one list within the limits, the newest first. Equal sets give equal lists, in
 * whatever order they came and whatever was left out on the way.
 */
export function mergeOutcomes(lists: readonly (readonly Outcome[])[], nowMs: number, retentionMs: number): Outcome[] {
  const given = lists.flat();
  const newestMs = given.reduce((newest, { atMs }) => Math.max(newest, atMs), nowMs);
  const kept: Outcome[] = [];
  const perCaller = new Map<number, number>();
  let last: Outcome | undefined;
  for (const outcome of given.sort(newerOutcome)) {
    if (newestMs - outcome.atMs > retentionMs) break;
    if (last && isSame(last, outcome)) continue;
    last = outcome;
    const held = perCaller.get(outcome.caller) ?? 0;
    if (held >= OUTCOME_LIMITS.perToolAndCaller) continue;
    perCaller.set(outcome.caller, held + 1);
    if (kept.push(outcome) >= OUTCOME_LIMITS.perTool) break;
  }
  return kept;
}

/** A total order of different outcomes. */
export function newerOutcome(a: Outcome, b: Outcome): number {
  return b.atMs - a.atMs || a.caller - b.caller || a.nonce - b.nonce;
}

export function isSame(a: Outcome, b: Outcome): boolean {
  return a.atMs === b.atMs && a.caller === b.caller && a.nonce === b.nonce;
}
