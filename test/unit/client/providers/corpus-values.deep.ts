import { describe, expect, it } from "vitest";
import { corpusTools, EXPORTS, hasCorpus } from "./tool-sets.js";
import { checkValues } from "./values.js";

describe.skipIf(!hasCorpus).each(Object.entries(EXPORTS))("%s", (kind, exportTo) => {
  it("takes what any harvested tool takes, and gives it back", { timeout: 600_000 }, () => {
    const tools = corpusTools();
    const { tools: checked, there, back, narrowed, without } = checkValues(kind, tools, exportTo(tools), [20, 21, 22, 23, 24, 25, 26, 27]);
    process.stdout.write(`${kind}: ${there} values there and back, ${back} of the export; none for ${without.length}\n`);
    expect(checked).toBe(tools.length);
    expect(narrowed).toBe(0);
    expect(without.length).toBeLessThan(tools.length / 20);
  });
});
