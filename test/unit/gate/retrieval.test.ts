/** Samples of public retrieval sets (test/fixtures/retrieval): scores may not sink below these floors. */
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { candidatesFor } from "../../../src/gate/candidates.js";
import type { ToolDocument } from "../../../src/gate/document.js";
import { intentOf } from "../../../src/gate/intent.js";
import { indexOf } from "../../../src/gate/live-index.js";
import { IntentMemory } from "../../../src/gate/memory.js";
import { inProcess } from "../../eval/finder.js";
import { mean, scoresOf } from "../../eval/metrics.js";
import { NONSENSE } from "../../eval/nonsense.js";
import { halves, runSet } from "../../eval/run.js";
import { documentsOf, readSet, type RetrievalSet } from "../../eval/sets.js";

const FOLDER = fileURLToPath(new URL("../../fixtures/retrieval", import.meta.url));
const PACE = { monotonic: () => performance.now(), pause: () => new Promise<void>((resolve) => setImmediate(resolve)) };
/** nDCG@5 in percent, some points under what was measured. */
const FLOORS: Readonly<Record<string, number>> = { metatool: 51, "bfcl-live": 85, "acebench-zh": 93, toolbench: 83 };
const SETS = Object.keys(FLOORS);

function read(name: string): RetrievalSet {
  const set = readSet(FOLDER, name);
  if ("missing" in set) throw new Error(set.missing);
  return set;
}

describe.each(SETS)("%s", (name) => {
  const set = read(name);

  test("finds what it found, and reports do no harm", async () => {
    const finder = await inProcess(set);
    const rows = await runSet(set, finder, "in-process", ["cold", "half", "warm"]);
    const [cold, half, warm] = rows.map((row) => row["ndcg@5"]) as [number, number, number];
    expect(cold).toBeGreaterThanOrEqual(FLOORS[name] as number);
    expect(warm).toBeGreaterThanOrEqual(half - 0.5);
  });

  test("hardly a nonsense text fits, and most intents do", async () => {
    const index = await indexOf(documentsOf(set), PACE);
    const weak = (text: string, history?: readonly string[]) =>
      candidatesFor(index, { intent: intentOf({ text, ...(history ? { history } : {}) }), nowMs: 0 }).weak;
    const share = (all: readonly boolean[]) => all.filter(Boolean).length / all.length;
    expect(share(NONSENSE.map((text) => weak(text)))).toBeGreaterThanOrEqual(0.85);
    expect(share(set.queries.map((query) => weak(query.text, query.history)))).toBeLessThanOrEqual(0.3);
  });
});

test("one percent of unrelated tools more leaves 99 of 100 top fives as they were", async () => {
  let same = 0;
  let all = 0;
  for (const set of SETS.map(read)) {
    const documents = documentsOf(set);
    const before = await indexOf(documents, PACE);
    const after = await indexOf([...documents, ...unrelated(Math.ceil(documents.length / 100))], PACE);
    const top = (index: typeof before, query: (typeof set.queries)[number]) =>
      index.search(intentOf(query), { limit: 5 }).hits.map((hit) => hit.tool.toolId).join(" ");
    same += set.queries.filter((query) => top(before, query) === top(after, query)).length;
    all += set.queries.length;
  }
  expect(same / all).toBeGreaterThanOrEqual(0.99);
});

test("tools that were never used keep their scores and their order", async () => {
  const set = read("metatool");
  const index = await indexOf(documentsOf(set), PACE);
  const { past, scored } = halves(set.queries);
  const memory = new IntentMemory("key");
  const usedTools = new Set<string>();
  for (const query of past.slice(0, 20)) {
    for (const toolId of query.relevant) {
      usedTools.add(toolId);
      memory.record({ toolId, caller: "", intent: intentOf(query), success: true, atMs: 0 });
    }
  }
  for (const query of scored) {
    const unused = (remembering?: IntentMemory) =>
      candidatesFor(index, { intent: intentOf(query), nowMs: 0, pool: 1_000, ...(remembering ? { memory: remembering } : {}) })
        .ranked.filter(({ tool }) => !usedTools.has(tool.toolId))
        .map(({ tool, score, absolute }) => ({ id: tool.toolId, score, absolute }));
    expect(unused(memory)).toEqual(unused());
  }
});

test("wrong reports of three in ten cost a part of what memory gives", async () => {
  const set = read("bfcl-live");
  const finder = await inProcess(set);
  const rows = await runSet(set, finder, "in-process", ["half", "replay-30"]);
  expect(rows[1]?.["ndcg@5"]).toBeGreaterThanOrEqual((rows[0]?.["ndcg@5"] as number) - 0.5);
});

test("scores of a known ranking", () => {
  expect(scoresOf(["x", "a", "y", "b"], ["a", "b"])).toMatchObject({ "r@1": 0, "r@5": 1, mrr: 0.5, "allgold@10": 1 });
  expect(mean([scoresOf(["a"], ["a"]), scoresOf(["b"], ["a"])])["ndcg@5"]).toBe(0.5);
});

/** Tools about what no set speaks of. */
function unrelated(count: number): ToolDocument[] {
  return Array.from({ length: count }, (_, i) => ({
    toolId: `zz-foundry/anneal_crucible_${i}`,
    serverId: "zz-foundry",
    name: `anneal_crucible_${i}`,
    title: "",
    description: "Anneals a crucible of molten bronze before the mould is poured.",
    useWhen: "",
    keywords: [],
    tags: [],
    service: "zz-foundry",
    parameters: [],
  }));
}
