/** A breaker for each endpoint, from what calls of this gateway met with: it knows sooner than the registry, and while that is away. */
import { type Breaker, type BreakerRules, CLOSED, stepBreaker } from "../../domain/health/breaker.js";
import type { Clock } from "../../upstream/caller.js";

/** A few failures in a row are no accident; one good call is enough to come back, because calls are all that looks. */
const RULES: BreakerRules = { fall: 5, rise: 1, trialMs: 15_000, edgeMs: 1_000, startMs: 1_000 };

/** Endpoints that failed lately. */
const REMEMBERED = 10_000;

export type Admission =
  /** `trial`: the call on which it depends whether others follow. */
  | { readonly kind: "pass"; readonly trial: number | undefined }
  | { readonly kind: "open"; readonly retryAfterMs: number };

export type CallVerdict =
  | { readonly kind: "good" }
  | { readonly kind: "bad"; readonly retryAfterMs?: number | undefined }
  /** It says nothing about the server. */
  | { readonly kind: "none" };

export class Breakers {
  /** Those that are not closed and without failures. */
  readonly #breakers = new Map<string, Breaker>();
  readonly #clock: Clock;
  readonly #random: () => number;

  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Whether a call may go there now. What it came to has to be told. */
  admit(endpoint: string): Admission {
    const before = this.#breakers.get(endpoint) ?? CLOSED;
    if (before.kind === "closed") return { kind: "pass", trial: undefined };
    const now = this.#clock.monotonic();
    const after = stepBreaker(before, { kind: "tick" }, RULES, now, this.#random());
    this.#keep(endpoint, after);
    if (after.kind === "half-open" && before.kind === "open") return { kind: "pass", trial: after.generation };
    if (after.kind === "closed") return { kind: "pass", trial: undefined };
    const untilMs = after.kind === "open" ? after.untilMs : after.deadlineMs;
    return { kind: "open", retryAfterMs: Math.max(0, Math.ceil(untilMs - now)) };
  }

  tell(endpoint: string, trial: number | undefined, verdict: CallVerdict): void {
    if (verdict.kind === "none") return;
    const breaker = this.#breakers.get(endpoint) ?? CLOSED;
    const { retryAfterMs } = verdict.kind === "bad" ? verdict : {};
    const failure = trial === undefined ? { kind: "failure" as const } : { kind: "trial-failure" as const, generation: trial };
    const event = verdict.kind === "good" ? { kind: "success" as const } : { ...failure, retryAfterMs };
    this.#keep(endpoint, stepBreaker(breaker, event, RULES, this.#clock.monotonic(), this.#random()));
  }

  #keep(endpoint: string, breaker: Breaker): void {
    if (breaker.kind === "closed" && breaker.failures === 0) this.#breakers.delete(endpoint);
    else this.#breakers.set(endpoint, breaker);
    for (const oldest of this.#breakers.keys()) {
      if (this.#breakers.size <= REMEMBERED) break;
      this.#breakers.delete(oldest);
    }
  }
}
