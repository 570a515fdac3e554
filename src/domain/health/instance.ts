/** The health of one instance, as whoever probes it sees it: a fold over verdicts and time. Times are monotonic ms. */
import { type Breaker, type BreakerEvent, type BreakerRules, CLOSED, RETRY_AFTER_MAX_MS, stepBreaker, wakeAt } from "./breaker.js";
import type { ProbeRules } from "./probing.js";
import { AUTH_REQUIRED, isGood, type Verdict } from "./verdict.js";

export interface InstanceHealth {
  readonly breaker: Breaker;
  /** It answered since it registered: the first success counts at once, later ones only `rise` in a row. */
  readonly met: boolean;
  /** It counts as there until a look says otherwise: its registrant says so, and nobody has listed it in vain. */
  readonly presumed: boolean;
  readonly last: Verdict | undefined;
  /** It asked for credentials. What its list asked for holds until it lists: many servers answer a probe without any. */
  readonly wantsAuth: { readonly message: string; readonly listed: boolean } | undefined;
  /** Of the failures that came in a row, if the last verdict was one: when they began. */
  readonly badSinceMs: number | undefined;
  /** Looks in a row that were slow, or were not, against `slow`. */
  readonly contrary: number;
  readonly slow: boolean;
  /** When the breaker opened from closed, newest last. */
  readonly falls: readonly number[];
}

export const UNKNOWN_HEALTH: InstanceHealth = Object.freeze({
  breaker: CLOSED,
  met: false,
  presumed: true,
  last: undefined,
  wantsAuth: undefined,
  badSinceMs: undefined,
  contrary: 0,
  slow: false,
  falls: [],
});

export type HealthEvent =
  /** `generation`: of the trial that it ends, if it ends one. `listed`: it was asked for its list. */
  | { readonly kind: "verdict"; readonly verdict: Verdict; readonly generation?: number; readonly listed?: boolean }
  | { readonly kind: "tick" }
  | { readonly kind: "hurry" };

/** Between looks while it is not clear whether it goes or comes. */
export const EDGE_MS = 2_000;
/** Whoever was never seen may just be starting, and is wanted soon. */
const START_MS = 5_000;
const START_UNMET_MS = 1_000;
/** An answer that takes this long makes agents wait. */
const SLOW_MS = 1_000;
const SLOW_LOOKS = 3;
/** So many falls within the time make it flap; then it has to answer so often, so far apart, before it is up again. */
const FLAP_FALLS = 3;
const FLAP_WINDOW_MS = 600_000;
const FLAP_RISE = 6;
const FLAP_EDGE_MS = 10_000;
const JITTER = 0.1;

export function isUp(health: InstanceHealth): boolean {
  return health.breaker.kind === "closed" && health.last?.kind !== "barred" && (health.met || health.presumed);
}

export function isFlapping({ falls }: InstanceHealth, nowMs: number): boolean {
  return falls.filter((at) => nowMs - at < FLAP_WINDOW_MS).length >= FLAP_FALLS;
}

/** The falls of one that is known to be flapping, when is not. */
export function flappingFrom(nowMs: number): readonly number[] {
  return Array.from({ length: FLAP_FALLS }, () => nowMs);
}

/** Whether this verdict opens the breaker. */
export function isFall({ breaker }: InstanceHealth, verdict: Verdict, rules: ProbeRules): boolean {
  if (breaker.kind !== "closed" || verdict.kind !== "failed") return false;
  return breaker.failures + 1 >= rules.fall || saysSoItself(verdict, rules);
}

/** It names a time to come back beyond the looks that would find out: it would be called there all that time. */
function saysSoItself(verdict: Verdict, { fall }: ProbeRules): boolean {
  return verdict.kind === "failed" && (verdict.retryAfterMs ?? 0) > fall * EDGE_MS;
}

export function foldHealth(
  health: InstanceHealth,
  event: HealthEvent,
  rules: ProbeRules,
  nowMs: number,
  draw: number,
): InstanceHealth {
  const breakerRules = rulesFor(health, rules, nowMs);
  if (event.kind !== "verdict") {
    const breaker = stepBreaker(health.breaker, event, breakerRules, nowMs, draw);
    return breaker === health.breaker ? health : { ...health, breaker };
  }
  const { verdict } = event;
  const step = breakerEvent(verdict, event.generation);
  const fall = isFall(health, verdict, rules) ? 1 : breakerRules.fall;
  const breaker = step ? stepBreaker(health.breaker, step, { ...breakerRules, fall }, nowMs, draw) : health.breaker;
  const fell = health.breaker.kind === "closed" && breaker.kind === "open";
  const good = isGood(verdict);
  return {
    ...slowness(health, verdict),
    breaker,
    met: health.met || good,
    presumed: health.presumed,
    last: verdict,
    wantsAuth: authAfter(health.wantsAuth, verdict, event.listed === true),
    // Whoever could not be asked is neither.
    badSinceMs: verdict.kind === "barred" ? health.badSinceMs : good ? undefined : (health.badSinceMs ?? nowMs),
    // A server that was never there has not gone.
    falls: fell && health.met ? [...health.falls.slice(1 - FLAP_FALLS), nowMs] : health.falls,
  };
}

/** Time until the next look. */
export function nextLook(health: InstanceHealth, rules: ProbeRules, nowMs: number, draw: number): number {
  const due = wakeAt(health.breaker);
  if (due !== undefined) return Math.max(0, due - nowMs);
  const { last, breaker } = health;
  const asked = last && "retryAfterMs" in last ? Math.min(last.retryAfterMs ?? 0, RETRY_AFTER_MAX_MS) : 0;
  const edge = breaker.kind === "closed" && breaker.failures > 0;
  const calm = rules.intervalMs * (1 - JITTER + 2 * JITTER * draw);
  return Math.max(asked, edge ? Math.min(EDGE_MS, rules.intervalMs) : calm);
}

function rulesFor(health: InstanceHealth, rules: ProbeRules, nowMs: number): BreakerRules {
  const flapping = isFlapping(health, nowMs);
  return {
    fall: rules.fall,
    rise: !health.met ? 1 : flapping ? Math.max(FLAP_RISE, rules.rise) : rules.rise,
    trialMs: 2 * rules.timeoutMs,
    edgeMs: flapping ? FLAP_EDGE_MS : EDGE_MS,
    startMs: health.met ? START_MS : START_UNMET_MS,
  };
}

function breakerEvent(verdict: Verdict, generation: number | undefined): BreakerEvent | undefined {
  if (verdict.kind === "barred") return undefined;
  if (isGood(verdict)) return generation === undefined ? { kind: "success" } : { kind: "trial-success", generation };
  const { retryAfterMs } = verdict as Extract<Verdict, { kind: "failed" }>;
  return generation === undefined
    ? { kind: "failure", retryAfterMs }
    : { kind: "trial-failure", generation, retryAfterMs };
}

function authAfter(before: InstanceHealth["wantsAuth"], verdict: Verdict, listed: boolean): InstanceHealth["wantsAuth"] {
  if (verdict.kind === "answered" && verdict.reason === AUTH_REQUIRED)
    // Where probes want credentials too, they say when they are no longer wanted.
    return { message: verdict.message, listed: listed && before?.listed !== false };
  return verdict.kind === "ok" && (listed || before?.listed === false) ? undefined : before;
}

function slowness(health: InstanceHealth, verdict: Verdict): Pick<InstanceHealth, "slow" | "contrary" | "falls"> {
  const { slow, contrary, falls } = health;
  if (verdict.kind !== "ok" || verdict.tookMs === undefined) return { slow, contrary, falls };
  if (verdict.tookMs >= SLOW_MS === slow) return { slow, contrary: 0, falls };
  return contrary + 1 >= SLOW_LOOKS ? { slow: !slow, contrary: 0, falls } : { slow, contrary: contrary + 1, falls };
}
