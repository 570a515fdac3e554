/** How long an agent takes from its start until it can choose a tool: all servers listed, or the registry asked. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Listing } from "./listings.js";
import { type Aim, type Outcome, type Say, sayTable } from "./report.js";
import { median } from "./tokens.js";
import type { World } from "./world.js";

const NAMESPACE = "cold-start";
const EAGER = ["eager, one after the other", "eager, all at once"] as const;
/** Starts a process for each server, so it is measured in fewer rounds. */
const STDIO = "eager, over stdio";
const STDIO_ROUNDS = 3;
const READY = "lazy, map + first find";
const LAZY = [READY, "lazy, with definitions", "lazy, follower live", "lazy, over the gateway"] as const;
const TIMES = 20;
const INTENT = "Show the whole nested layout of the project as JSON";

export async function coldStart(world: World, listings: readonly Listing[], rounds: number, say: Say): Promise<Outcome> {
  const tools = listings.reduce((sum, listing) => sum + listing.tools.length, 0);
  say(`\nCold start: an agent with ${listings.length} servers and ${tools.toLocaleString("en")} tools, ${rounds} rounds, ways taken in turns, each agent a new process\n`);
  const urls = await world.offer(NAMESPACE, listings);
  const gateway = await world.gateway(NAMESPACE);
  const config = {
    root: world.root,
    registry: world.address,
    namespace: NAMESPACE,
    gateway: gateway.url,
    urls: listings.map(({ id }) => urls.get(id)),
    files: listings.map(({ file }) => file),
    intent: INTENT,
  };
  const times = new Map<string, number[]>();
  const seen = new Map<string, number>();
  try {
    for (let round = 0; round < rounds; round++) {
      for (const way of [...EAGER, ...LAZY, ...(round < STDIO_ROUNDS ? [STDIO] : [])]) {
        const one = await start(world.root, way, config);
        times.set(way, [...(times.get(way) ?? []), one.ms]);
        seen.set(way, one.tools);
      }
    }
  } finally {
    await gateway.stop();
  }
  const ms = (way: string): number => median(times.get(way) ?? []);
  const ratio = (eager: string, lazy: string): number => ms(eager) / ms(lazy);
  const lines = [...times].map(([way, all]) => {
    const lazy = way.startsWith("lazy");
    const ratios = [...EAGER, STDIO].map((eager) => (lazy ? `${ratio(eager, way).toFixed(1)}x` : ""));
    return [way, Math.round(median(all)), `${Math.round(Math.min(...all))}–${Math.round(Math.max(...all))}`, seen.get(way) ?? 0, ...ratios];
  });
  sayTable(["way", "ms p50", "spread", "tools", "faster than 1 by 1", "than at once", "than stdio"], lines, say);
  say("  Counted from the first line after the imports to ready, servers and registry running, but over stdio, where the agent starts the servers as its children.");
  say("  Eager: initialize, initialized and tools/list of every server with the official client. Map + first find: connected, module map and FindTools");
  say("  answered; with definitions: those of the found tools loaded, too.");
  say("  Follower live: labels of all tools at hand and known to be current. Over the gateway: connect, list, find_tools, list.");
  const aims: Aim[] = [READY, "lazy, follower live"].flatMap((lazy) =>
    [...EAGER, STDIO].map((eager) => ({
      what: `${lazy}: ready ${TIMES}x faster than ${eager}`,
      found: `${ratio(eager, lazy).toFixed(1)}x (${ms(eager).toFixed(0)} ms against ${ms(lazy).toFixed(0)} ms)`,
      met: ratio(eager, lazy) >= TIMES,
    })),
  );
  return { story: "cold-start", facts: { servers: listings.length, tools, rounds, times: Object.fromEntries(times), seen: Object.fromEntries(seen) }, aims };
}

async function start(root: string, way: string, config: object): Promise<{ readonly ms: number; readonly tools: number }> {
  const { stdout } = await promisify(execFile)(process.execPath, [`${root}/test/demo/cold-agent.mjs`, way, JSON.stringify(config)]);
  return JSON.parse(stdout) as { ms: number; tools: number };
}
