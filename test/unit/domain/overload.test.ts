import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CALM, isShed, type Overload, OVERLOAD_MS, overloadAfter, SHEDDABLE } from "../../../src/domain/overload.js";

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

describe("the level of overload", () => {
  it("rises when two windows agree, to what both of them ask for", () => {
    expect(levels([101, 101])).toEqual([0, 1]);
    expect(levels([260, 260])).toEqual([0, 2]);
    expect(levels([501, 9_999])).toEqual([0, 3]);
    expect(levels([9_999, 101])).toEqual([0, 1]);
    expect(levels([101, 9_999, 9_999, 9_999])).toEqual([0, 1, 1, 3]);
  });

  it("is not raised by one late window between good ones, however late", () => {
    expect(levels([0, 60_000, 0, 60_000, 99, 60_000])).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("falls by one after three windows below half of what began it", () => {
    const three = [600, 600];
    expect(levels([...three, 249, 249, 249, 124, 124, 124, 49, 49, 49]).slice(2)).toEqual([3, 3, 2, 2, 2, 1, 1, 1, 0]);
  });

  it("stays where it is between half and the whole: shedding itself makes the loop faster", () => {
    expect(levels([110, 110, 51, 99, 60, 51, 99]).slice(1)).toEqual([1, 1, 1, 1, 1, 1]);
    expect(levels([110, 110, 49, 49, 51, 49, 49]).at(-1)).toBe(1);
  });

  it("for any history: moves as slowly as that, is calm after enough calm windows, and never sheds what was not asked for", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 1_000 }), { maxLength: 60 }), (delays) => {
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
