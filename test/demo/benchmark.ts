/** What a turn costs with all tools, with stubs, with the map and with the gate, and whether the needed tool is there. */
import type { Intent, Listing } from "./listings.js";
import { type Aim, type Outcome, percent, type Say, sayTable } from "./report.js";
import { median, quantile } from "./tokens.js";
import { allStubs, allTools, gateRecall, throughGateway, throughLibrary, throughStableGateway, type Turn, type Way } from "./ways.js";
import type { World } from "./world.js";

export interface Benchmark {
  readonly story: string;
  readonly title: string;
  readonly listings: readonly Listing[];
  readonly intents: readonly Intent[];
  /** What one way through map and gate is held to. */
  readonly aims: (measured: Measured) => readonly Aim[];
}

export interface Measured {
  readonly gate: Row;
  readonly all: Row;
  /** The gate's own R@5, 0 to 1. */
  readonly recall: number;
}

export interface Row {
  readonly way: string;
  readonly requests: number;
  /** Medians of tokens; `turn` is `resident` and `search` together. */
  readonly resident: number;
  readonly turn: number;
  readonly turnP90: number;
  readonly task: number;
  readonly taskP90: number;
  /** Means of all that a task costs in the end: where the needed tool was not there, the agent falls back on the stubs, and pays for both. */
  readonly paid: number;
  readonly paidRequests: number;
  /** Shares. */
  readonly reached: number;
  readonly byKind: Readonly<Record<string, number>>;
}

const GATE = "gateway, map + gate (5)";
const LIBRARY = "library, map + gate (5)";

export async function benchmark(world: World, { story, title, listings, intents, aims }: Benchmark, say: Say): Promise<Outcome> {
  const tools = listings.reduce((sum, listing) => sum + listing.tools.length, 0);
  const kinds = [...new Set(intents.map(({ kind }) => kind))];
  const counts = kinds.map((kind) => `${intents.filter((i) => i.kind === kind).length} ${kind}`).join(", ");
  say(`\n${title}: ${tools} tools of ${listings.length} servers, ${intents.length} intents (${counts})\n`);
  await world.offer(story, listings);
  const gateway = await world.gateway(story);
  const largest = Math.max(...listings.map((listing) => listing.tools.length));
  const stubs = await allStubs(world.registry, story, listings);
  const ways: Way[] = [
    allTools(listings),
    stubs,
    // A category of more tools is not loaded as a whole.
    ...(largest <= 40 ? [throughGateway("map, right category", gateway.url, ({ tools: [id = ""] }) => ({ category: id.split("/")[0] }))] : []),
    throughGateway(GATE, gateway.url, ({ text }) => ({ intent: text })),
    await throughStableGateway(gateway.url),
    await throughLibrary(LIBRARY, world.address, story),
  ];
  const rows: Row[] = [];
  try {
    const fallback = await turnsOf(stubs, intents);
    for (const way of ways) rows.push(measured(way.name, way === stubs ? fallback : await turnsOf(way, intents), intents, fallback));
  } finally {
    for (const way of ways) await way.close();
    await gateway.stop();
  }
  const recalls = await gateRecall(world.registry, story, intents);
  const recall = mean(recalls);
  sayTable(
    ["way", "requests", "in the list", "turn p50", "p90", "task p50", "p90", "misses paid", "requests", "needed tool there", ...kinds],
    rows.map((row) => [row.way, row.requests, row.resident, row.turn, row.turnP90, row.task, row.taskP90, row.paid, row.paidRequests.toFixed(1), percent(row.reached), ...kinds.map((kind) => percent(row.byKind[kind] ?? 0))]),
    say,
  );
  say(`  o200k tokens of name, description and parameters. A turn is the request from which the tool is called, with what finding it left in the conversation;`);
  say(`  a task is all requests of the model until its answer, those that only look for tools included.`);
  say(`  Misses paid: means; where the needed tool was not there, the agent then goes the way of the stubs, and both are counted. The gate's own R@5: ${percent(recall)}.`);
  const found = (name: string): Row => {
    const row = rows.find(({ way }) => way === name);
    if (!row) throw new Error(`no such way: ${name}`);
    return row;
  };
  const judged = [LIBRARY, GATE].flatMap((way) => aims({ gate: found(way), all: found("all tools"), recall }).map((aim) => ({ ...aim, what: `${way}: ${aim.what}` })));
  return { story, facts: { tools, servers: listings.length, intents: intents.length, recallAt5: recall, rows }, aims: judged };
}

async function turnsOf(way: Way, intents: readonly Intent[]): Promise<Turn[]> {
  const turns: Turn[] = [];
  for (const intent of intents) turns.push(await way.turn(intent));
  return turns;
}

function measured(way: string, turns: readonly Turn[], intents: readonly Intent[], fallback: readonly Turn[]): Row {
  const inTheEnd = (read: (turn: Turn) => number): number => mean(turns.map((turn, i) => read(turn) + (turn.reached < 1 && fallback[i] ? read(fallback[i]) : 0)));
  const of = (read: (turn: Turn) => number): number[] => turns.map(read);
  const whole = of((turn) => turn.resident + turn.search);
  const byKind = Object.fromEntries([...new Set(intents.map(({ kind }) => kind))].map((kind) => [kind, mean(turns.filter((_, i) => intents[i]?.kind === kind).map((turn) => turn.reached))]));
  return {
    way,
    requests: median(of((turn) => turn.requests)),
    resident: median(of((turn) => turn.resident)),
    turn: median(whole),
    turnP90: quantile(whole, 0.9),
    task: median(of((turn) => turn.task)),
    taskP90: quantile(of((turn) => turn.task), 0.9),
    paid: Math.round(inTheEnd((turn) => turn.task)),
    paidRequests: inTheEnd((turn) => turn.requests),
    reached: mean(of((turn) => turn.reached)),
    byKind,
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
