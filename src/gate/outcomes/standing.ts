/** Whether a tool can be relied on: a machine with hysteresis over what came of its calls. */
import type { Outcome } from "./outcome.js";

/** `sinceMs`: older outcomes belong to a story that has ended. */
export type Standing =
  | { readonly kind: "trusted"; readonly sinceMs: number }
  /** Its calls fail: it stands behind all that fit, until it is tried again. */
  | { readonly kind: "collapsed"; readonly sinceMs: number; readonly trialAtMs: number; readonly trials: number }
  /** It is offered again, and a few calls decide. */
  | { readonly kind: "recovering"; readonly sinceMs: number; readonly trials: number };

export const STANDING = {
  /** The latest outcomes that are looked at. */
  window: 10,
  /** Of them, what one caller may have a say in once another one reports, too. */
  callerMost: 5,
  /** Older ones say nothing any more. */
  horizonMs: 24 * 3_600_000,
  /** So many failures at least, and this share of the window, are a collapse. */
  failuresLeast: 6,
  collapseShare: 0.8,
  /** A trial ends well with so many successes more than failures, badly with so many failures more; one of several says no more. */
  decidedBy: 3,
  /** Without news it is tried again after this, twice as long after each trial that ends badly, and at most after the last. */
  trialMs: 5 * 60_000,
  trialMostMs: 2 * 3_600_000,
} as const;

const UNTRIED: Standing = { kind: "trusted", sinceMs: 0 };

/** After these outcomes, the newest first. What time alone changes is told by `standingAt`. */
export function standingAfter(outcomes: readonly Outcome[]): Standing {
  let standing = UNTRIED;
  if (tally(outcomes).failures < STANDING.failuresLeast) return standing;
  for (let i = outcomes.length - 1; i >= 0; i--) standing = next(standing, outcomes.slice(i));
  return standing;
}

/** A collapsed tool whose time has come is tried again. */
export function standingAt(standing: Standing, nowMs: number): Standing {
  if (standing.kind !== "collapsed" || nowMs < standing.trialAtMs) return standing;
  return { kind: "recovering", sinceMs: standing.trialAtMs, trials: standing.trials };
}

function next(before: Standing, newestFirst: readonly Outcome[]): Standing {
  const [latest] = newestFirst;
  if (!latest) return before;
  const standing = standingAt(before, latest.atMs);
  switch (standing.kind) {
    case "trusted":
      return fails(since(standing, newestFirst)) ? collapse(latest.atMs, 0) : standing;
    case "collapsed":
      // Somebody called it all the same: a success begins the trial, a failure puts it off.
      if (!latest.success) return collapse(latest.atMs, standing.trials, standing.sinceMs);
      return { kind: "recovering", sinceMs: latest.atMs, trials: standing.trials };
    case "recovering":
      return afterTrial(standing, newestFirst, latest);
  }
}

function afterTrial(
  standing: Extract<Standing, { readonly kind: "recovering" }>,
  newestFirst: readonly Outcome[],
  latest: Outcome,
): Standing {
  const { successes, failures } = tally(heard(since(standing, newestFirst), STANDING.decidedBy));
  if (successes - failures >= STANDING.decidedBy) return { kind: "trusted", sinceMs: standing.sinceMs };
  if (failures - successes >= STANDING.decidedBy) return collapse(latest.atMs, standing.trials + 1);
  return standing;
}

function collapse(atMs: number, trials: number, sinceMs = atMs): Standing {
  const waitMs = Math.min(STANDING.trialMs * 2 ** trials, STANDING.trialMostMs);
  return { kind: "collapsed", sinceMs, trialAtMs: atMs + waitMs, trials };
}

/** The outcomes that count for it. */
export function since({ sinceMs }: Standing, newestFirst: readonly Outcome[]): readonly Outcome[] {
  return newestFirst.filter(({ atMs }) => atMs >= sinceMs);
}

/** Failures among the latest outcomes that are heard, as a share of a full window: few say little. */
export function failingShare(newestFirst: readonly Outcome[]): number {
  return tally(heard(newestFirst, STANDING.decidedBy)).failures / STANDING.window;
}

function fails(newestFirst: readonly Outcome[]): boolean {
  const { successes, failures } = tally(heard(newestFirst, STANDING.callerMost));
  return failures >= STANDING.failuresLeast && failures >= STANDING.collapseShare * (successes + failures);
}

/**
 * The latest outcomes that are heard: where several report, `callerMost` of each at most. So nobody takes a tool from others
 * for whom it works.
 */
function heard(newestFirst: readonly Outcome[], callerMost: number): readonly Outcome[] {
  const since = (newestFirst[0]?.atMs ?? 0) - STANDING.horizonMs;
  const recent = newestFirst.filter(({ atMs }) => atMs >= since);
  const alone = recent.every(({ caller }) => caller === recent[0]?.caller);
  const most = alone ? STANDING.window : callerMost;
  const perCaller = new Map<number, number>();
  const kept: Outcome[] = [];
  for (const outcome of recent) {
    const held = perCaller.get(outcome.caller) ?? 0;
    if (held >= most) continue;
    perCaller.set(outcome.caller, held + 1);
    if (kept.push(outcome) >= STANDING.window) break;
  }
  return kept;
}

function tally(outcomes: readonly Outcome[]): { readonly successes: number; readonly failures: number } {
  const successes = outcomes.filter(({ success }) => success).length;
  return { successes, failures: outcomes.length - successes };
}
