/** One session of somebody who runs: first results, then training. The list of tools holds what is at hand and nothing else. */
import { ScriptedAgent } from "./agent.js";
import type { Outcome, Say } from "./report.js";
import { until, type World } from "./world.js";

const NAMESPACE = "marathon";
const SERVERS = ["results", "training"] as const;
const TOOLS = 6;
const HEARD_MS = 10_000;

export async function marathon(world: World, say: Say): Promise<Outcome> {
  say("\nThe marathon: one session, results and then training\n");
  for (const server of SERVERS) await world.register(NAMESPACE, server, await world.serve(server, "running-server.mjs", [server]));
  await world.complete(NAMESPACE, TOOLS);
  const gateway = await world.gateway(NAMESPACE);
  const agent = await ScriptedAgent.connect(gateway.url, "sessions");
  const lists: string[][] = [];
  const calls: string[] = [];

  async function look(): Promise<void> {
    const { tools, tokens } = await agent.list();
    lists.push(tools.map(({ name }) => name));
    say(`  tools/list (${tokens} tokens): ${tools.map(({ name }) => name).join(", ")}`);
  }
  async function find(intent: string): Promise<void> {
    const heard = agent.changes;
    await agent.call("find_tools", { intent, limit: 3 });
    await until(() => agent.changes > heard, "list_changed is heard", HEARD_MS);
    say(`  find_tools "${intent}" → notifications/tools/list_changed`);
    await look();
  }
  async function call(name: string, args: Record<string, unknown>): Promise<void> {
    const { text, isError } = await agent.call(name, args);
    calls.push(`${isError ? "refused" : "answered"}: ${text}`);
    say(`  ${name}(${JSON.stringify(args)}) → ${isError ? "refused: " : ""}${text.replaceAll("\n", " · ")}`);
  }

  try {
    await look();
    await find("What is Mia's best result in a marathon race?");
    await call("results__personal_best", { runner: "Mia Sommer" });
    await find("Plan my training for this week: what pace for my goal?");
    await call("training__pace_for_goal", { goal_seconds: 11_700 });
    await call("training__plan_week", { weeks_to_race: 8, kilometres: 60 });
    await call("results__personal_best", { runner: "Mia Sommer" });
  } finally {
    await agent.close();
    await gateway.stop();
  }
  return { story: "marathon", facts: { lists, calls, listChanged: agent.changes }, aims: [] };
}
