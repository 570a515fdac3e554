/** The ways to give an agent its tools for one intent, each carried out for real and counted. */
import { connect } from "../../src/client/connect.js";
import type { RegistryConnection } from "../../src/client/connection.js";
import { type RankedTool, Reason_Kind } from "../../src/gen/toolcrib/v1/gate_service_pb.js";
import { exposedName } from "../../src/gateway/names.js";
import { ScriptedAgent } from "./agent.js";
import type { Intent, ListedTool, Listing } from "./listings.js";
import { tokensOf, toolTokens } from "./tokens.js";

/** What one intent cost in one way. */
export interface Turn {
  /** Tokens of what the prompt holds of tools in the request from which the tool is called. */
  readonly resident: number;
  /** Tokens of calls and answers that only served to find the tool; they stand in that request, too. */
  readonly search: number;
  /** Requests of the model until the task is answered, of which the last reads what the tool said. */
  readonly requests: number;
  /** Tool tokens of all of them. */
  readonly task: number;
  /** The share of needed tools that can be called. */
  readonly reached: number;
}

export interface Way {
  readonly name: string;
  turn(intent: Intent): Promise<Turn>;
  close(): Promise<void>;
}

const nothing = async (): Promise<void> => undefined;

/** Without any search: one request calls, the next answers. */
function direct(resident: number, reached: number): Turn {
  return { resident, search: 0, requests: 2, task: 2 * resident, reached };
}

/** One of its tools is enough, but for a benchmark's task, which needs all. */
export function reachedOf({ kind, tools }: Intent, has: (toolId: string) => boolean): number {
  const share = tools.filter(has).length / tools.length;
  return kind === "livemcpbench" ? share : Math.ceil(share);
}

export function allTools(listings: readonly Listing[]): Way {
  const resident = toolTokens(listings.flatMap(({ id, tools }) => tools.map((tool) => ({ ...tool, name: exposedName(`${id}/${tool.name}`) }))));
  return { name: "all tools", turn: async () => direct(resident, 1), close: nothing };
}

/** A line for every tool stays in the prompt; the definition of the one that is wanted is asked for. */
export async function allStubs(registry: RegistryConnection, namespace: string, listings: readonly Listing[]): Promise<Way> {
  const lines: string[] = [];
  let pageToken = "";
  do {
    const page = await registry.getStubs({ namespace, pageToken, pageSize: 1_000 });
    lines.push(...page.stubs.map(({ toolId, briefDescription }) => `${toolId}: ${briefDescription}`));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  const stubs = tokensOf(lines.join("\n"));
  const definitions = new Map(listings.flatMap(({ id, tools }) => tools.map((tool): [string, ListedTool] => [`${id}/${tool.name}`, tool])));
  return {
    name: "stubs + one definition",
    turn: async ({ tools: [wanted = ""] }) => {
      const definition = definitions.get(wanted);
      const search = tokensOf(JSON.stringify({ describe: wanted })) + (definition ? toolTokens([definition]) : 0);
      return { resident: stubs, search, requests: 3, task: stubs + 2 * (stubs + search), reached: 1 };
    },
    close: nothing,
  };
}

/** What find_tools is told, beside an intent that is always the task's. */
export type Ask = (intent: Intent) => Record<string, unknown>;

/** The gateway's dynamic mode; every intent in a session of its own. */
export function throughGateway(name: string, url: string, ask: Ask): Way {
  return {
    name,
    turn: async (intent) => {
      const agent = await ScriptedAgent.connect(url, "sessions");
      try {
        const before = await agent.list();
        const { tokens: search } = await agent.call("find_tools", ask(intent));
        const { tools, tokens: resident } = await agent.list();
        const names = new Set(tools.map((tool) => tool.name));
        const reached = reachedOf(intent, (id) => names.has(exposedName(id)));
        return { resident, search, requests: 3, task: before.tokens + 2 * (resident + search), reached };
      } finally {
        await agent.close();
      }
    },
    close: nothing,
  };
}

/** The gateway's stable mode: the needed tool is described when it is among the found ones, else the first. */
export async function throughStableGateway(url: string): Promise<Way> {
  const agent = await ScriptedAgent.connect(url, "2026-07-28");
  return {
    name: "gateway, stable (5)",
    turn: async (intent) => {
      const { tokens: list } = await agent.list();
      const found = await agent.call("find_tools", { intent: intent.text });
      const toolset = /^toolset: (\S+)$/m.exec(found.text)?.[1] ?? "";
      const ids = [...found.text.matchAll(/^- (\S+?)(?::|$| )/gm)].map(([, id = ""]) => id);
      const chosen = intent.tools.find((id) => ids.includes(id)) ?? ids[0];
      const described = chosen === undefined ? undefined : await agent.call("describe_tools", { toolset, tools: [chosen] });
      const search = found.tokens + (described?.tokens ?? 0);
      return { resident: list, search, requests: 4, task: list + (list + found.tokens) + 2 * (list + search), reached: reachedOf(intent, (id) => ids.includes(id)) };
    },
    close: () => agent.close(),
  };
}

/** As the gateway has it. */
const MAP_TOKENS = 200;

/** The library: the host asks the gate before the model is asked, so that no request is spent on it. */
export async function throughLibrary(name: string, address: string, namespace: string): Promise<Way> {
  const agent = connect({ targets: address, namespace, deadlineMs: 5_000 });
  await agent.follow();
  const map = tokensOf((await agent.moduleMap({ tokens: MAP_TOKENS })).text);
  return {
    name,
    turn: async (intent) => {
      const { inputs } = await agent.inject({ topK: 5 }).turn(intent.text);
      const ids = new Set(inputs.map(({ toolId }) => toolId));
      const tools = inputs.map(({ toolId, definition }) => ({ ...(definition as unknown as ListedTool), name: exposedName(toolId) }));
      return direct(map + toolTokens(tools), reachedOf(intent, (id) => ids.has(id)));
    },
    close: () => agent.close(),
  };
}

/** How often the gate alone has the needed tools among its first five. */
export async function gateRecall(registry: RegistryConnection, namespace: string, intents: readonly Intent[]): Promise<number[]> {
  const reached: number[] = [];
  for (const intent of intents) {
    const { tools } = await registry.findTools({ namespace, intent: intent.text, topK: 5 });
    const ids = tools.filter(isRanked).slice(0, 5).map(({ stub }) => stub?.toolId);
    reached.push(reachedOf(intent, (id) => ids.includes(id)));
  }
  return reached;
}

/** Appended ones stand beside others and have no rank of their own. */
function isRanked({ reasons }: RankedTool): boolean {
  return !reasons.every(({ kind }) => kind === Reason_Kind.COMPANION || kind === Reason_Kind.SIBLING);
}
