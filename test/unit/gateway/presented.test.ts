import { describe, expect, it } from "vitest";
import { presentedResult } from "../../../src/gateway/calling.js";
import { presentedDefinition } from "../../../src/gateway/presented.js";

describe("a presented definition", () => {
  it("is the server's own text but for its name: order, spaces, unknown keys and large numbers stay", () => {
    const text = '{ "id": 9007199254740993, "2":1, "name" : "greet", "1":2, "x-own":{"name":"inner"}, "inputSchema":{"type":"object"} }';
    expect(presentedDefinition(text, "one__greet", "sessions")).toBe(text.replace('"greet"', '"one__greet"'));
  });

  it("renames every repetition, because parsers differ in which one counts", () => {
    expect(presentedDefinition('{"name":"a","name":"b"}', "c", "sessions")).toBe('{"name":"c","name":"c"}');
  });

  it.each([
    ['{"outputSchema":{"type":"array"},"name":"a"}', '{"name":"b"}'],
    ['{"name":"a","outputSchema":{"type":"array"}}', '{"name":"b"}'],
    ['{"name":"a","outputSchema":true,"title":"t"}', '{"name":"b","title":"t"}'],
    ['{"outputSchema":{"type":"array"},"outputSchema":{"type":"string"},"name":"a"}', '{"name":"b"}'],
    ['{"name":"a","outputSchema":{"type":"object"}}', '{"name":"b","outputSchema":{"type":"object"}}'],
  ])("leaves out for older clients what makes them refuse the list: %s", (text, shown) => {
    expect(presentedDefinition(text, "b", "sessions")).toBe(shown);
    expect(presentedDefinition(text, "b", "2026-07-28")).toBe(text.replace('"a"', '"b"'));
  });

  it("is none where the text is no object", () => {
    for (const text of ["[]", "{", "", '"x"']) expect(presentedDefinition(text, "b", "sessions")).toBeUndefined();
  });
});

describe("a presented result", () => {
  it("is the server's own text in a session", () => {
    const text = '{"content":[],"structuredContent":{"n":9007199254740993}}';
    expect(presentedResult(JSON.parse(text), text, false, "sessions")).toEqual({ kind: "text", text });
  });

  it("says that it is stale, beside what the server says", () => {
    const value = { content: [], _meta: { own: 1 } };
    expect(presentedResult(value, "", true, "2026-07-28")).toEqual({ kind: "object", value: { content: [], _meta: { own: 1, "toolcrib/stale": true } } });
  });

  it("has no structured content that older clients refuse", () => {
    const value = { content: [{ type: "text", text: "[1]" }], structuredContent: [1] };
    expect(presentedResult(value, JSON.stringify(value), false, "sessions")).toEqual({ kind: "object", value: { content: value.content } });
    expect(presentedResult(value, "", false, "2026-07-28")).toEqual({ kind: "object", value });
  });
});
