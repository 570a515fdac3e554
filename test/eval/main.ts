import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { FINDERS, type Finder, RANKED } from "./finder.js";
import { NONSENSE } from "./nonsense.js";
import { type Row, runSet, score } from "./run.js";
import { readSet, type RetrievalSet, SETS } from "./sets.js";

/** nDCG@5 to reach, cold and warm, in percent. */
const AIMS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  metatool: { cold: 55, warm: 72 },
  livemcpbench: { cold: 38 },
  "bfcl-live": { cold: 71, warm: 83 },
  "acebench-zh": { cold: 88 },
  "acebench-en": { cold: 89 },
  sealtools: { cold: 87 },
  toolbench: { cold: 68, warm: 75 },
};

export async function main(args: readonly string[], root: string): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      set: { type: "string", multiple: true },
      queries: { type: "string" },
      json: { type: "string" },
      corpus: { type: "string", default: join(root, "../shared/corpus/retrieval") },
      via: { type: "string", multiple: true, default: ["in-process"] },
    },
  });
  const unknown = values.via.filter((via) => !(via in FINDERS));
  if (unknown.length > 0) return refuse(`no such way: ${unknown.join(", ")}; there are ${Object.keys(FINDERS).join(", ")}`);
  if (values.queries !== undefined && values.set?.length !== 1) return refuse("--queries asks the tools of one set: name it with --set");
  const rows: Row[] = [];
  const baseline = await baselineOf(root);
  for (const name of values.set ?? SETS) {
    const set = readSet(resolve(values.corpus), name, values.queries);
    if ("missing" in set) {
      console.log(`${name}: skipped, ${set.missing}`);
      if (values.set) return 2;
      continue;
    }
    for (const via of values.via) rows.push(...(await evaluate(set, via, baseline, root)));
  }
  if (values.json) {
    mkdirSync(dirname(resolve(values.json)), { recursive: true });
    writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
  }
  return 0;
}

function refuse(why: string): number {
  console.error(why);
  return 2;
}

interface Baseline {
  find(text: string, limit: number): string[];
}
type BaselineOf = (documents: readonly { toolId: string; name: string; description: string }[]) => Baseline;

/** The plain BM25 that the bench compares with, too. */
async function baselineOf(root: string): Promise<BaselineOf> {
  const file = pathToFileURL(join(root, "bench/support/plain-bm25.mjs")).href;
  const { PlainBm25 } = (await import(file)) as { PlainBm25: new (...of: Parameters<BaselineOf>) => Baseline };
  return (documents) => new PlainBm25(documents);
}

async function evaluate(set: RetrievalSet, via: string, baselineFor: BaselineOf, root: string): Promise<Row[]> {
  const finder = await (FINDERS[via] as (of: RetrievalSet, at: string) => Promise<Finder>)(set, root);
  try {
    const plain = baselineFor(set.tools.map(({ id, name, description = "" }) => ({ toolId: id, name, description })));
    const baseline = await score(set, "plain-bm25", "in-process", set.queries, async ({ text, history = [] }) => {
      const began = performance.now();
      const ranked = plain.find([...history, text].join("\n"), RANKED);
      return { ranked, weak: false, tokens: 0, ms: performance.now() - began };
    });
    const rows = [...(await runSet(set, finder, via)), baseline];
    print(rows, await nonsenseWeak(finder));
    return rows;
  } finally {
    await finder.close();
  }
}

async function nonsenseWeak(finder: Finder): Promise<number> {
  let weak = 0;
  for (const text of NONSENSE) if ((await finder.find({ text })).weak) weak++;
  return (100 * weak) / NONSENSE.length;
}

const COLUMNS = ["ndcg@5", "r@1", "r@5", "r@10", "mrr", "allgold@10", "sibling_confusion", "weak", "p50_ms", "p99_ms", "tokens"] as const;

function print(rows: readonly Row[], nonsense: number): void {
  const [first] = rows;
  if (!first) return;
  console.log(`\n${first.set}, ${first.via}, ${first.queries} queries, ${first.sibling_pairs} sibling pairs; nonsense called weak: ${nonsense.toFixed(0)} %`);
  console.log(["", ...COLUMNS, "aim"].map((name, i) => (i === 0 ? name.padEnd(12) : name.padStart(11))).join(" "));
  for (const row of rows) {
    const aim = AIMS[row.set]?.[row.mode];
    const verdict = aim === undefined ? "" : `${aim} ${row["ndcg@5"] >= aim ? "met" : "MISSED"}`;
    const cells = [...COLUMNS.map((name) => String(row[name] ?? "-")), verdict];
    console.log([row.mode.padEnd(12), ...cells.map((cell) => cell.slice(0, 11).padStart(11))].join(" "));
  }
  const of = (mode: string) => rows.find((row) => row.mode === mode)?.["ndcg@5"];
  const [half, warm, worst] = [of("half"), of("warm"), of("replay-30")];
  if (half === undefined || warm === undefined || worst === undefined) return;
  const gain = warm - half;
  const kept = gain > 1 ? `; with 30 % wrong reports ${((100 * (worst - half)) / gain).toFixed(0)} % of it stay` : "";
  console.log(`memory moves nDCG@5 by ${gain.toFixed(2)}${kept}`);
}
