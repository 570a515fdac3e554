/**
 * How much a replica takes on, by how late its event loop is.
 *
 * Once a second the median delay of the loop is looked at: half of all ticks in that second were at least this late. It is
 * a median because one long tick (a garbage collection, one 4 MiB Register, a process that was stopped) may be as late as it
 * likes and still be one tick among many; when the median is late, every call waits, and that is what has to end.
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
 * Median delay in ms at which each level begins.
 * 100 ms: reads in memory take under 1 ms, so a call now waits a hundred times as long as it works; a Register is the largest
 * message and the longest piece of work there is, and its sender retries by itself.
 * 250 ms: longer than a caller waits for a definition by default (LIMITS.loadCallerMs), so a load would be refused anyway.
 * 500 ms: a new watch is sent the whole list, the most that one call can ask for; but a watcher that is not let in knows nothing, so
 * this comes last, while a shortest lease of 10 s still has time for six renewals.
 */
export const OVERLOAD_MS = [100, 250, 500] as const;

/** Windows of one second that must agree before more is refused: one alone may be a start, a large listing, a compaction. */
export const RISE_WINDOWS = 2;
/**
 * Windows in a row below half of the level's delay before one level less is refused. Longer than the rise, and at half the
 * delay, because shedding itself makes the loop faster: falling as soon as it did would let everybody in who waits, again and again.
 */
export const FALL_WINDOWS = 3;
const FALL_SHARE = 0.5;

export interface Overload {
  readonly level: OverloadLevel;
  /** Levels above `level` that the last windows in a row asked for, oldest first; fewer than RISE_WINDOWS. */
  readonly rising: readonly OverloadLevel[];
  /** Windows in a row that asked for less; fewer than FALL_WINDOWS. */
  readonly falling: number;
}

export const CALM: Overload = Object.freeze({ level: 0, rising: [], falling: 0 });

/** After a window with this median delay. Rises to what all windows of the rise agree on, falls by one level at a time. */
export function overloadAfter(before: Overload, medianDelayMs: number): Overload {
  const asked = levelAt(medianDelayMs);
  if (asked > before.level) {
    const rising = [...before.rising, asked];
    if (rising.length < RISE_WINDOWS) return { level: before.level, rising, falling: 0 };
    return { level: Math.min(...rising) as OverloadLevel, rising: [], falling: 0 };
  }
  const calmer = before.level > 0 && medianDelayMs < (OVERLOAD_MS[before.level - 1] as number) * FALL_SHARE;
  if (!calmer) return { level: before.level, rising: [], falling: 0 };
  const falling = before.falling + 1;
  if (falling < FALL_WINDOWS) return { level: before.level, rising: [], falling };
  return { level: (before.level - 1) as OverloadLevel, rising: [], falling: 0 };
}

export function isShed(level: OverloadLevel, what: Sheddable): boolean {
  return SHEDDABLE.indexOf(what) < level;
}

function levelAt(delayMs: number): OverloadLevel {
  return OVERLOAD_MS.filter((ms) => delayMs > ms).length as OverloadLevel;
}
