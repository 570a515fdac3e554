import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compactOf } from "../../../src/domain/compact.js";

const compact = (tool: unknown) => JSON.parse(Buffer.from(compactOf(Buffer.from(JSON.stringify(tool)))).toString());
const CORPUS = new URL("../../../../shared/corpus/mcp-servers/", import.meta.url);

describe("the compact form of a definition", () => {
  it("keeps the required properties with types and first sentences, and names the others", () => {
    const tool = {
      name: "pay",
      description: "Pays an invoice. It takes the money from the default account unless told otherwise.",
      inputSchema: {
        type: "object",
        properties: {
          id: { type: "string", description: "Which invoice. See list_invoices.", minLength: 3 },
          mode: { enum: ["now", "later"] },
          note: { type: "string" },
        },
        required: ["id", "mode"],
        additionalProperties: false,
      },
      outputSchema: { type: "object" },
    };
    expect(compact(tool)).toEqual({
      name: "pay",
      description: "Pays an invoice.",
      inputSchema: {
        type: "object",
        required: ["id", "mode"],
        properties: { id: { description: "Which invoice.", type: "string" }, mode: { enum: ["now", "later"] } },
        "x-optional": ["note"],
      },
    });
  });

  it("puts local references in place, and stops at circles and at dead ends", () => {
    const tool = {
      name: "t",
      inputSchema: {
        type: "object",
        properties: {
          a: { $ref: "#/$defs/a~1b", description: "Its own words" },
          loop: { $ref: "#/$defs/loop" },
          tree: { $ref: "#/$defs/tree" },
          none: { $ref: "#/$defs/none" },
        },
        required: ["a", "loop", "tree", "none"],
        $defs: {
          "a/b": { type: "integer", description: "Words of the definition" },
          loop: { $ref: "#/$defs/loop" },
          tree: { type: "object", properties: { child: { $ref: "#/$defs/tree" } }, required: ["child"] },
        },
      },
    };
    const { properties } = compact(tool).inputSchema;
    expect(properties.a).toEqual({ description: "Its own words", type: "integer" });
    expect(properties.loop).toEqual({});
    expect(properties.none).toEqual({});
    expect(properties.tree.properties.child.properties.child.type).toBe("object");
    expect(properties.tree.properties.child.properties.child.properties).toBeUndefined();
  });

  it("says of the deepest lists what they hold, and no more", () => {
    const list = (items: unknown) => ({ type: "array", items });
    const properties = {
      texts: list({ type: "string", description: "Each of them", minLength: 1 }),
      modes: list({ $ref: "#/$defs/mode" }),
      long: list({ type: "string", enum: [..."a".repeat(500)] }),
      lists: list(list({ type: "string" })),
    };
    const entity = { type: "object", properties, required: Object.keys(properties) };
    const inputSchema = {
      type: "object",
      properties: { entities: list(entity) },
      required: ["entities"],
      $defs: { mode: { enum: ["now", "later"] } },
    };
    expect(compact({ name: "t", inputSchema }).inputSchema.properties.entities.items.properties).toEqual({
      texts: { type: "array", items: { type: "string" } },
      modes: { type: "array", items: { enum: ["now", "later"] } },
      long: { type: "array", items: { type: "string" } },
      lists: { type: "array", items: { type: "array" } },
    });
  });

  it("keeps large numbers as they were written", () => {
    const text =
      '{"name":"t","inputSchema":{"type":"object","properties":{"n":{"enum":[9007199254740993]}},"required":["n"]}}';
    expect(Buffer.from(compactOf(Buffer.from(text))).toString()).toContain("9007199254740993");
  });

  it.skipIf(!existsSync(CORPUS))(
    "halves the harvested definitions at least, and each stays JSON (skipped without ../shared/corpus)",
    () => {
      let whole = 0;
      let small = 0;
      for (const file of readdirSync(CORPUS)) {
        for (const tool of JSON.parse(readFileSync(new URL(file, CORPUS), "utf8")).tools) {
          const bytes = Buffer.from(JSON.stringify(tool));
          const cut = compactOf(bytes);
          expect(JSON.parse(Buffer.from(cut).toString()).name).toBe(tool.name);
          whole += bytes.byteLength;
          small += cut.byteLength;
        }
      }
      expect(small).toBeLessThan(whole / 2);
    },
  );
});
