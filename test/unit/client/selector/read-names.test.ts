import { describe, expect, it } from "vitest";
import { readNames } from "../../../../src/client/selector/read-names.js";

const IDS = ["s/a", "s/b"];

describe("what a model named", () => {
  it.each([
    ["as asked for", '{"tool_ids": ["s/a", "s/b"]}'],
    ["in a fence", 'Sure!\n```json\n{"tool_ids": ["s/a", "s/b"]}\n```\nAnything else?'],
    ["in a fence without a language", '```\n["s/a","s/b"]\n```'],
    ["as a bare list", '["s/a", "s/b"]'],
    ["as a list of objects", '{"tools": [{"tool_id": "s/a", "why": "x"}, {"id": "s/b"}]}'],
    ["in prose", 'I would take {"tool_ids": ["s/a", "s/b"]} because [it] fits.'],
    ["behind thoughts", '<think>maybe ["s/z"]?</think>{"tool_ids":["s/a","s/b"]}'],
    ["with quotes around", '{"tool_ids": ["`s/a`", " \'s/b\' ", "s/a"]}'],
    ["behind brackets that are no list", 'Of [1] and [sic] {"x": 1}: {"tool_ids":["s/a","s/b"]}'],
    ["in the last fence", '```json\n{"example": "x"}\n```\n```json\n{"tool_ids":["s/a","s/b"]}\n```'],
  ])("%s", (_how, text) => expect(readNames(text, "tool_ids")).toEqual(IDS));

  it("an empty list is an answer", () => {
    expect(readNames('{"tool_ids": []}', "tool_ids")).toEqual([]);
  });

  it.each(["", "I cannot help with that.", "{", '{"tool_ids": "s/a"}', '{"a": [1, 2]}', "null", '{"a": ["x"], "b": ["y"]}', '"s/a"', "<think>[\"s/a\"]"])(
    "no list in %j",
    (text) => expect(readNames(text, "tool_ids")).toBeUndefined(),
  );

  it("is bounded, whatever is sent", () => {
    const many = JSON.stringify({ tool_ids: Array.from({ length: 5_000 }, (_, i) => `s/t${i}`) });
    expect(readNames(many, "tool_ids")?.length).toBeLessThanOrEqual(200);
    expect(readNames(JSON.stringify({ tool_ids: ["x".repeat(1_000), "s/a"] }), "tool_ids")).toEqual(["s/a"]);
    const hostile = ["[".repeat(100_000), "```".repeat(30_000), `"${"'".repeat(65_000)}x"`, "<think>".repeat(10_000), `\`\`\`${"a".repeat(60_000)}`, `${"{\"a\":".repeat(15_000)}`];
    for (const text of hostile) expect(readNames(text, "tool_ids")).toBeUndefined();
  });
});
