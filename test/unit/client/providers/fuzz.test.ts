import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rubbish, schemas } from "./random-schemas.js";
import { EXPORTS, tool } from "./tool-sets.js";
import { checkValues } from "./values.js";

const RUNS = Number(process.env["FUZZ_RUNS"] ?? 150);

/** For schemas that lead back to themselves the generator of values may not end, or fill the memory. */
function mayGoAround(schema: Record<string, unknown>): boolean {
  const inner = JSON.stringify([schema["$defs"], (schema["properties"] as Record<string, unknown> | undefined)?.["a"]]);
  return inner.includes('"$ref":"#') || JSON.stringify(schema).includes('"$ref":"#"');
}

describe.each(Object.entries(EXPORTS))("%s", (kind, exportTo) => {
  it("takes any schema that somebody could write, with its values there and back", () => {
    fc.assert(
      fc.property(schemas, fc.nat({ max: 1_000 }), (inputSchema, seed) => {
        const tools = [tool("s/t", inputSchema), tool("s/good", { type: "object", properties: { a: { type: "string" } } })];
        const exported = exportTo(tools);
        expect(exported.problems).toEqual([]);
        expect(exported.box.nameOf("s/good")).toBe("s__good");
        if (!mayGoAround(inputSchema)) checkValues(kind, tools, exported, [seed, seed + 1, seed + 2, seed + 3]);
      }),
      // Shrinking makes schemas on which the generator of values does not end.
      { numRuns: RUNS, endOnFailure: true },
    );
  });

  it("takes or refuses rubbish, and never spoils the set", () => {
    fc.assert(
      fc.property(fc.array(rubbish, { maxLength: 4 }), (list) => {
        const tools = [...list.map((schema, i) => tool(`s/t${i}`, { ...schema, type: "object" })), tool("s/good", { type: "object" })];
        const { box, problems } = exportTo(tools);
        expect(problems).toEqual([]);
        expect(box.report.tools).toHaveLength(tools.length);
        expect(box.nameOf("s/good")).toBe("s__good");
      }),
      { numRuns: RUNS },
    );
  });
});
