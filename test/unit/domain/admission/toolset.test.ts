import { describe, expect, it } from "vitest";
import { checkEtag, checkFactNames, checkFacts, checkHandle, checkIdle, checkRemoved, checkToolIds } from "../../../../src/domain/admission/toolset.js";

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `s/t${i}`);
const facts = (count: number, value = "x") => new Map(Array.from({ length: count }, (_, i) => [`f${i}`, value]));

describe("tools of a toolset", () => {
  it("are named by tool_ids, each once, at most 512", () => {
    expect(checkToolIds("tool_ids", ids(512))).toEqual([]);
    expect(checkToolIds("tool_ids", ids(513)).map((v) => v.description)).toEqual(["a toolset has at most 512 tools, 513 were sent"]);
    const wrong = checkToolIds("tool_ids", ["s/a", "none", "S/a", "s/", "s/a b", "s/a", ""]);
    expect(wrong.map((v) => v.field)).toEqual([1, 2, 3, 4, 5, 6].map((i) => `tool_ids[${i}]`));
    expect(wrong[4]?.description).toContain("tool_ids[0] already");
  });
});

describe("facts of a toolset", () => {
  it("are at most 32, together at most 16 KiB in bytes", () => {
    expect(checkFacts("facts", facts(32))).toEqual([]);
    expect(checkFacts("facts", new Map([["a", "x".repeat(16_383)]]))).toEqual([]);
    const [count, bytes] = checkFacts("facts", facts(33, "查".repeat(200)));
    expect(count?.description).toContain("at most 32 facts, this would make it 33");
    expect(bytes?.description).toMatch(/at most 16384 bytes, this would make it \d+/);
  });

  it("have plain names", () => {
    expect(checkFactNames("facts", ["mcp.client", "a", "0-_."])).toEqual([]);
    for (const name of ["", "A", "a b", ".a", "a".repeat(64), "é"]) expect(checkFactNames("facts", [name]), name).toHaveLength(1);
    expect(checkRemoved([...facts(33).keys()]).map((v) => v.description)).toEqual(["a toolset has at most 32 facts, 33 names were sent"]);
  });
});

it("the idle time is 1 s to 7 days", () => {
  for (const fine of [undefined, 1_000, 604_800_000]) expect(checkIdle(fine)).toEqual([]);
  for (const wrong of [0, -1, 999, 604_800_001, Number.NaN]) expect(checkIdle(wrong)[0]?.description).toContain("1 s to 604800 s");
});

it("handle and etag are never long, and a handle is never empty", () => {
  expect([checkHandle("x"), checkEtag("")]).toEqual([[], []]);
  expect([checkHandle(""), checkHandle("x".repeat(513)), checkEtag("x".repeat(513))].map((v) => v.length)).toEqual([1, 1, 1]);
});
