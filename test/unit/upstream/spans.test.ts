import fc from "fast-check";
import { parseTree } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { elements, members } from "../../../src/upstream/spans.js";

const cut = (text: string, { start, end }: { start: number; end: number }) => text.slice(start, end);

describe("spans", () => {
  it("cut out values with their own white space and escapes", () => {
    const text = ' { "a" : [ 1 ,{"b":"]}\\\\"}, "\\"," , null ] , "\\u0062":-1e400}\n';
    const found = members(text, 0);
    expect([...found.keys()]).toEqual(["a", "b"]);
    const list = found.get("a");
    expect(list && elements(text, list.start).map((span) => cut(text, span))).toEqual([
      "1",
      '{"b":"]}\\\\"}',
      '"\\","',
      "null",
    ]);
    expect(cut(text, found.get("b") ?? { start: 0, end: 0 })).toBe("-1e400");
  });

  it("take the last of repeated keys, as JSON.parse does", () => {
    const text = '{"tools":[1],"tools":[2,3]}';
    expect(elements(text, members(text, 0).get("tools")?.start ?? 0)).toHaveLength(2);
  });

  it("find nothing in what is empty", () => {
    expect(members("{ }", 0).size).toBe(0);
    expect(elements("[\n]", 0)).toEqual([]);
  });

  it("do not recurse", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    expect(elements(`[${deep},1]`, 0)).toEqual([
      { start: 1, end: 200_001 },
      { start: 200_002, end: 200_003 },
    ]);
  });

  it("agree with another parser on any JSON", () => {
    const texts = fc
      .tuple(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(undefined, 1, "\t"))
      .map(([v, s]) => JSON.stringify(v, null, s));
    fc.assert(
      fc.property(texts, (text) => {
        const root = parseTree(text);
        if (root?.type === "array") {
          const expected = (root.children ?? []).map(({ offset, length }) => ({ start: offset, end: offset + length }));
          expect(elements(text, 0)).toEqual(expected);
        } else if (root?.type === "object") {
          const expected = new Map(
            (root.children ?? []).map(({ children: [key, value] = [] }) => [
              key?.value as string,
              { start: value?.offset ?? 0, end: (value?.offset ?? 0) + (value?.length ?? 0) },
            ]),
          );
          expect(members(text, 0)).toEqual(expected);
        }
      }),
      { numRuns: 500 },
    );
  });
});
