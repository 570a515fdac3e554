import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeOutcomes, newerOutcome, type Outcome, OUTCOME_LIMITS } from "../../../../src/gate/outcomes/outcome.js";
import { STANDING, standingAfter, standingAt } from "../../../../src/gate/outcomes/standing.js";
import { Usage, USAGE } from "../../../../src/gate/outcomes/usage.js";

const BEGAN = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const YEAR = 365 * 86_400_000;

/** `AAAbbb`: one letter a minute; capital letters are successes, the letter is the caller. */
function story(text: string, more: Partial<Outcome> = {}): Outcome[] {
  const outcomes = [...text].map((letter, i) => ({
    atMs: BEGAN + i * MINUTE,
    caller: letter.toLowerCase().charCodeAt(0),
    nonce: i,
    success: letter === letter.toUpperCase(),
    latencyMs: undefined,
    after: [],
    ...more,
  }));
  return outcomes.sort(newerOutcome);
}

const kindOf = (text: string) => standingAfter(story(text)).kind;

describe("a tool whose calls fail", () => {
  it.each([
    ["works", "A".repeat(40), "trusted"],
    ["fails now and then", "AAaAAaAAaAAaAAa", "trusted"],
    ["fails half the time", "AaAaAaAaAaAaAaAa", "trusted"],
    ["ten failures after forty successes", `${"A".repeat(40)}${"a".repeat(10)}`, "collapsed"],
    ["ten failures of several callers after many successes", `${"ABCDE".repeat(8)}abcdeabcde`, "collapsed"],
    ["it never worked", "aaaaaa", "collapsed"],
    ["five failures are too few", "aaaaa", "trusted"],
    ["one caller alone fails, and others report successes", `BCBCBC${"a".repeat(16)}`, "trusted"],
    ["one caller alone fails for ever, and others succeed between", "aaaaBaaaaCaaaaBaaaaC".repeat(3), "trusted"],
    ["one success begins its recovery", "aaaaaaaaA", "recovering"],
    ["three successes end it", "aaaaaaaaAAA", "trusted"],
    ["a trial that fails", "aaaaaaaaAaaaa", "collapsed"],
    ["one caller alone does not end another's recovery badly", "bbbbbbccccccBaaaaaaaaa", "recovering"],
  ])("%s", (_what, text, kind) => expect(kindOf(text)).toBe(kind));

  it("is tried again after a while, and later after each trial that fails", () => {
    const waitAfter = (text: string) => {
      const outcomes = story(text);
      const standing = standingAfter(outcomes);
      return standing.kind === "collapsed" ? standing.trialAtMs - (outcomes[0]?.atMs ?? 0) : 0;
    };
    expect(waitAfter("aaaaaaaa")).toBe(STANDING.trialMs);
    expect(waitAfter("aaaaaaaaAaaaa")).toBe(2 * STANDING.trialMs);
    expect(waitAfter("aaaaaaaaAaaaaAaaaa")).toBe(4 * STANDING.trialMs);
    const standing = standingAfter(story("aaaaaaaa"));
    const end = BEGAN + 7 * MINUTE;
    expect(standingAt(standing, end + STANDING.trialMs - 1).kind).toBe("collapsed");
    expect(standingAt(standing, end + STANDING.trialMs).kind).toBe("recovering");
  });

  it("one caller of several never makes it fall, whatever it reports and when", () => {
    const others = fc.array(fc.constantFrom("B", "C", "D"), { minLength: 5, maxLength: 40 });
    fc.assert(
      fc.property(others, fc.array(fc.nat(40), { maxLength: 60 }), (good, places) => {
        const letters: string[] = [...good];
        for (const place of places) letters.splice(5 + (place % (letters.length - 4)), 0, "a");
        // Others speak before it does, and within the horizon.
        const outcomes = mergeOutcomes([story(letters.join(""))], BEGAN, YEAR);
        for (let i = 0; i < outcomes.length - 5; i++) expect(standingAfter(outcomes.slice(i)).kind).toBe("trusted");
      }),
      { numRuns: 300 },
    );
  });
});

describe("what a tool's score is multiplied by", () => {
  const factor = (text: string, more: Partial<Outcome> = {}, nowMs = BEGAN + text.length * MINUTE) => new Usage(story(text, more)).factorAt(nowMs);

  it("grows with use and falls with failures and slowness, and fades to 1", () => {
    expect(factor("A")).toBeGreaterThan(1);
    expect(factor("A".repeat(16))).toBeGreaterThan(factor("A"));
    expect(factor("AAaAAa")).toBeLessThan(factor("AAAAAA"));
    expect(factor("AAA", { latencyMs: 60_000 })).toBeLessThan(factor("AAA", { latencyMs: 50 }));
    expect(factor("AAAA", {}, BEGAN + YEAR)).toBeCloseTo(1, 2);
    expect(factor("aaaa", {}, BEGAN + YEAR)).toBeCloseTo(1, 2);
    expect(factor("a".repeat(10))).toBe(USAGE.collapsed);
  });

  it("is never more than a fifth up or down while the tool can be relied on", () => {
    const any = fc.record({
      atMs: fc.integer({ min: BEGAN, max: BEGAN + YEAR }),
      caller: fc.nat(5),
      nonce: fc.nat(),
      success: fc.boolean(),
      latencyMs: fc.option(fc.nat(86_400_000), { nil: undefined }),
      after: fc.constant<string[]>([]),
    });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 80 }), fc.integer({ min: -YEAR, max: YEAR }), fc.double({ min: 0, max: 1, noNaN: true }), (given, later, next) => {
        const usage = new Usage(mergeOutcomes([given], BEGAN, YEAR * 9));
        const nowMs = BEGAN + later;
        const made = usage.factorAt(nowMs, next);
        if (usage.standingAt(nowMs).kind === "collapsed") expect(made).toBe(USAGE.collapsed);
        else expect(made >= 1 - USAGE.most && made <= 1 + USAGE.most).toBe(true);
      }),
    );
  });
});

describe("the outcomes that are kept", () => {
  const any = fc.record({
    atMs: fc.integer({ min: BEGAN, max: BEGAN + 200 }),
    caller: fc.nat(4),
    nonce: fc.nat(3),
    success: fc.constant(true),
    latencyMs: fc.constant(undefined),
    after: fc.constant<string[]>([]),
  });

  it("are the same in whatever order and parts they come, bounded, and a share of each caller", () => {
    fc.assert(
      fc.property(fc.array(any, { maxLength: 300 }), fc.nat(300), fc.nat(300), (given, cut, turn) => {
        const whole = mergeOutcomes([given], BEGAN, YEAR);
        const [first, second] = [given.slice(0, cut), [...given.slice(cut)].reverse()];
        const turned = [...given.slice(turn), ...given.slice(0, turn)];
        const parts = mergeOutcomes([mergeOutcomes([second], BEGAN, YEAR), mergeOutcomes([first], BEGAN, YEAR)], BEGAN, YEAR);
        const oneByOne = turned.reduce<Outcome[]>((kept, outcome) => mergeOutcomes([kept, [outcome]], BEGAN, YEAR), []);
        expect(parts).toEqual(whole);
        expect(oneByOne).toEqual(whole);
        expect(mergeOutcomes([whole, given], BEGAN, YEAR)).toEqual(whole);
        expect(whole.length).toBeLessThanOrEqual(OUTCOME_LIMITS.perTool);
        for (const { caller } of whole)
          expect(whole.filter((outcome) => outcome.caller === caller).length).toBeLessThanOrEqual(OUTCOME_LIMITS.perToolAndCaller);
      }),
    );
  });
});
