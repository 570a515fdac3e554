import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CALM, isShed, latenessOf, type Overload, OVERLOAD_MS, overloadAfter, SHEDDABLE } from "../../../src/domain/overload.js";

const after = (delays: readonly number[], start: Overload = CALM): Overload => delays.reduce(overloadAfter, start);
const levels = (delays: readonly number[]): number[] => delays.map((_, i) => after(delays.slice(0, i + 1)).level);

describe("what is shed", () => {
  it("is Register first, then loads, then new watches", () => {
    expect([0, 1, 2, 3].map((level) => SHEDDABLE.filter((what) => isShed(level as 0, what)))).toEqual([
      [],
      ["register"],
      ["register", "load"],
      ["register", "load", "watch"],
    ]);
  });
});

describe("how late a loop is", () => {
  const times = (n: number, ms: number) => Array<number>(n).fill(ms);
  it("is what half of the time was spent in, beyond the pace", () => {
    expect(latenessOf(times(100, 10), 10)).toBe(0);
    expect(latenessOf(times(8, 120), 10)).toBe(110);
    expect(latenessOf([900, ...times(10, 10)], 10)).toBe(890);
    expect(latenessOf([300, ...times(70, 10)], 10)).toBe(0);
    expect(latenessOf([], 10)).toBe(0);
  });
});

describe("the level of overload", () => {
  it("rises when two windows agree, to what both of them ask for", () => {
    expect(levels([201, 201])).toEqual([0, 1]);
    expect(levels([401, 401])).toEqual([0, 2]);
    expect(levels([801, 9_999])).toEqual([0, 3]);
    expect(levels([9_999, 201])).toEqual([0, 1]);
    expect(levels([201, 9_999, 9_999, 9_999])).toEqual([0, 1, 1, 3]);
  });

  it("is not raised by one late window between good ones, however late", () => {
    expect(levels([0, 60_000, 0, 60_000, 199, 60_000])).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("falls by one after three windows below half of what began it", () => {
    const three = [900, 900];
    expect(levels([...three, 399, 399, 399, 199, 199, 199, 99, 99, 99]).slice(2)).toEqual([3, 3, 2, 2, 2, 1, 1, 1, 0]);
  });

  it("stays where it is between half and the whole: shedding itself makes the loop faster", () => {
    expect(levels([210, 210, 101, 199, 120, 101, 199]).slice(1)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(levels([210, 210, 99, 99, 101, 99, 99]).at(-1)).toBe(1);
  });

  it("for any history: moves as slowly as that, is calm after enough calm windows, and never sheds what was not asked for", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 1_600 }), { maxLength: 60 }), (delays) => {
        let state = CALM;
        delays.forEach((delay, i) => {
          const next = overloadAfter(state, delay);
          if (next.level > state.level) expect(Math.min(delay, delays[i - 1] as number)).toBeGreaterThan(OVERLOAD_MS[next.level - 1] as number);
          if (next.level < state.level) {
            expect(next.level).toBe(state.level - 1);
            expect(Math.max(...delays.slice(i - 2, i + 1))).toBeLessThan((OVERLOAD_MS[state.level - 1] as number) / 2);
          }
          state = next;
        });
        expect(after(Array<number>(9).fill(0), state)).toEqual(CALM);
      }),
    );
  });
});
