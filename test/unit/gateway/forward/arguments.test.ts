import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ArgumentChecker } from "../../../../src/gateway/forward/arguments/checker.js";
import { explainCall, findNested, nestedText } from "../../../../src/gateway/forward/arguments/nesting.js";
import { softened } from "../../../../src/gateway/forward/arguments/soften.js";
import { argumentsProblem } from "../../../../src/gateway/forward/given.js";
import { definitionOf } from "../../../support/forward.js";

/** A machine that is busy elsewhere must not make a check give up. */
const patient = () => new ArgumentChecker({ compileMs: 60_000, checkMs: 60_000 });
const check = (inputSchema: object, args: unknown, checker = patient()) =>
  checker.check(definitionOf("srv/tool", inputSchema), args).problem;
const object = (properties: object, more: object = {}) => ({ type: "object", properties, ...more });

describe("what does not fit is said so that it can be put right", () => {
  it.each<[string, object, unknown, string]>([
    ["a missing one", object({ q: { type: "string" } }, { required: ["q"] }), {}, "/q is missing"],
    ["none at all", object({ q: { type: "string" } }, { required: ["q"] }), undefined, "/q is missing"],
    ["a text for a number", object({ n: { type: "integer" } }), { n: " 12 " }, "/n must be integer, but is string \" 12 \": give 12 without quotes"],
    ["a text for a truth", object({ b: { type: "boolean" } }), { b: "true" }, "give true without quotes"],
    ["JSON in a text", object({ list: { type: "array" } }), { list: "[1,2]" }, "give the JSON itself, not a text that holds it"],
    ["null for nothing", object({ s: { type: "string" } }), { s: null }, "/s must be string, but is null: leave it out if there is none"],
    ["one of several", object({ unit: { enum: ["c", "f"] } }), { unit: "k" }, '/unit must be one of ["c","f"], but is "k"'],
    ["a constant", object({ v: { const: 1 } }), { v: 2 }, "/v must be 1, but is 2"],
    ["an unknown one", object({ a: {} }, { additionalProperties: false }), { b: 1 }, "/b is no parameter"],
    ["deep inside", object({ a: { type: "array", items: object({ "x/y": { type: "number" } }) } }), { a: [{}, { "x/y": "z" }] }, "/a/1/x~1y must be number"],
    ["alternatives", object({ a: { anyOf: [{ type: "string" }, { type: "null" }] } }), { a: 1 }, "/a must be string or null, but is integer"],
    ["alternatives of one type", object({ a: { anyOf: [{ type: "string", maxLength: 1 }, { type: "string", minLength: 9 }] } }), { a: "abc" }, "/a fits none of its 2 alternatives"],
    ["two alternatives at once", object({ a: { oneOf: [{ type: "number" }, { minimum: 1 }] } }), { a: 5 }, "/a fits several of its alternatives"],
    ["a bound", object({ n: { maximum: 5 } }), { n: 6 }, "/n must be <= 5, but is 6"],
    ["all at once", object({ a: { type: "string" }, b: { type: "integer" } }, { required: ["a"] }), { b: "x" }, "/a is missing; /b must be integer"],
    ["no parameters", object({}, { additionalProperties: false }), { x: 1 }, "It takes no parameters."],
    ["the outline", object({ b: { type: "integer" }, a: { type: "string" } }, { required: ["a"] }), {}, 'It takes {"a": string, "b"?: integer}.'],
  ])("%s", (_name, schema, args, said) => {
    expect(check(schema, args)).toContain(said);
  });

  it("names a few problems of many, and how many there are", () => {
    const said = check(object({ a: { type: "array", items: { type: "string" } } }), { a: Array(200).fill(1) }) ?? "";
    expect(said).toContain("and 192 more");
    expect(said.length).toBeLessThan(1_000);
  });
});

describe("in doubt the server has the last word", () => {
  it.each<[string, object, unknown]>([
    ["a pattern is not run", object({ s: { type: "string", pattern: "^(a+)+$" } }), { s: `${"a".repeat(40)}b` }],
    ["a format is not judged", object({ s: { type: "string", format: "uri" } }), { s: "not a uri" }],
    ["what a pattern names is no additional property", object({}, { patternProperties: { "^x-": {} }, additionalProperties: false }), { "x-a": 1 }],
    ["not, when something was dropped in it", object({ s: { not: { pattern: "^a" } } }), { s: "b" }],
    ["oneOf, told apart by patterns", object({ s: { oneOf: [{ pattern: "^a" }, { pattern: "^b" }] } }), { s: "a" }],
    ["if, when its pattern is not run", object({ s: JSON.parse('{"if":{"pattern":"^a"},"then":{"maxLength":1}}') }), { s: "bcd" }],
    ["unevaluated, when something was dropped", object({ s: { type: "string", format: "date" } }, { allOf: [object({ t: {} })], unevaluatedProperties: false }), { s: "x", t: 1 }],
    ["a dialect that is not known", { $schema: "http://json-schema.org/draft-04/schema#", ...object({ n: { minimum: 1, exclusiveMinimum: true } }) }, { n: 0 }],
    ["beside a $ref of draft-07", { $schema: "http://json-schema.org/draft-07/schema#", ...object({ s: { $ref: "#/definitions/s", maxLength: 1 } }), definitions: { s: { type: "string" } } }, { s: "long" }],
    ["a reference that leads nowhere", object({ s: { $ref: "#/$defs/none" } }), { s: 1 }],
    ["a reference into the net", object({ s: { $ref: "https://example.com/s.json" } }), { s: 1 }],
    ["a keyword that is none", object({ s: { type: "text" } }), { s: 1 }],
    ["a number that a computer cannot divide", object({ n: { multipleOf: 0.01 } }), { n: 19.99 }],
    ["recursion without an end", { type: "object", $ref: "#" }, {}],
    ["no schema to speak of", {}, { anything: 1 }],
  ])("%s", (_name, schema, args) => {
    expect(check(schema, args)).toBeUndefined();
  });

  it("a definition that may be out of date refuses nothing", () => {
    const definition = definitionOf("srv/tool", object({ q: { type: "string" } }, { required: ["q"] }));
    expect(new ArgumentChecker().check({ ...definition, freshness: "stale" }, {}).problem).toBeUndefined();
  });

  it("a definition that cannot be read refuses nothing", () => {
    const checked = new ArgumentChecker().check({ digest: "sha256:0", bytes: Buffer.from("{"), freshness: "current" }, {});
    expect(checked).toEqual({ problem: undefined, inputSchema: undefined });
  });

  it("$id of one schema means nothing to another's", () => {
    const checker = new ArgumentChecker();
    const named = (type: string) => ({ $id: "https://example.com/s", ...object({ a: { type } }) });
    expect(check(named("string"), { a: 1 }, checker)).toContain("must be string");
    expect(check(named("integer"), { a: 1 }, checker)).toBeUndefined();
    expect(check(object({ a: { $ref: "https://example.com/s" } }), { a: 1 }, checker)).toBeUndefined();
  });

  it("names like __proto__ are names like others", () => {
    const schema = JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string","pattern":"x"},"constructor":{"type":"string"}}}');
    expect(check(schema, JSON.parse('{"__proto__":"a","constructor":"b"}'))).toBeUndefined();
    expect(({} as Record<string, unknown>)["type"]).toBeUndefined();
  });
});

describe("a schema that would take for ever", () => {
  /** Each level of the data doubles the work. */
  const exponential = {
    type: "object",
    properties: { x: { $ref: "#" } },
    allOf: [{ properties: { x: { $ref: "#" } } }, { properties: { x: { $ref: "#" } } }],
  };
  const deep = (levels: number): object => (levels === 0 ? {} : { x: deep(levels - 1) });

  it("is left unchecked, and not tried again", () => {
    const checker = new ArgumentChecker();
    expect(check(exponential, deep(40), checker)).toBeUndefined();
    expect(check(exponential, { x: 1 }, checker)).toBeUndefined();
  });

  it("is checked where it is quick", () => {
    expect(check(exponential, { x: 1 })).toContain("/x must be object");
  });
});

describe("softened schemas", () => {
  it("keep what is no regular expression", () => {
    const schema = object({ pattern: { type: "string" }, format: { enum: ["pattern"] } }, { required: ["pattern"] });
    expect(softened(schema, false)).toEqual(schema);
    const strict = object({ a: { oneOf: [{ type: "string" }, { type: "null" }], not: { const: "x" } } });
    expect(softened(strict, false)).toEqual(strict);
  });
});

describe("the corpus", () => {
  const folder = fileURLToPath(new URL("../../../fixtures/corpus/", import.meta.url));
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));

  it.each(files)("every schema of %s is ready, and says no to a number for an object", (file) => {
    const { tools } = JSON.parse(readFileSync(`${folder}${file}`, "utf8")) as { tools?: { name: string; inputSchema: object }[] };
    const checker = patient();
    for (const { name, inputSchema } of tools ?? []) {
      const { required } = inputSchema as { required?: string[] };
      const problem = check(inputSchema, {}, checker);
      expect([name, problem === undefined]).toEqual([name, !required?.length]);
    }
  });
});

describe("arguments one level too deep", () => {
  it.each<[string, unknown, object | undefined, object | undefined]>([
    ["under arguments", { arguments: { q: 1 } }, object({ q: {} }), { under: "arguments", args: { q: 1 }, tool: undefined, asText: false }],
    ["beside the name", { name: "srv/x", arguments: { q: 1 } }, object({ q: {} }), { under: "arguments", args: { q: 1 }, tool: "srv/x", asText: false }],
    ["as text", { params: '{"q":1}' }, undefined, { under: "params", args: { q: 1 }, tool: undefined, asText: true }],
    ["meant so", { arguments: { q: 1 } }, object({ arguments: {} }), undefined],
    ["meant so, beside a name", { name: "a", input: {} }, object({ name: {} }), undefined],
    ["with more beside it", { arguments: {}, q: 1 }, undefined, undefined],
    ["of a tool that takes anything", { input: {} }, { type: "object" }, undefined],
    ["not at all", { q: 1 }, undefined, undefined],
    ["no object", [1], undefined, undefined],
  ])("%s", (_name, given, schema, found) => {
    expect(findNested(given, schema)).toEqual(found);
  });

  it("are repeated only in part when they are long", () => {
    const nested = findNested({ arguments: { q: "x".repeat(5_000) } });
    expect(nested && nestedText(nested).length).toBeLessThan(600);
  });
});

describe("a call of a tool that calls tools", () => {
  const form = { tool: "call_tool", nameKey: "name", argumentsKey: "arguments" };

  it.each<[string, unknown, string | undefined]>([
    ["right", { name: "srv/x", arguments: { q: 1 } }, undefined],
    ["right, without arguments", { name: "srv/x" }, undefined],
    ["all of it inside", { arguments: { name: "srv/x", arguments: { q: 1 } } }, 'call it as call_tool({"name":"srv/x","arguments":{"q":1}})'],
    ["the name among the arguments", { arguments: { name: "srv/x", q: 1 } }, 'call it as call_tool({"name":"srv/x","arguments":{"q":1}})'],
    ["the name under another name", { tool_id: "srv/x", arguments: { q: 1 } }, 'call it as call_tool({"name":"srv/x","arguments":{"q":1}})'],
    ["arguments as text", { name: "srv/x", arguments: '{"q":1}' }, 'is a text that holds JSON, and must be the object itself: call it as call_tool({"name":"srv/x","arguments":{"q":1}})'],
    ["arguments as a list", { name: "srv/x", arguments: [1] }, '"arguments" of call_tool must be an object'],
    ["nothing", {}, 'call_tool needs "name"'],
    ["a text", '{"name":"srv/x"}', "was given a text that holds one"],
    ["null", null, "call_tool takes an object"],
  ])("%s", (_name, given, said) => {
    const text = explainCall(given, form);
    if (said === undefined) expect(text).toBeUndefined();
    else expect(text).toContain(said);
  });
});

it("the shape of arguments", () => {
  expect(argumentsProblem(undefined)).toBeUndefined();
  expect(argumentsProblem({ a: [{}] })).toBeUndefined();
  expect(argumentsProblem(null)?.text).toContain("null");
});
