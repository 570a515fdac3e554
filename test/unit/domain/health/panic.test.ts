import { describe, expect, it } from "vitest";
import { judgePanic, type Newest } from "../../../../src/domain/health/panic.js";

const many = (count: number, atMs: number, bad: boolean): Newest[] => Array.from({ length: count }, () => ({ atMs, bad }));
const SINCE = 1_000;

/** Servers looked at since then and bad, looked at since then and good, and not looked at since then. */
const judge = (bad: number, good: number, old: number) =>
  judgePanic([...many(bad, 2_000, true), ...many(good, 2_000, false), ...many(old, 500, false)], SINCE);

describe("whether it is the registry that is cut off", () => {
  it.each([
    ["one of one", 1, 0, 0, "calm"],
    ["three of three: too few to tell", 3, 0, 0, "calm"],
    ["four of four", 4, 0, 0, "calm"],
    ["five of five", 5, 0, 0, "panic"],
    ["half of ten", 5, 5, 0, "calm"],
    ["six of ten", 6, 4, 0, "panic"],
    ["six of ten, though the others were not asked since", 6, 0, 4, "panic"],
    ["five of ten, and the others were not asked since", 5, 0, 5, "doubt"],
    ["one of ten, and nobody else was asked since", 1, 0, 9, "doubt"],
    ["one of four, and nobody else was asked since", 1, 0, 3, "calm"],
    ["one, while another one answers", 1, 1, 8, "calm"],
    ["nobody", 0, 0, 9, "calm"],
  ] as const)("%s", (_, bad, good, old, says) => {
    expect(judge(bad, good, old)).toBe(says);
  });

  it("counts a look at the very moment", () => {
    expect(judgePanic(many(5, SINCE, true), SINCE)).toBe("panic");
  });
});
