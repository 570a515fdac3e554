/** What the servers of the demo offer, and what is asked of them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** A tool as its server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: object;
}

/** One answer of `tools/list` of a real server. */
export interface Listing {
  /** Also the server_id. */
  readonly id: string;
  readonly file: string;
  readonly tools: readonly ListedTool[];
}

export interface Listings {
  readonly all: readonly Listing[];
  /** Set where it is not the whole corpus: why. */
  readonly reduced: string;
}

/** The six servers with 120 tools. */
export const SIX = ["git", "time", "official-filesystem", "playwright", "notion", "kubernetes"] as const;
export const LARK = "lark-zh";

/** The corpus in a folder; where that is absent, what is in the repository. */
export function readListings(root: string, corpus: string): Listings {
  if (existsSync(corpus)) return { all: readFolder(corpus), reduced: "" };
  const all = ["test/fixtures/corpus", "test/fixtures/demo"].flatMap((folder) => readFolder(join(root, folder)));
  const tools = all.reduce((sum, listing) => sum + listing.tools.length, 0);
  return { all, reduced: `${corpus} is not there, so this is a reduced run: ${all.length} listings with ${tools} tools, from test/fixtures` };
}

function readFolder(folder: string): Listing[] {
  const files = readdirSync(folder).filter((name) => name.endsWith(".json") && name !== "intents.json");
  return files.sort().map((name) => {
    const file = join(folder, name);
    const { tools } = JSON.parse(readFileSync(file, "utf8")) as { tools: ListedTool[] };
    // The whole Lark listing says in its name how many tools it has; the part of it in the repository has fewer.
    return { id: basename(name, ".json").replace("lark-zh-1272", LARK), file, tools };
  });
}

export interface Intent {
  readonly kind: "plain" | "paraphrase" | "zh" | "livemcpbench";
  readonly text: string;
  /** tool_ids that do it; one is enough. */
  readonly tools: readonly string[];
}

/** Those whose tools some listing has. */
export function readIntents(root: string, listings: readonly Listing[]): Intent[] {
  const known = toolIdsOf(listings);
  const all = JSON.parse(readFileSync(join(root, "test/fixtures/demo/intents.json"), "utf8")) as Intent[];
  return all.map((intent) => ({ ...intent, tools: intent.tools.filter((id) => known.has(id)) })).filter(({ tools }) => tools.length > 0);
}

export function toolIdsOf(listings: readonly Listing[]): Set<string> {
  return new Set(listings.flatMap(({ id, tools }) => tools.map(({ name }) => `${id}/${name}`)));
}

/** Servers that the benchmark's tasks name otherwise. */
const BENCH_SERVERS: Readonly<Record<string, string>> = { filesystem: "official-filesystem", "mcp-server-chart": "antv-chart" };

/** Tasks of LiveMCPBench of which some step is done by a tool that is here; empty where the set is absent. */
export function benchIntents(retrieval: string, listings: readonly Listing[]): Intent[] {
  const file = join(retrieval, "livemcpbench/queries.dev.jsonl");
  if (!existsSync(file)) return [];
  const known = toolIdsOf(listings);
  const tasks = readFileSync(file, "utf8").split("\n").filter((line) => line !== "");
  return tasks.flatMap((line): Intent[] => {
    const { text, relevant } = JSON.parse(line) as { text: string; relevant: string[] };
    const tools = relevant.map((id) => id.replace(/^[^/]+/, (server) => BENCH_SERVERS[server] ?? server)).filter((id) => known.has(id));
    return tools.length === 0 ? [] : [{ kind: "livemcpbench", text, tools }];
  });
}
