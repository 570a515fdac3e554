import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  BACKOFF_MAX_MS,
  backoff,
  type Breaker,
  type BreakerEvent,
  type BreakerRules,
  CLOSED,
  RETRY_AFTER_MAX_MS,
  stepBreaker,
  wakeAt,
} from "../../../../src/domain/health/breaker.js";

const RULES: BreakerRules = { fall: 3, rise: 2, trialMs: 10_000, edgeMs: 2_000, startMs: 5_000 };

/** Events as times between them and kinds; a generation is the current one, or any other. */
type Happening = { readonly afterMs: number; readonly draw: number } & (
  | { readonly kind: "success" | "tick" | "hurry" }
  | { readonly kind: "failure"; readonly retryAfterMs: number | undefined }
  | { readonly kind: "trial-success"; readonly mine: boolean }
  | { readonly kind: "trial-failure"; readonly mine: boolean; readonly retryAfterMs: number | undefined }
);

const draw = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const retryAfterMs = fc.option(fc.integer({ min: 0, max: 2 * RETRY_AFTER_MAX_MS }), { nil: undefined, freq: 1 });
const when = { afterMs: fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 60_000 })), draw };
/** Weighted so that many histories come to a trial, and have more to say while it is under way. */
const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ kind: fc.constantFrom("success", "hurry"), ...when }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("tick"), ...when }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("failure"), retryAfterMs, ...when }) },
  fc.record({ kind: fc.constant("trial-success"), mine: fc.boolean(), ...when }),
  fc.record({ kind: fc.constant("trial-failure"), mine: fc.boolean(), retryAfterMs, ...when }),
);
const rules: fc.Arbitrary<BreakerRules> = fc.record({
  fall: fc.integer({ min: 1, max: 4 }),
  rise: fc.integer({ min: 1, max: 10 }),
  trialMs: fc.integer({ min: 200, max: 60_000 }),
  edgeMs: fc.constantFrom(2_000, 10_000),
  startMs: fc.constantFrom(1_000, 5_000),
});

function eventOf(h: Happening, breaker: Breaker): BreakerEvent {
  if (h.kind !== "trial-success" && h.kind !== "trial-failure") return h;
  const current = breaker.kind === "half-open" ? breaker.generation : -1;
  return { ...h, generation: h.mine ? current : current - 1 };
}

/** All states that were passed, with the time of each. */
function passed(happenings: readonly Happening[], r: BreakerRules): { breaker: Breaker; atMs: number }[] {
  const states: { breaker: Breaker; atMs: number }[] = [{ breaker: CLOSED, atMs: 0 }];
  for (const h of happenings) {
    const { breaker, atMs } = states.at(-1) as { breaker: Breaker; atMs: number };
    const nowMs = atMs + h.afterMs;
    states.push({ atMs: nowMs, breaker: stepBreaker(breaker, eventOf(h, breaker), r, nowMs, h.draw) });
  }
  return states;
}

const histories = fc.array(happening, { maxLength: 120, size: "max" });

describe("the breaker", () => {
  it("never sticks: whatever came before, ticks and good trials close it", () => {
    fc.assert(
      fc.property(histories, rules, draw, (happenings, r, d) => {
        let { breaker, atMs } = passed(happenings, r).at(-1) as { breaker: Breaker; atMs: number };
        // The trial under way may never come back; after that, each needs one tick to begin and one answer.
        for (let steps = 0; breaker.kind !== "closed"; steps++) {
          expect(steps).toBeLessThan(2 * r.rise + 2);
          const dueMs = wakeAt(breaker) as number;
          expect(dueMs - atMs).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
          atMs = Math.max(atMs, dueMs);
          breaker = stepBreaker(breaker, { kind: "tick" }, r, atMs, d);
          if (breaker.kind === "half-open")
            breaker = stepBreaker(breaker, { kind: "trial-success", generation: breaker.generation }, r, atMs + 1, d);
        }
      }),
    );
  });

  it("lets one trial through at a time: half-open begins by a tick alone, and ends by its answer or its deadline", () => {
    let trials = 0;
    fc.assert(
      fc.property(histories, rules, (happenings, r) => {
        const states = passed(happenings, r);
        trials += states.filter((s) => s.breaker.kind === "half-open").length;
        happenings.forEach((h, i) => {
          const [before, after] = [states[i], states[i + 1]] as [(typeof states)[0], (typeof states)[0]];
          if (after.breaker.kind === "half-open" && before.breaker !== after.breaker) {
            expect(before.breaker.kind).toBe("open");
            expect(h.kind).toBe("tick");
            expect(after.breaker.deadlineMs - after.atMs).toBe(r.trialMs);
          }
          if (before.breaker.kind === "half-open" && before.breaker !== after.breaker) {
            const answered = h.kind === "success" || ("mine" in h && h.mine);
            expect(answered || after.atMs >= before.breaker.deadlineMs).toBe(true);
          }
        });
      }),
      { numRuns: 300 },
    );
    // Or this proves nothing.
    expect(trials).toBeGreaterThan(100);
  });

  it("does not open below `fall` failures in a row", () => {
    fc.assert(
      fc.property(histories, rules, (happenings, r) => {
        let failures = 0;
        const states = passed(happenings, r);
        happenings.forEach((h, i) => {
          if (states[i]?.breaker.kind !== "closed") return;
          if (h.kind === "failure" || h.kind === "trial-failure") failures++;
          else if (h.kind === "success" || h.kind === "trial-success") failures = 0;
          const opened = states[i + 1]?.breaker.kind !== "closed";
          expect(opened).toBe(failures >= r.fall);
          if (opened) failures = 0;
        });
      }),
    );
  });

  it("waits at least the start and at most 5 min, or as long as the server asks, up to an hour", () => {
    fc.assert(
      fc.property(fc.constantFrom(1_000, 5_000), fc.integer({ min: 1, max: 10_000 }), draw, retryAfterMs, (startMs, attempt, d, asked) => {
        const ms = backoff(startMs, attempt, d, asked);
        expect(ms).toBeGreaterThanOrEqual(Math.max(startMs, Math.min(asked ?? 0, RETRY_AFTER_MAX_MS)));
        expect(ms).toBeLessThanOrEqual(Math.max(BACKOFF_MAX_MS, Math.min(asked ?? 0, RETRY_AFTER_MAX_MS)));
      }),
    );
  });

  it("doubles its backoff from one failed trial to the next", () => {
    let breaker = stepBreaker({ kind: "closed", failures: 2 }, { kind: "failure" }, RULES, 0, 0.5);
    const waits: number[] = [];
    let nowMs = 0;
    for (let i = 0; i < 9; i++) {
      const dueMs = wakeAt(breaker) as number;
      waits.push((dueMs - nowMs) / 1_000);
      nowMs = dueMs;
      breaker = stepBreaker(breaker, { kind: "tick" }, RULES, nowMs, 0.5);
      if (breaker.kind !== "half-open") throw new Error(breaker.kind);
      breaker = stepBreaker(breaker, { kind: "trial-failure", generation: breaker.generation }, RULES, nowMs, 0.5);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300, 300]);
  });

  it("ignores the answer to a trial whose deadline has passed", () => {
    const half: Breaker = { kind: "half-open", generation: 7, deadlineMs: 10_000, attempt: 1, successes: 0 };
    const reopened = stepBreaker(half, { kind: "tick" }, RULES, 10_000, 0.5);
    expect(reopened).toMatchObject({ kind: "open", attempt: 2 });
    expect(stepBreaker(reopened, { kind: "trial-success", generation: 7 }, RULES, 10_001, 0.5)).toBe(reopened);
    expect(stepBreaker(reopened, { kind: "trial-failure", generation: 7 }, RULES, 10_001, 0.5)).toBe(reopened);
  });

  it("is tried at once when somebody hurries, and after a good trial two seconds later", () => {
    const open: Breaker = { kind: "open", untilMs: 300_000, attempt: 6, successes: 0 };
    const hurried = stepBreaker(open, { kind: "hurry" }, RULES, 1_000, 0.5);
    expect(wakeAt(hurried)).toBe(1_000);
    const half = stepBreaker(hurried, { kind: "tick" }, RULES, 1_000, 0.5);
    if (half.kind !== "half-open") throw new Error(half.kind);
    const once = stepBreaker(half, { kind: "trial-success", generation: half.generation }, RULES, 1_100, 0.5);
    expect(once).toMatchObject({ kind: "open", untilMs: 3_100, successes: 1 });
    const again = stepBreaker(once, { kind: "tick" }, RULES, 3_100, 0.5);
    if (again.kind !== "half-open") throw new Error(again.kind);
    expect(stepBreaker(again, { kind: "trial-success", generation: again.generation }, RULES, 3_200, 0.5)).toBe(CLOSED);
  });

  it("forgets its good trials at a bad one", () => {
    const half: Breaker = { kind: "half-open", generation: 7, deadlineMs: 10_000, attempt: 3, successes: 1 };
    const after = stepBreaker(half, { kind: "trial-failure", generation: 7 }, RULES, 1_000, 0.5);
    expect(after).toMatchObject({ kind: "open", attempt: 4, successes: 0 });
  });
});
