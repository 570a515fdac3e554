/**
 * Harvested listings of real servers behind a gateway, all of them processes: an MCP client reaches every tool, is shown every
 * definition as its server sent it, and its calls arrive at the server that owns the tool.
 */
import { existsSync } from "node:fs";
import { generateSync } from "json-schema-faker";
import { findNodeAtLocation, type Node, parseTree } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { exposedName } from "../../src/gateway/names.js";
import { toolcrib } from "../support/cli.js";
import { type AnyClient, connectClient, toolsetIn } from "../support/gateway.js";
import { type Harvest, harvestsIn, LARGE, type Sent, SMALL } from "../support/harvests.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

/** Calls every tool, and loads every category with either client; without it a call and a category of each, with a client for each era. */
const DEEP = process.env["DEEP_TESTS"] === "1";
/** Server processes that start, and questions that are asked, at a time. */
const AT_ONCE = 6;
/** What describe_tools takes. */
const DESCRIBED = 20;
const STABLE = ["find_tools", "describe_tools", "call_tool"];
/** Of generated arguments. */
const SEED = 20_261;

type Era = "legacy" | "modern";

/** tool_id → what its server sends. */
type Corpus = ReadonlyMap<string, Sent>;

interface Behind {
  /** The gateway's MCP endpoint. */
  readonly url: string;
  readonly harvests: readonly Harvest[];
  readonly corpus: Corpus;
}

/** Registry, servers and gateway, each a process, until the test ends. */
async function behindGateway(harvests: readonly Harvest[], era: Era): Promise<Behind> {
  const registry = await startRegistry({ store: "memory" });
  const api = new RemoteRegistry(registry.grpc);
  await inLanes(harvests, async ({ serverId, file, tools }) => {
    const { url } = await startFixture("corpus-server.mjs", [file, "--era", era]);
    await api.call("register", { serverId, endpoint: url, standing: true, introspect: {} }, 30_000);
    const { server } = await api.call("getServer", { serverId });
    const protocolVersion = era === "modern" ? "2026-07-28" : "2025-11-25";
    expect(server, serverId).toMatchObject({ toolCount: tools.size, rejectedCount: 0, protocolVersion });
  });
  const gateway = toolcrib(["gateway", "--registry", registry.grpc, "--gateway-address", "127.0.0.1:0"]);
  const url = await eventually(() => /MCP (\S+),/.exec(gateway.stdout())?.[1] ?? "", (found) => found !== "");
  await eventually(async () => (await fetch(new URL("/readyz", url))).status, (status) => status === 200);
  const corpus = new Map(harvests.flatMap(({ serverId, tools }) => [...tools].map(([name, sent]) => [`${serverId}/${name}`, sent] as const)));
  return { url, harvests, corpus };
}

async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const lane = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

/** What find_tools answered to a category. */
type Shelf =
  | { readonly kind: "tools"; readonly text: string; readonly names: readonly string[] }
  /** Too much at once: what can be asked for instead, modules and single tools. */
  | { readonly kind: "map"; readonly modules: readonly string[]; readonly tools: readonly string[] };

async function ask(client: AnyClient, args: { readonly category?: string; readonly intent?: string; readonly limit?: number; readonly toolset?: string }): Promise<Shelf> {
  const { text, isError } = await client.call("find_tools", args);
  expect(isError, text).toBe(false);
  const lines = text.split("\n");
  const head = lines.findIndex((line) => / tools, too many at once\. /.test(line));
  if (head < 0) return { kind: "tools", text, names: lines.flatMap((line) => /^- ([^\s:]+)/.exec(line)?.[1] ?? []) };
  const [title, ...parts] = lines.slice(head + 1);
  expect(title).toMatch(/^\d+ tools of /);
  expect(parts.filter((line) => /^and \d+ /.test(line)), args.category).toEqual([]);
  const names = parts.map((line) => ({ name: line.split(/[ :]/, 1)[0] as string, module: /^\S+ \d/.test(line) }));
  return { kind: "map", modules: names.filter((n) => n.module).map((n) => n.name), tools: names.filter((n) => !n.module).map((n) => n.name) };
}

/** Drills down a category as an agent can, and hands on each toolset with what it holds. Single tools are asked for both ways. */
async function drill(client: AnyClient, category: string, take: (toolset: string, toolIds: readonly string[]) => Promise<void>): Promise<void> {
  const shelf = await ask(client, { category });
  if (shelf.kind === "tools") return take(toolsetIn(shelf.text), shelf.names);
  for (const module of shelf.modules) await drill(client, module, take);
  for (const toolIds of chunks(shelf.tools)) {
    let toolset = "";
    for (const [at, toolId] of toolIds.entries()) {
      const named = at % 2 === 0 ? { category: toolId } : { intent: `I need ${toolId}`, limit: 1 };
      const one = await ask(client, { ...named, ...(toolset !== "" && { toolset }) });
      expect(one.kind === "tools" ? one.names : one.kind).toContain(toolId);
      if (one.kind === "tools") toolset = toolsetIn(one.text);
    }
    await take(toolset, toolIds);
  }
}

function chunks<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / DESCRIBED) }, (_, at) => items.slice(at * DESCRIBED, (at + 1) * DESCRIBED));
}

/** Every tool by its server's category, its definition byte for byte, and calls. */
async function stable(client: AnyClient, { harvests, corpus }: Behind): Promise<void> {
  const before = await client.raw("tools/list");
  expect(await client.names()).toEqual(STABLE);
  const { text: map } = await client.call("find_tools");
  expect(harvests.filter(({ serverId }) => !map.includes(`\n${serverId} `)).map(({ serverId }) => serverId)).toEqual([]);
  const reached: string[] = [];
  await inLanes(harvests, ({ serverId }) =>
    drill(client, serverId, async (toolset, toolIds) => {
      reached.push(...toolIds);
      for (const tools of chunks(toolIds)) {
        const { text } = await client.call("describe_tools", { toolset, tools });
        const wanted = tools.map((id) => `${id}:\n${corpus.get(id)?.text}`).join("\n");
        // Compared as a boolean first: a difference in a large text is slow to print.
        if (text !== wanted) expect(text).toBe(wanted);
      }
      for (const toolId of DEEP ? toolIds : toolIds.slice(0, 1)) {
        await expectReached(client, toolset, toolId, corpus);
      }
    }),
  );
  expect(reached.sort()).toEqual([...corpus.keys()].sort());
  expect(await client.raw("tools/list")).toBe(before);
}

/** Each server's category loads a list that holds just its tools, and their names there lead back to them. */
async function dynamic(client: AnyClient, { harvests, corpus }: Behind): Promise<void> {
  expect(await client.names()).toEqual(["find_tools"]);
  /** name → tool_id. */
  const owners = new Map<string, string>();
  for (const { serverId } of harvests) {
    for (let left = [serverId], category = left.pop(); category !== undefined; category = left.pop()) {
      const before = client.changes();
      const shelf = await ask(client, { category });
      if (shelf.kind === "map") {
        left.push(...(DEEP ? shelf.modules : shelf.modules.slice(0, 1)), ...shelf.tools.slice(0, 1));
        continue;
      }
      await expect.poll(client.changes, { timeout: 10_000 }).toBeGreaterThan(before);
      const [own, ...listed] = toolsIn(await client.raw("tools/list"));
      expect([own?.name, ...listed.map(({ name }) => name)]).toEqual(["find_tools", ...shelf.names]);
      for (const { name, text } of listed) {
        const toolId = await ownerOf(client, name, text, corpus);
        expect(owners.get(name), name).toBeUndefined();
        owners.set(name, toolId);
        const wanted = withName(corpus.get(toolId)?.text ?? "", name);
        if (text !== wanted) expect(text, toolId).toBe(wanted);
      }
    }
  }
  expect(new Set(owners.values()).size).toBe(owners.size);
  expect(new Set([...owners.values()].map((id) => id.split("/")[0]))).toEqual(new Set(harvests.map((h) => h.serverId)));
}

/** The tool_id of a listed tool, as the server that it is called on says. */
async function ownerOf(client: AnyClient, name: string, definition: string, corpus: Corpus): Promise<string> {
  const args = argumentsFor(JSON.parse(definition).inputSchema);
  const answer = await client.call(name, args);
  expect(answer.isError, `${name}: ${answer.text}`).toBe(false);
  const { server, tool, arguments: got } = JSON.parse(answer.text);
  expect(got, name).toEqual(args);
  expect(corpus.has(`${server}/${tool}`), answer.text).toBe(true);
  return `${server}/${tool}`;
}

interface Listed {
  readonly name: string;
  readonly text: string;
}

/** Of the text of a result of tools/list. */
function toolsIn(result: string): Listed[] {
  const nodes = findNodeAtLocation(parseTree(result) as Node, ["tools"])?.children ?? [];
  return nodes.map((node) => ({ name: findNodeAtLocation(node, ["name"])?.value as string, text: result.slice(node.offset, node.offset + node.length) }));
}

/** The same bytes, but for the value of the name. */
function withName(text: string, name: string): string {
  const { offset, length } = findNodeAtLocation(parseTree(text) as Node, ["name"]) as Node;
  return `${text.slice(0, offset)}${JSON.stringify(name)}${text.slice(offset + length)}`;
}

/** Few arguments that fit; the gateway checks them. */
function argumentsFor(schema: Record<string, unknown>): Record<string, unknown> {
  const made = generateSync(schema as Parameters<typeof generateSync>[0], { seed: SEED, optionalsProbability: 0, fillProperties: false, maxItems: 2, refDepthMax: 3 });
  return JSON.parse(JSON.stringify(made));
}

/** A session that wants the stable mode has the same three tools, and finds and calls as well. */
async function stableSession(client: AnyClient, { harvests, corpus }: Behind): Promise<void> {
  const before = await client.raw("tools/list");
  expect(toolsIn(before).map(({ name }) => name)).toEqual(STABLE);
  for (const { serverId, tools } of harvests) {
    const [name = ""] = tools.keys();
    const { text } = await client.call("find_tools", { category: `${serverId}/${name}` });
    await expectReached(client, toolsetIn(text), `${serverId}/${name}`, corpus);
  }
  expect(await client.raw("tools/list")).toBe(before);
}

async function expectReached(client: AnyClient, toolset: string, toolId: string, corpus: Corpus): Promise<void> {
  const args = argumentsFor(JSON.parse(corpus.get(toolId)?.inputSchema ?? "{}"));
  const { text, isError } = await client.call("call_tool", { toolset, tool: toolId, arguments: args });
  expect(isError, `${toolId}: ${text}`).toBe(false);
  const [server, tool] = toolId.split("/");
  expect(JSON.parse(text)).toEqual({ server, tool, arguments: args });
}

async function throughGateway(harvests: readonly Harvest[], era: Era): Promise<void> {
  const behind = await behindGateway(harvests, era);
  const names = [...behind.corpus.keys()].map(exposedName);
  expect(new Set(names).size).toBe(names.length);
  expect(names.filter((name) => !/^[A-Za-z0-9_-]{1,64}$/.test(name))).toEqual([]);
  await stable(await connectClient("sdk v2, negotiating", behind.url), behind);
  await stableSession(await connectClient("sdk v1", `${behind.url}?mode=stable`), behind);
  if (DEEP || era === "legacy") await dynamic(await connectClient("sdk v1", behind.url), behind);
  if (DEEP || era === "modern") await dynamic(await connectClient("sdk v2, sessions", behind.url), behind);
}

describe.each<Era>(["legacy", "modern"])("a gateway before harvested listings, %s era", (era) => {
  it("of the repository", { timeout: 60_000 }, async () => {
    await throughGateway(harvestsIn(SMALL), era);
  });

  it("of all 34 servers", { timeout: 600_000 }, async ({ skip }) => {
    skip(!existsSync(LARGE), `there is no ${LARGE}: the whole corpus is not part of the repository`);
    const harvests = harvestsIn(LARGE);
    expect(harvests).toHaveLength(34);
    expect(harvests.flatMap((h) => [...h.tools])).toHaveLength(2_914);
    await throughGateway(harvests, era);
  });
});
