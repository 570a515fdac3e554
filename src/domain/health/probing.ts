/** How an instance is probed. */

/** What a registrant may ask for; 0 = as the registry is set. */
export interface Probing {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures in a row that open the breaker. */
  readonly fall: number;
  /** Successes in a row that close it again. */
  readonly rise: number;
  /** Never probed. */
  readonly off: boolean;
}

export const DEFAULT_PROBING: Probing = Object.freeze({ intervalMs: 0, timeoutMs: 0, fall: 0, rise: 0, off: false });

export const PROBE_LIMITS = {
  intervalMs: { min: 2_000, max: 3_600_000 },
  timeoutMs: { min: 100, max: 30_000 },
  fall: { min: 1, max: 10 },
  rise: { min: 1, max: 10 },
} as const;

/** The settings in force for one instance, nothing left open. */
export type ProbeRules = Readonly<Omit<Probing, "off">>;

/** DESIGN 7: a healthy server every 10 s, three failures are a fall, two successes a rise. */
export const PROBE_RULES: ProbeRules = Object.freeze({ intervalMs: 10_000, timeoutMs: 5_000, fall: 3, rise: 2 });

export function rulesOf(asked: Probing, set: ProbeRules): ProbeRules {
  return {
    intervalMs: asked.intervalMs || set.intervalMs,
    timeoutMs: asked.timeoutMs || set.timeoutMs,
    fall: asked.fall || set.fall,
    rise: asked.rise || set.rise,
  };
}

export function sameProbing(a: Probing, b: Probing): boolean {
  return (
    a.intervalMs === b.intervalMs &&
    a.timeoutMs === b.timeoutMs &&
    a.fall === b.fall &&
    a.rise === b.rise &&
    a.off === b.off
  );
}
