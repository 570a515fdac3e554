import { describe, expect, it } from "vitest";
import { corpusTools, EXPORTS, fixtureTools, hasCorpus } from "./tool-sets.js";
import { checkValues } from "./values.js";

const print = (line: string) => process.stdout.write(`${line}\n`);

describe.each(Object.entries(EXPORTS))("%s", (kind, exportTo) => {
  it("takes the committed listings, and their values there and back", () => {
    const tools = fixtureTools();
    const exported = exportTo(tools);
    expect(exported.problems).toEqual([]);
    expect(exported.box.report.refused).toBe(0);
    const counts = checkValues(kind, tools, exported, [1, 2, 3, 7]);
    expect(counts.tools).toBe(tools.length);
    expect(counts.there).toBeGreaterThan(tools.length);
    expect(counts.narrowed).toBe(0);
  });

  it.skipIf(!hasCorpus)("takes every harvested tool, each name leads back and no two are alike", () => {
    const tools = corpusTools();
    const { box, problems, read } = exportTo(tools);
    expect(tools).toHaveLength(2_914);
    expect(problems).toEqual([]);
    const { exact, lossy, refused } = box.report;
    const strict = box.exported.filter((tool) => tool.strict).length;
    print(`${kind}: ${exact} exact, ${lossy} lossy, ${refused} refused, ${strict} strict, of ${tools.length}`);
    expect(exact + lossy + refused).toBe(2_914);
    expect(refused).toBe(0);
    const names = tools.map(({ toolId }) => box.nameOf(toolId) as string);
    expect(new Set(names).size).toBe(2_914);
    expect(names.map((name) => box.toolIdOf(name))).toEqual(tools.map(({ toolId }) => toolId));
    const answers = names.map((name) => read(name, {}));
    expect(answers.map((answer) => answer.ok && answer.call.toolId)).toEqual(tools.map(({ toolId }) => toolId));
  });

  it.skipIf(!hasCorpus)("takes what one in sixteen harvested tools takes", { timeout: 120_000 }, () => {
    const tools = corpusTools().filter((_, i) => i % 16 === 3);
    const counts = checkValues(kind, tools, exportTo(tools), [11, 14, 15]);
    print(`${kind}: ${counts.there} values there and back, ${counts.back} of the export; none for ${counts.without.length}`);
    expect(counts.tools).toBe(tools.length);
    expect(counts.narrowed).toBe(0);
    expect(counts.without.length).toBeLessThan(tools.length / 10);
  });
});
