import { describe, expect, it } from "vitest";
import { FIRST_INDEX_MS, FirstIndex } from "../../src/first-index.js";

function rig(building: number) {
  let end = (): void => undefined;
  const done = new Promise<void>((resolve) => (end = resolve));
  const indexing = { building, built: () => done };
  let nowMs = 5;
  const first = new FirstIndex(indexing, () => nowMs);
  let heard = 0;
  first.onEnd(() => heard++);
  return { first, indexing, end, pass: (ms: number) => (nowMs += ms), heard: () => heard };
}

describe("the first index", () => {
  it("is waited for, heard of when it is there, and never waited for again", async () => {
    const { first, indexing, end, heard } = rig(2);
    expect(first.problem).toContain("index of 2 namespaces");
    expect(first.problem).toBeDefined();
    indexing.building = 0;
    end();
    await Promise.resolve();
    expect([heard(), first.problem]).toEqual([1, undefined]);
    indexing.building = 1;
    expect(first.problem).toBeUndefined();
  });

  it("is not waited for without end", () => {
    const { first, pass } = rig(1);
    expect(first.problem).toContain("index of a namespace");
    pass(FIRST_INDEX_MS - 1);
    expect(first.problem).toBeDefined();
    pass(1);
    expect(first.problem).toBeUndefined();
  });

  it("of nothing is there at once", () => expect(rig(0).first.problem).toBeUndefined());
});
