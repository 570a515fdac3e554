import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { glanceJson, parseJson } from "../../../src/domain/json.js";

function accepts(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("parseJson", () => {
  it("accepts what JSON.parse accepts, and nothing else", () => {
    const piece = fc.constantFrom(
      ...["{", "}", "[", "]", ",", ":", '"a"', '"', "\\", "1", "-", "0", ".5", "e9", "true", "null", "false", " ", "\n", "//", "'", "\u0000", "\ufeff", "nul"],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
        const text = pieces.join("");
        expect(parseJson(text).ok).toBe(accepts(text));
      }),
      { numRuns: 5_000 },
    );
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parseJson(text).ok).toBe(true);
      }),
    );
  });

  it("says where it stopped", () => {
    expect(parseJson('{"a":1,}')).toEqual({ ok: false, problem: "a key in double quotes was expected, at character 8" });
    expect(parseJson('{"a":1} x')).toMatchObject({ ok: false, problem: expect.stringContaining("nothing may follow") });
    expect(parseJson('"a')).toMatchObject({ ok: false, problem: expect.stringContaining("does not end") });
  });

  it("gives the span of every value and keeps repeated keys", () => {
    const text = ' {"a" : [1, "é"], "a":null} ';
    const parsed = parseJson(text);
    if (!parsed.ok || parsed.root.kind !== "object") throw new Error("not an object");
    expect(parsed.root.members.map((m) => [m.key, text.slice(m.value.offset, m.value.end)])).toEqual([
      ["a", '[1, "é"]'],
      ["a", "null"],
    ]);
  });

  it("stops at the given depth instead of overflowing", () => {
    expect(parseJson("[".repeat(200_000), 64)).toMatchObject({ ok: false, problem: expect.stringContaining("64 levels") });
    expect(parseJson("[".repeat(64) + "]".repeat(64), 64).ok).toBe(true);
  });
});

describe("glanceJson", () => {
  it("counts nesting outside of strings and finds the top-level name", () => {
    const glance = (text: string) => glanceJson(Buffer.from(text));
    expect(glance('{"x":{"name":"inner"},"y":"[[[{","name" : "ou\\"ter"}')).toEqual({ depth: 2, name: 'ou"ter' });
    expect(glance('{"n\\u0061me":"escaped"}')).toEqual({ depth: 1, name: "escaped" });
    expect(glance('{"x":"name","y":"z"}')).toEqual({ depth: 1, name: "" });
    expect(glance('{"name":1,"x":"y"}')).toEqual({ depth: 1, name: "" });
    expect(glance("")).toEqual({ depth: 0, name: "" });
    expect(glance('{"name":"cut')).toEqual({ depth: 1, name: "" });
    expect(glance("[".repeat(200_000)).depth).toBe(200_000);
  });
});
