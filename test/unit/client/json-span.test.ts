import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, memberAt, membersOf, replaced, slice } from "../../../src/cli/wrap/json-span.js";

const text = (b: Buffer) => b.toString("utf8");

describe("spans of a JSON text", () => {
  it("finds members among strings that look like structure", () => {
    const json = Buffer.from('  { "a\\"}" : [1, {"x":"]}"} ] , "id" : 9007199254740993,"u":"é\\\\", "e":{} }');
    const members = membersOf(json);
    expect([...members].map(([k, s]) => [k, text(slice(json, s))])).toEqual([
      ['a"}', '[1, {"x":"]}"} ]'],
      ["id", "9007199254740993"],
      ["u", '"é\\\\"'],
      ["e", "{}"],
    ]);
  });

  it("walks 200,000 levels without recursion", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    const json = Buffer.from(`{"result":${deep},"id":1}`);
    expect(text(slice(json, membersOf(json).get("id")!))).toBe("1");
  });

  it("agrees with JSON.parse on any object, and replaces one value only", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const json = Buffer.from(JSON.stringify(value, null, indent));
        const members = membersOf(json);
        expect(members.size).toBe(Object.keys(value).length);
        for (const [key, span] of members) {
          expect(JSON.parse(text(slice(json, span)))).toEqual(JSON.parse(JSON.stringify(value[key])));
          const changed = JSON.parse(text(replaced(json, span, '"new"'))) as Record<string, unknown>;
          expect(Object.entries(changed).filter(([k]) => k !== key).length).toBe(members.size - 1);
        }
      }),
    );
  });

  it("slices elements", () => {
    const json = Buffer.from('{"tools":[ {"name":"a"} ,{"name":"b" }, 3 ]}');
    const tools = elementsOf(json, memberAt(json, ["tools"]));
    expect(tools.map((s) => text(slice(json, s)))).toEqual(['{"name":"a"}', '{"name":"b" }', "3"]);
    expect(elementsOf(Buffer.from("[]"))).toEqual([]);
    expect(memberAt(json, ["tools", "x"])).toBeUndefined();
  });
});
