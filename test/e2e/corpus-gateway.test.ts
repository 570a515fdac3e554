/** Harvested listings of real servers behind the gateway, in both eras: every tool is found, described byte for byte, and called where it is. */
import { existsSync } from "node:fs";
import { generateSync } from "json-schema-faker";
import { describe, expect, it, vi } from "vitest";
import { exposedName } from "../../src/gateway/names.js";
import { type AnyClient, connectClient, testGateway, toolsetIn } from "../support/gateway.js";
import { type Harvest, harvestsIn, LARGE, SMALL } from "../support/harvests.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

const ERAS = ["legacy", "modern"] as const;
type Era = (typeof ERAS)[number];
/** What find_tools loads of a category, and describe_tools describes at once. */
const CATEGORY_TOOLS = 40;
const DESCRIBED = 20;

/** All servers run, and are registered. */
async function serveAll(harvests: readonly Harvest[], era: Era): Promise<{ api: RemoteRegistry; grpc: string }> {
  const registry = await startRegistry({ store: "memory" });
  const api = new RemoteRegistry(registry.grpc);
  const left = [...harvests];
  const lane = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const server = await startFixture("corpus-server.mjs", [next.file, "--era", era]);
      await api.call("register", { serverId: next.serverId, endpoint: server.url, standing: true, introspect: {} }, 30_000);
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  return { api, grpc: registry.grpc };
}

/** The categories of a server whose tools find_tools loads together. */
async function smallCategories(api: RemoteRegistry, serverId: string): Promise<string[]> {
  const { modules, toolCount } = await api.call("getModuleMap", { module: serverId, tokenBudget: 30_000 });
  if (toolCount <= CATEGORY_TOOLS) return [serverId];
  return modules.filter((m: { toolCount: number }) => m.toolCount <= CATEGORY_TOOLS).map((m: { name: string }) => m.name);
}

async function describeAll(client: AnyClient, toolset: string, toolIds: readonly string[], texts: ReadonlyMap<string, string>): Promise<void> {
  for (let at = 0; at < toolIds.length; at += DESCRIBED) {
    const some = toolIds.slice(at, at + DESCRIBED);
    const { text, isError } = await client.call("describe_tools", { toolset, tools: some });
    expect(isError).toBe(false);
    const wanted = some.map((id) => `${id}:\n${texts.get(id)}`).join("\n");
    // Compared as booleans first: a difference in a large text is slow to print.
    if (text !== wanted) expect(text).toBe(wanted);
  }
}

/** A tool that takes no arguments, or else the first one with such as its schema takes. */
function callable({ tools }: Harvest): { name: string; args: object } {
  const schemas = [...tools].map(([name, { inputSchema }]) => ({ name, schema: JSON.parse(inputSchema) as Record<string, any> }));
  const [free] = schemas.filter(({ schema }) => !schema.required?.length && !schema.anyOf && !schema.oneOf);
  if (free) return { name: free.name, args: {} };
  const [{ name, schema } = { name: "", schema: {} }] = schemas;
  return { name, args: generateSync(schema, { alwaysFakeOptionals: false, seed: 1 }) as object };
}

async function everythingStable(harvests: readonly Harvest[], era: Era): Promise<void> {
  const { api, grpc } = await serveAll(harvests, era);
  const gateway = await testGateway(grpc);
  const lists = new Set<string>();
  for (const harvest of harvests) {
    // An agent for each: the SDK's client keeps a listener for every request that it ever made.
    const client = await connectClient(era === "modern" ? "sdk v2, negotiating" : "sdk v1", `${gateway.url}?mode=stable`);
    lists.add(JSON.stringify(await client.listed()));
    await findAndDescribe(api, client, harvest);
    await callOne(client, harvest);
    lists.add(JSON.stringify(await client.listed()));
    await client.close();
  }
  expect(lists.size).toBe(1);
}

/** Every tool of a server: by its category, and where that is too large, by what it is called. */
async function findAndDescribe(api: RemoteRegistry, client: AnyClient, { serverId, tools }: Harvest): Promise<void> {
  const texts = new Map([...tools].map(([name, { text }]): [string, string] => [`${serverId}/${name}`, text]));
  const seen = new Set<string>();
  for (const category of await smallCategories(api, serverId)) {
    const { text } = await client.call("find_tools", { category });
    const ids = [...text.matchAll(/^- ([^\s:]+)/gm)].map(([, id]) => id as string);
    expect(ids.length, category).toBeGreaterThan(0);
    await describeAll(client, toolsetIn(text), ids, texts);
    for (const id of ids) seen.add(id);
  }
  for (const id of texts.keys()) {
    if (seen.has(id)) continue;
    const { text } = await client.call("find_tools", { intent: `I need ${id}`, limit: 1 });
    expect(text).toContain(`- ${id}`);
    await describeAll(client, toolsetIn(text), [id], texts);
    seen.add(id);
  }
  expect([...seen].sort()).toEqual([...texts.keys()].sort());
}

async function callOne(client: AnyClient, harvest: Harvest): Promise<void> {
  const { name, args } = callable(harvest);
  const id = `${harvest.serverId}/${name}`;
  const { text } = await client.call("find_tools", { intent: id, limit: 1 });
  const called = await client.call("call_tool", { toolset: toolsetIn(text), tool: id, arguments: args });
  expect(called.isError, called.text).toBe(false);
  expect(JSON.parse(called.text)).toEqual({ server: harvest.serverId, tool: name, arguments: args });
}

async function everythingDynamic(harvests: readonly Harvest[], era: Era): Promise<void> {
  const { api, grpc } = await serveAll(harvests, era);
  const gateway = await testGateway(grpc);
  const client = await connectClient("sdk v2, sessions", gateway.url);
  for (const harvest of harvests) {
    const [category] = await smallCategories(api, harvest.serverId);
    const changes = client.changes();
    const { isError } = await client.call("find_tools", { category });
    expect(isError).toBe(false);
    await expect.poll(client.changes, { timeout: 20_000 }).toBeGreaterThan(changes);
    const listed = await client.listed();
    const own = new Map([...harvest.tools.keys()].map((name) => [exposedName(`${harvest.serverId}/${name}`), name]));
    const [finder, ...loaded] = listed;
    expect(finder.name).toBe("find_tools");
    expect(loaded.length, harvest.serverId).toBeGreaterThan(0);
    for (const tool of loaded) {
      const name = own.get(tool.name);
      expect(name, `${tool.name} of ${harvest.serverId}`).toBeDefined();
      const sent = JSON.parse(harvest.tools.get(name as string)?.text ?? "");
      expect(tool.inputSchema, tool.name).toEqual(sent.inputSchema);
      expect(tool.description, tool.name).toEqual(sent.description);
    }
  }
}

describe.each(ERAS)("harvested listings behind the gateway, %s era", (era) => {
  it("of the repository: each tool is found, described byte for byte and called where it is", () => everythingStable(harvestsIn(SMALL), era));

  it("of the repository: a session's list holds the category that it chose", () => everythingDynamic(harvestsIn(SMALL), era));

  it("of all 34 servers: each tool is found, described byte for byte and called where it is", { timeout: 300_000 }, async ({ skip }) => {
    skip(!existsSync(LARGE), `there is no ${LARGE}: the whole corpus is not part of the repository`);
    const harvests = harvestsIn(LARGE);
    expect(harvests.flatMap((h) => [...h.tools])).toHaveLength(2_914);
    await everythingStable(harvests, era);
  });

  it("of all 34 servers: a session's list holds the category that it chose", { timeout: 300_000 }, async ({ skip }) => {
    skip(!existsSync(LARGE), `there is no ${LARGE}: the whole corpus is not part of the repository`);
    await everythingDynamic(harvestsIn(LARGE), era);
  });
});
