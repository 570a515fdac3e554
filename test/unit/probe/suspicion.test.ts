import { describe, expect, it } from "vitest";
import type { Known, Suspicion } from "../../../src/probe/suspicion.js";
import { judge, NO_SUSPICION } from "../../../src/probe/suspicion.js";

/** Plays askings `[ms, listed tools]` and answers what was said to each: `believe`, or ms until the next asking. */
function play(known: Known, askings: readonly (readonly [number, number])[]): (string | number)[] {
  let suspicion: Suspicion = NO_SUSPICION;
  return askings.map(([atMs, tools]) => {
    const judgement = judge(known, tools, suspicion, atMs);
    if (judgement.kind === "believe") {
      suspicion = NO_SUSPICION;
      return "believe";
    }
    suspicion = judgement.suspicion;
    return judgement.afterMs;
  });
}

const KNOWN = { tools: 10, pending: false };

describe("a list is believed", () => {
  it("at once when it grew, changed, or stayed empty", () => {
    expect(play(KNOWN, [[0, 11]])).toEqual(["believe"]);
    expect(play(KNOWN, [[0, 10]])).toEqual(["believe"]);
    expect(play({ tools: 0, pending: false }, [[0, 0]])).toEqual(["believe"]);
    expect(play({ tools: 0, pending: true }, [[0, 3]])).toEqual(["believe"]);
  });

  it("when empty, after three askings over 30 s", () => {
    expect(play(KNOWN, [[0, 0], [15_000, 0], [30_000, 0]])).toEqual([15_000, 15_000, "believe"]);
  });

  it("when empty and new, likewise", () => {
    expect(play({ tools: 0, pending: true }, [[0, 0], [15_000, 0], [30_000, 0]])).toEqual([15_000, 15_000, "believe"]);
  });

  it("never for askings that come too early, however many", () => {
    expect(play(KNOWN, [[0, 0], [1_000, 0], [2_000, 0], [3_000, 0]])).toEqual([15_000, 14_000, 13_000, 12_000]);
    expect(play(KNOWN, [[0, 9], [400, 9], [1_000, 9]])).toEqual([1_000, 600, "believe"]);
  });

  it("when shrunken, after a second asking one second later", () => {
    expect(play(KNOWN, [[0, 9], [1_000, 9]])).toEqual([1_000, "believe"]);
  });

  it("a full list between empty ones begins the askings anew", () => {
    expect(play(KNOWN, [[0, 0], [15_000, 10], [30_000, 0], [45_000, 0]])).toEqual([15_000, "believe", 15_000, 15_000]);
  });

  it("a list that goes from empty to short is doubted for its own time", () => {
    expect(play(KNOWN, [[0, 0], [15_000, 4], [16_000, 4]])).toEqual([15_000, 1_000, "believe"]);
  });
});
