import { describe, expect, it } from "vitest";
import { AnthropicTools, GeminiTools, OpenAiChatTools } from "../../../../src/client/providers/index.js";
import { EXPORTS, lossesOf, tool } from "./tool-sets.js";
import { checkValues } from "./values.js";

const chat = (schema: object, strict: "auto" | "exact" | "off" = "off") => {
  const { tools, report } = new OpenAiChatTools([tool("s/t", schema)], { strict });
  return { ...tools[0]?.function, report: report.tools[0] };
};

describe("combinators at the root", () => {
  const oneOf = {
    type: "object",
    properties: { id: { type: "string" } },
    required: ["id"],
    oneOf: [
      { properties: { kind: { const: "file" }, path: { type: "string" } }, required: ["kind", "path"] },
      { properties: { kind: { const: "url" }, url: { type: "string" } }, required: ["kind", "url"] },
    ],
  };

  it("are folded: all properties, what every alternative requires, and a note", () => {
    const { parameters, description, report } = chat(oneOf);
    expect(parameters).toEqual({
      type: "object",
      properties: { id: { type: "string" }, kind: { enum: ["file", "url"] }, path: { type: "string" }, url: { type: "string" } },
      required: ["id", "kind"],
    });
    expect(description).toBe(
      'Does it.\n\nGive exactly one of these groups of arguments: (1) kind = "file", path; (2) kind = "url", url.',
    );
    expect(lossesOf(report)[0]).toBe("wider : the arguments must fit exactly one of 2 alternatives: only the description says so");
  });

  it("are folded exactly where they are allOf", () => {
    const { parameters, report } = chat({
      type: "object",
      allOf: [{ $ref: "#/$defs/base" }, { properties: { b: { type: "integer" } }, required: ["b"] }],
      $defs: { base: { type: "object", properties: { a: { type: "string" } }, required: ["a"] } },
    });
    expect(parameters).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "integer" } },
      required: ["a", "b"],
    });
    expect(report?.outcome).toBe("exact");
  });

  it("keep their note where the description has to be shortened", () => {
    const { description } = new OpenAiChatTools([tool("s/t", oneOf, { description: "x".repeat(3_000) })]).tools[0]!.function;
    expect(description).toHaveLength(1_024);
    expect(description.endsWith('(2) kind = "url", url.')).toBe(true);
  });

  it.each(Object.keys(EXPORTS))("%s gives if and then their note, and a schema that nothing fits is still a tool", (kind) => {
    const { box, problems } = EXPORTS[kind]!([
      tool("s/if", JSON.parse('{"type":"object","if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}')),
      tool("s/no", { type: "object", allOf: [false, { type: "string" }] }),
    ]);
    expect(problems).toEqual([]);
    expect(box.exported[0]?.description).toContain("If a = 1: b.");
    expect(box.report).toMatchObject({ refused: 0, lossy: 2 });
  });
});

describe("references", () => {
  const tree = {
    type: "object",
    properties: { root: { $ref: "#/definitions/node" }, size: { $ref: "#/definitions/size", description: "How large." } },
    required: ["root"],
    definitions: {
      size: { type: "integer", minimum: 1 },
      node: {
        type: "object",
        properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/definitions/node" } } },
        required: ["name", "children"],
        additionalProperties: false,
      },
    },
    additionalProperties: false,
  };

  it("used once are put in place; circles stay where the provider knows them", () => {
    const { parameters, report } = chat(tree);
    expect(report?.outcome).toBe("exact");
    expect(parameters).toMatchObject({
      properties: { root: { $ref: "#/$defs/node" }, size: { type: "integer", minimum: 1, description: "How large." } },
      $defs: { node: { properties: { children: { items: { $ref: "#/$defs/node" } } } } },
    });
    expect(chat(tree, "exact")).toMatchObject({ strict: true, report: { outcome: "exact" } });
  });

  it("that go around are cut where the provider does not, and the tool says so", () => {
    for (const parameters of ["json", "subset"] as const) {
      const { report, functionDeclarations } = new GeminiTools([tool("s/t", tree)], { parameters });
      expect(lossesOf(report.tools[0]).join()).toContain("it leads back to itself");
      expect(JSON.stringify(functionDeclarations).length).toBeLessThan(2_000);
    }
  });

  it.each(Object.keys(EXPORTS))("that go around: %s takes their values, and gives them back", (kind) => {
    const inputs = [tool("s/t", tree)];
    const seeds = Array.from({ length: 20 }, (_, i) => i);
    const counts = checkValues(kind, inputs, EXPORTS[kind]!(inputs), seeds);
    expect(counts.there).toBeGreaterThan(5);
    expect(counts.narrowed).toBe(0);
  });

  it("to each other a hundred thousand ways are bounded", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [
        `p${i}`,
        { type: "object", properties: { a: { $ref: `#/$defs/p${(i + 1) % 40}` }, b: { $ref: `#/$defs/p${(i + 7) % 40}` } } },
      ]),
    );
    const inputs = [tool("s/t", { type: "object", properties: { x: { $ref: "#/$defs/p0" } }, anyOf: [{ $ref: "#" }, { $ref: "#/$defs/p1" }], $defs })];
    for (const [kind, exportTo] of Object.entries(EXPORTS)) {
      const { box, problems } = exportTo(inputs);
      expect([kind, problems]).toEqual([kind, []]);
      expect(JSON.stringify(box.exported[0]?.schema).length).toBeLessThan(60_000);
    }
  });

  it("outwards, to nowhere and to themselves restrict nothing", () => {
    const { parameters, report } = chat({
      type: "object",
      properties: { a: { $ref: "http://10.0.0.1/schema" }, b: { $ref: "#/$defs/none" }, c: { $ref: "#/$defs/loop" } },
      $defs: { loop: { anyOf: [{ $ref: "#/$defs/loop" }] } },
    });
    expect(parameters).toMatchObject({ properties: { a: {}, b: {} } });
    expect(lossesOf(report)).toHaveLength(3);
  });
});

describe("older drafts and rubbish", () => {
  it("are said in the terms of draft 2020-12", () => {
    const { tools, report } = new AnthropicTools([
      tool("s/t", {
        $schema: "http://json-schema.org/draft-04/schema#",
        type: "object",
        properties: {
          pair: { type: "array", items: [{ type: "string" }, { type: "integer" }], additionalItems: false },
          above: { type: "number", minimum: 0, exclusiveMinimum: true },
        },
        dependencies: { pair: ["above"] },
      }),
    ]);
    expect(report.exact).toBe(1);
    expect(tools[0]?.input_schema).toEqual({
      type: "object",
      properties: {
        pair: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false },
        above: { type: "number", exclusiveMinimum: 0 },
      },
      dependentRequired: { pair: ["above"] },
    });
  });

  it("never spoil the set: what cannot be read is refused with its reason", () => {
    const cyclic: Record<string, unknown> = { name: "c", inputSchema: { type: "object" } };
    cyclic["self"] = cyclic;
    const deep = JSON.parse(`${'{"items":'.repeat(200)}{}${"}".repeat(200)}`);
    const inputs = [
      tool("s/good", { type: "object" }),
      { toolId: "s/text", definition: Buffer.from("not json") },
      { toolId: "s/utf8", definition: Buffer.from([0x7b, 0xff, 0x7d]) },
      { toolId: "s/list", definition: [] },
      { toolId: "s/none", definition: { name: "none" } },
      { toolId: "s/type", definition: { inputSchema: { type: "string" } } },
      { toolId: "s/cyclic", definition: cyclic },
      { toolId: "s/deep", definition: { inputSchema: { type: "object", properties: { a: deep } } } },
      { toolId: "s/large", definition: Buffer.alloc(2 * 1024 * 1024, 0x20) },
      tool("s/good", { type: "object" }),
      tool("", { type: "object" }),
      tool("s/also", { type: "object" }),
    ];
    for (const [kind, exportTo] of Object.entries(EXPORTS)) {
      const { box, problems } = exportTo(inputs);
      expect([kind, problems]).toEqual([kind, []]);
      expect(box.exported.map((t) => t.toolId)).toEqual(["s/good", "s/also"]);
      expect(box.report).toMatchObject({ refused: 10 });
      for (const report of box.report.tools)
        if (report.outcome === "refused") expect(report.reasons.join().length).toBeGreaterThan(20);
    }
  });

  it("over the number that one request takes are refused, in their order", () => {
    const inputs = Array.from({ length: 130 }, (_, i) => tool(`s/t${i}`, { type: "object" }));
    const { tools, report } = new OpenAiChatTools(inputs);
    expect(tools).toHaveLength(128);
    expect(report.tools[128]).toEqual({
      outcome: "refused",
      toolId: "s/t128",
      reasons: ["one request takes 128 tools, and so many stand before it: offer fewer"],
    });
  });

  it("drop a pattern that is none, and never run one", () => {
    const evil = { type: "string", pattern: "^(a+)+$" };
    const { box, read } = EXPORTS["openai-chat"]!([
      tool("s/t", { type: "object", properties: { a: { anyOf: [evil, { type: "object", properties: { x: { type: "string" } } }] }, b: { type: "string", pattern: "[" } }, required: ["a", "b"] }),
    ]);
    const started = process.cpuUsage();
    expect(read("s__t", { a: `${"a".repeat(50)}!`, b: "" })).toMatchObject({ ok: true });
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
    expect(lossesOf(box.report.tools[0]).join()).toContain("/properties/b/pattern");
  });
});

describe("strict mode", () => {
  it.each([
    ["a free object", { properties: { m: { type: "object" } } }],
    ["a map", { properties: { m: { type: "object", additionalProperties: { type: "string" } } } }],
    ["any value", { properties: { m: {} } }],
    ["a tuple", { properties: { m: { type: "array", prefixItems: [{ type: "string" }] } }, required: ["m"] }],
    ["an open root", { additionalProperties: true }],
    ["null beside absence", { properties: { m: { enum: ["a", null] } } }],
  ])("is not asked for with %s, and the report says why", (_, more) => {
    const { strict, report } = chat({ type: "object", ...more }, "auto");
    expect(strict).toBe(false);
    expect(report?.outcome !== "refused" && report?.notStrict).not.toEqual([]);
  });

  it("is not asked for deeper than ten levels", () => {
    const nested = (levels: number): object =>
      levels === 1 ? { type: "string" } : { type: "object", properties: { a: nested(levels - 1) }, required: ["a"], additionalProperties: false };
    expect(chat(nested(11), "exact").strict).toBe(true);
    expect(chat(nested(12), "exact").strict).toBe(false);
  });

  it("exact narrows nothing, auto closes what says nothing about other keys and reports it", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    expect(chat(schema, "exact").strict).toBe(false);
    const { strict, report, parameters } = chat(schema, "auto");
    expect(strict).toBe(true);
    expect(parameters).toEqual({
      type: "object",
      properties: { a: { type: ["string", "null"] } },
      required: ["a"],
      additionalProperties: false,
    });
    expect(lossesOf(report)).toEqual(["narrower /additionalProperties: keys that are not named are not taken"]);
  });
});
