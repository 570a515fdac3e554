import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { inputSchemaOf, readDefinition } from "../../../src/domain/definition.js";
import { definitionDigest } from "../../../src/domain/digest.js";
import { member, parseJson } from "../../../src/domain/json.js";
import { deriveLabel } from "../../../src/domain/label.js";
import { findHidden, textLength } from "../../../src/domain/admission/text.js";
import { LIMITS } from "../../../src/domain/limits.js";

const bytesOf = (value: unknown): Uint8Array => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));

function accepted(value: unknown) {
  const read = readDefinition(bytesOf(value));
  if (!read.ok) throw new Error(read.reasons.join("\n"));
  return read.definition;
}

function refused(value: unknown): string[] {
  const read = readDefinition(bytesOf(value));
  if (read.ok) throw new Error("it was accepted");
  return read.reasons;
}

const tool = (more: object = {}): object => ({ name: "t", inputSchema: { type: "object" }, ...more });
const input = (more: object): object => tool({ inputSchema: { type: "object", ...more } });
const property = (schema: unknown): object => input({ properties: { p: schema } });

describe("a definition that can be listed", () => {
  it("keeps its bytes, its digest and what a label needs", () => {
    const text = '{ "description":"Dé", "inputSchema" : {"type":"object", "x":9007199254740993} , "name":"a.B-c_1" }';
    const definition = accepted(text);
    expect(definition).toMatchObject({ name: "a.B-c_1", title: "", description: "Dé", hints: {} });
    expect(definition.sizeBytes).toBe(Buffer.byteLength(text));
    expect(definition.digest).toBe(definitionDigest(text));
    const { offset, length } = definition.inputSchema;
    expect(Buffer.from(definition.bytes).subarray(offset, offset + length).toString()).toBe(
      '{"type":"object", "x":9007199254740993}',
    );
    expect(Buffer.from(inputSchemaOf(definition.bytes)).toString()).toBe('{"type":"object", "x":9007199254740993}');
  });

  it("may hold any characters, keys and unknown fields", () => {
    accepted(tool({ description: "\u0000\u202e\u200b\ud800", id: 7, _meta: null, icons: [] }));
    accepted('{"name":"t","__proto__":{"a":1},"inputSchema":{"type":"object","__proto__":{"type":"int"},"10":1,"9":2}}');
  });

  it("takes the title from its annotations if it has none, and only boolean hints", () => {
    const annotations = { title: "A", readOnlyHint: false, destructiveHint: "yes", openWorldHint: true, category: "x" };
    expect(accepted(tool({ annotations }))).toMatchObject({ title: "A", hints: { readOnly: false, openWorld: true } });
    expect(accepted(tool({ title: "B", annotations }))).toMatchObject({ title: "B" });
    expect(accepted(tool({ annotations })).hints).not.toHaveProperty("destructive");
  });

  it.each([
    ["a property called type", input({ properties: { type: { type: "string" }, $ref: { type: "string" } } })],
    ["an array of types", property({ type: ["string", "null"] })],
    ["data that looks like a schema", property({ enum: [{ type: "int" }], const: { $ref: "http://x" }, default: { type: 1 } })],
    ["examples", property({ examples: [{ type: "int" }], "x-odd": { type: "int" } })],
    ["boolean schemas", input({ properties: { a: true }, additionalProperties: false, not: false })],
    ["local references", input({ $defs: { a: { type: "string" } }, properties: { p: { $ref: "#/$defs/a" }, q: { $ref: "#" } } })],
    ["items of draft-07", property({ type: "array", items: [{ type: "string" }], additionalItems: false })],
    ["dependencies of names", input({ dependencies: { a: ["b"], c: { type: "object" } } })],
    ["an output schema of another type", tool({ outputSchema: { type: "array", items: { type: "integer" } } })],
    ["any $schema", input({ $schema: "urn:whatever" })],
    ["a header on a nested property", property({ type: "object", properties: { q: { type: "integer", "x-mcp-header": "X-Q" } } })],
    ["a property called x-mcp-header", input({ properties: { "x-mcp-header": { type: "string" } } })],
  ])("may have %s", (_, value) => {
    expect(accepted(value).name).toBe("t");
  });
});

describe("a definition that cannot be listed", () => {
  it.each<[string, unknown, RegExp]>([
    ["no object", "[1]", /must be one MCP tool object, but is an array/],
    ["no JSON", '{"name":"t",}', /not valid JSON: a key in double quotes was expected, at character 13/],
    ["comments", '{"name":"t" /* x */}', /not valid JSON/],
    ["a byte order mark", "\ufeff{}", /not valid JSON/],
    ["no name", { inputSchema: { type: "object" } }, /\/name is missing/],
    ["a null name", tool({ name: null }), /\/name must be a string, but is null/],
    ["a long name", tool({ name: "n".repeat(129) }), /\/name is 129 characters long: a tool name has 1 to 128/],
    ["a space in its name", tool({ name: "a b" }), /\/name "a b" holds U\+0020 \(space\) at character 2/],
    ["dots as its name", tool({ name: ".." }), /nothing but dots/],
    ["no inputSchema", { name: "t" }, /\/inputSchema is missing/],
    ["a null inputSchema", tool({ inputSchema: null }), /\/inputSchema must be a JSON object, but is null/],
    ["a boolean inputSchema", tool({ inputSchema: true }), /\/inputSchema must be a JSON object, but is a boolean/],
    ["an array as inputSchema", tool({ inputSchema: [] }), /\/inputSchema must be a JSON object, but is an array/],
    ["no root type", tool({ inputSchema: {} }), /\/inputSchema\/type is missing, but MCP wants "object"/],
    ["another root type", tool({ inputSchema: { type: "string" } }), /\/inputSchema\/type is "string"/],
    ["an array of root types", tool({ inputSchema: { type: ["object"] } }), /\/inputSchema\/type is an array/],
    ["type int", property({ type: "int" }), /\/inputSchema\/properties\/p\/type is "int", which is no JSON Schema type/],
    ["type int in a list", property({ type: ["string", "int"] }), /\/properties\/p\/type\/1 is "int"/],
    ["a null type", property({ type: null }), /\/properties\/p\/type is null/],
    ["no types", property({ type: [] }), /\/properties\/p\/type is an empty array/],
    ["type int deep inside", input({ anyOf: [{ items: { not: { type: "int" } } }] }), /\/anyOf\/0\/items\/not\/type is "int"/],
    ["type int in its output", tool({ outputSchema: { $defs: { "a/b": { type: "int" } } } }), /\/outputSchema\/\$defs\/a~1b\/type/],
    ["a null output schema", tool({ outputSchema: null }), /\/outputSchema must be a JSON object, but is null/],
    ["a remote reference", property({ $ref: "http://x/y#/z" }), /\/p\/\$ref is "http:\/\/x\/y#\/z".*begin it with #/],
    ["a relative reference", property({ $ref: "other.json" }), /must stay inside the schema/],
    ["no schema as a property", property("string"), /\/properties\/p must be a schema .* is a string/],
    ["no object as properties", input({ properties: [] }), /\/properties must be an object of schemas, but is an array/],
    ["no array as anyOf", input({ anyOf: {} }), /\/anyOf must be an array of schemas/],
    ["a null title", tool({ title: null }), /\/title must be a string, but is null/],
    ["a numeric description", tool({ description: 1 }), /\/description must be a string, but is a number/],
    ["a list of annotations", tool({ annotations: [] }), /\/annotations must be an object, but is an array/],
    ["a header that is no token", property({ type: "string", "x-mcp-header": "a b" }), /x-mcp-header is "a b", but must be a header token/],
    ["a header on a number", property({ type: "number", "x-mcp-header": "X" }), /whose type is not one of string, integer, boolean/],
    ["a header behind items", property({ items: { type: "string", "x-mcp-header": "X" } }), /not reached along properties alone/],
    ["a header at the root", input({ "x-mcp-header": "X" }), /not reached along properties alone/],
  ])("has %s", (_, value, reason) => {
    expect(refused(value).join("\n")).toMatch(reason);
  });

  it("repeats a key at any level", () => {
    const text = '{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"a":{}},"x":[{"k":1,"k":2}]},"name":"u"}';
    expect(refused(text)).toEqual([
      expect.stringMatching(/^\/inputSchema\/properties\/a is given twice/),
      expect.stringMatching(/^\/inputSchema\/x\/0\/k is given twice/),
      expect.stringMatching(/^\/name is given twice/),
    ]);
  });

  it("repeats a header, whatever its case", () => {
    const properties = { a: { type: "string", "x-mcp-header": "X-A" }, b: { type: "string", "x-mcp-header": "x-a" } };
    expect(refused(input({ properties })).join()).toMatch(/repeats the header "x-a" of \/inputSchema\/properties\/a/);
  });

  it("names everything that is wrong at once, up to a bound", () => {
    expect(refused({ name: "a b", title: 1, inputSchema: { properties: { p: { type: "int" } } } })).toHaveLength(4);
    const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`p${i}`, { type: "int" }]));
    const many = refused(input({ properties }));
    expect(many).toHaveLength(21);
    expect(many.at(-1)).toMatch(/980 more/);
  });

  it.each([10_000, 200_000])("nests %d levels deep", (depth) => {
    const nested = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    const read = readDefinition(bytesOf(`{"name":"deep","inputSchema":${nested}}`));
    expect(read).toMatchObject({ ok: false, name: "deep" });
    expect(!read.ok && read.reasons.join()).toMatch(new RegExp(`nests ${depth + 1} levels deep, the limit is 64`));
  });

  it("may nest to the limit and not one level more", () => {
    const nested = (levels: number) => input({ x: JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown });
    accepted(nested(LIMITS.schemaDepth - 2));
    expect(refused(nested(LIMITS.schemaDepth - 1)).join()).toMatch(/nests 65 levels/);
  });

  it("is too large, and is still named", () => {
    const read = readDefinition(bytesOf(tool({ name: "large", description: "x".repeat(5 * 1024 * 1024) })));
    expect(read).toMatchObject({ ok: false, name: "large", reasons: [expect.stringMatching(/bytes, the limit is 1048576/)] });
  });

  it("is not UTF-8", () => {
    const bytes = Buffer.concat([bytesOf('{"name":"t","description":"'), Buffer.from([0xff]), bytesOf('"}')]);
    expect(readDefinition(bytes)).toMatchObject({ ok: false, name: "t", reasons: [expect.stringMatching(/not valid UTF-8/)] });
  });

  it("has a name that is shown harmlessly", () => {
    const read = readDefinition(bytesOf(tool({ name: `a\u0000\u202e${"b".repeat(500)}` })));
    expect(!read.ok && read.name).toMatch(/^a\\u\{0\}\\u\{202E\}b{125}…$/);
  });
});

const CORPUS = fileURLToPath(new URL("../../../../shared/corpus/mcp-servers/", import.meta.url));
const present = existsSync(CORPUS);
if (!present) console.warn("skipped: no corpus of harvested listings beside the repository (../shared/corpus/mcp-servers)");

describe.skipIf(!present)("every harvested tool", () => {
  it("can be listed, keeps its schema's bytes, and gets a clean label within the limits", () => {
    const faults: string[] = [];
    let count = 0;
    for (const file of readdirSync(CORPUS)) {
      for (const bytes of toolsOf(readFileSync(CORPUS + file, "utf8"))) {
        count++;
        const read = readDefinition(bytes);
        if (!read.ok) {
          faults.push(`${file} ${read.name}: ${read.reasons.join("; ")}`);
          continue;
        }
        const parsed = JSON.parse(Buffer.from(bytes).toString()) as { inputSchema: unknown };
        expect(JSON.parse(Buffer.from(inputSchemaOf(bytes)).toString())).toEqual(parsed.inputSchema);
        const label = deriveLabel(read.definition);
        expect(findHidden(label.title + label.briefDescription)).toBeUndefined();
        expect(textLength(label.briefDescription)).toBeLessThanOrEqual(LIMITS.briefLength);
        expect(label.briefDescription === "").toBe(read.definition.description.trim() === "");
      }
    }
    expect(faults).toEqual([]);
    expect(count).toBe(2_914);
  });
});

function toolsOf(listing: string): Uint8Array[] {
  const parsed = parseJson(listing, 100);
  const tools = parsed.ok && parsed.root.kind === "object" ? member(parsed.root, "tools") : undefined;
  if (tools?.kind !== "array") throw new Error("the listing has no tools");
  return tools.items.map((item) => Buffer.from(listing.slice(item.offset, item.end)));
}
