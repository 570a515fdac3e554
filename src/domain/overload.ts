/**
 * How much a replica takes on, by how late its event loop is.
 *
 * Once a second the turns of the loop are looked at: half of that second was spent in turns at least this long, so a call that comes at
 * any moment waits about that long before anybody hears of it. It is a median, because what was worse than half of the time is
 * no fault of a load: a garbage collection, one large Register. It is one of time and not of turns, because a loop that spends a
 * second in each Register and has ten quick turns between two of them is late, though nearly all of its turns are quick.
 *
 * What is shed first is what costs most and can wait longest. Never shed: renewals and deregistrations (a lost lease makes
 * more work than it saves), reads from memory, health, and what operators ask for.
 */

/** What may be refused while a replica has too much to do, the first to go first. */
export const SHEDDABLE = ["register", "load", "watch"] as const;
export type Sheddable = (typeof SHEDDABLE)[number];

/** How many of SHEDDABLE are refused now. */
export type OverloadLevel = 0 | 1 | 2 | 3;

/**
 * Lateness in ms at which each level begins.
 * 200 ms: reads in memory take under 1 ms, and now a caller has waited as long as it waits for a definition by default
 * (LIMITS.loadCallerMs) before it is heard at all. A Register is the largest message and the longest work there is, and its sender retries
 * by itself. Less than this is what neighbours on a shared processor do to a replica that has little to do.
 * 400 and 800 ms: what was refused until now is not enough. A new watch is sent the whole list, the most that one call can ask for;
 * but a watcher that is not let in knows nothing, so this comes last, while a shortest lease of 10 s still has time for several renewals.
 */
export const OVERLOAD_MS = levelsFrom(200);

/** Each level begins at twice the lateness of the one before. 0: nothing is ever refused. */
export function levelsFrom(firstMs: number): readonly [number, number, number] {
  const from = firstMs === 0 ? Number.POSITIVE_INFINITY : firstMs;
  return [from, 2 * from, 4 * from];
}

/** Windows of one second that must agree before more is refused: one alone may be a start, a large listing, a compaction. */
export const RISE_WINDOWS = 2;
/**
 * Windows in a row below half of the level's lateness before one level less is refused. Longer than the rise, and at half the
 * lateness, because shedding itself makes the loop faster: falling as soon as it did would let everybody in who waits, again and again.
 */
export const FALL_WINDOWS = 3;
const FALL_SHARE = 0.5;

/**
 * The length of a turn such that half of the time went by in turns at least as long, less `paceMs`, the time from tick to tick of a loop
 * that has nothing to do. 0 without any turn.
 */
export function latenessOf(turnsMs: readonly number[], paceMs: number): number {
  const sorted = [...turnsMs].sort((a, b) => b - a);
  const half = sorted.reduce((sum, ms) => sum + ms, 0) / 2;
  let passed = 0;
  for (const ms of sorted) {
    passed += ms;
    if (passed >= half) return Math.max(0, ms - paceMs);
  }
  return 0;
}

export interface Overload {
  readonly level: OverloadLevel;
  /** Levels above `level` that the last windows in a row asked for, oldest first; fewer than RISE_WINDOWS. */
  readonly rising: readonly OverloadLevel[];
  /** Windows in a row that asked for less; fewer than FALL_WINDOWS. */
  readonly falling: number;
}

export const CALM: Overload = Object.freeze({ level: 0, rising: [], falling: 0 });

export type OverloadStep = (before: Overload, latenessMs: number) => Overload;

/** What follows after a window of some lateness. Rises to what all windows of the rise agree on, falls by one level at a time. */
export function overloadSteps(levelsMs: readonly [number, number, number]): OverloadStep {
  return (before, latenessMs) => {
    const asked = levelsMs.filter((ms) => latenessMs > ms).length as OverloadLevel;
    if (asked > before.level) {
      const rising = [...before.rising, asked];
      if (rising.length < RISE_WINDOWS) return { level: before.level, rising, falling: 0 };
      return { level: Math.min(...rising) as OverloadLevel, rising: [], falling: 0 };
    }
    const calmer = before.level > 0 && latenessMs < (levelsMs[before.level - 1] as number) * FALL_SHARE;
    if (!calmer) return { level: before.level, rising: [], falling: 0 };
    const falling = before.falling + 1;
    if (falling < FALL_WINDOWS) return { level: before.level, rising: [], falling };
    return { level: (before.level - 1) as OverloadLevel, rising: [], falling: 0 };
  };
}

/** The same at the usual levels. */
export const overloadAfter = overloadSteps(OVERLOAD_MS);

export function isShed(level: OverloadLevel, what: Sheddable): boolean {
  return SHEDDABLE.indexOf(what) < level;
}
