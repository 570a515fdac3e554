/** An agent against whole registries and real MCP servers: it finds, injects, calls and reports, and goes on when something is lost. */
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import {
  type Agent,
  type AgentOptions,
  connect,
  folderStore,
  type LoaderTrouble,
  redisStore,
  RegistryError,
  type Turn,
} from "../../src/client/index.js";
import { AnthropicTools, OpenAiChatTools } from "../../src/client/providers/index.js";
import { startPair } from "../support/pair.js";
import { freePort } from "../support/ports.js";
import { startWire } from "../support/proxy.js";
import { declared, type RegistryProcess, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";

vi.setConfig({ testTimeout: 60_000 });

const HOUR = { leaseTtl: { seconds: 3600 } };
const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object", properties: { text: { type: "string" } } } });

function agentOf(registry: Pick<RegistryProcess, "grpc">, options: AgentOptions = {}): Agent {
  // A machine that is busy with other tests is no slow server: what is late is said where that is the matter.
  const agent = connect({ targets: registry.grpc, deadlineMs: 10_000, ...options });
  onTestFinished(() => agent.close());
  return agent;
}

/** The registry lists the server itself, and keeps it for the test. */
async function introspected(registry: RegistryProcess, serverId: string, url: string, more: object = {}): Promise<RemoteRegistry> {
  const remote = new RemoteRegistry(registry.grpc);
  await remote.call("register", { serverId, endpoint: url, standing: true, introspect: {}, ...more });
  await expect.poll(() => remote.toolIds({ filter: { serverIds: [serverId] } }), { timeout: 15_000 }).not.toEqual([]);
  return remote;
}

const keys = (turn: Turn): string[] => turn.tools.map((t) => t.key);

describe.each(["v1", "v2"] as const)("an agent and a server on the SDK %s", (sdk) => {
  it("finds, injects, calls and reports; hears of a change before the next use; the tool leaves when it is gone", async () => {
    const registry = await startRegistry();
    const server = await startFixture("sdk-server.mjs", ["--sdk", sdk]);
    await introspected(registry, "people", server.url);
    const agent = agentOf(registry);
    expect((await agent.follow()).kind).toBe("live");
    expect(agent.follower.stubs().map((s) => s.toolId)).toEqual(["people/add", "people/echo", "people/greet"]);

    const chat = agent.inject();
    const first = await chat.turn("greet somebody");
    expect(keys(first)).toEqual(["people/greet"]);
    expect(first.tools[0]?.definition).toMatchObject({ name: "greet", description: "Greets somebody by name." });
    const outcome = await chat.call("people/greet", { text: "Ada" });
    expect(outcome).toMatchObject({ kind: "answered", success: true, result: { content: [{ type: "text", text: "Ada" }] } });
    expect((await server.requests()).filter((r) => r.method === "tools/call").map((r) => r.params?.["name"])).toEqual(["greet"]);
    expect(await chat.report(outcome)).toEqual({ remembered: expect.any(Boolean) });

    const old = first.tools[0]?.digest;
    await server.control({ op: "change", name: "greet", description: "Greets somebody by name, loudly." });
    await expect.poll(() => agent.follower.stub("people/greet")?.digest, { timeout: 20_000 }).not.toBe(old);
    const second = await chat.turn("greet somebody");
    expect(second.tools[0]?.definition["description"]).toBe("Greets somebody by name, loudly.");
    expect(second.remove.map((r) => [r.tool.digest, r.why])).toEqual([[old, "changed"]]);

    await server.control({ op: "remove", name: "greet" });
    await expect.poll(() => agent.follower.stub("people/greet"), { timeout: 30_000 }).toBe(undefined);
    expect(keys(await chat.turn("greet somebody"))).not.toContain("people/greet");
    expect(await chat.call("people/greet")).toMatchObject({ kind: "refused", registered: false });
  });
});

describe("calling", () => {
  it("tells what went wrong by its kind: arguments, a tool that fails, a server that is gone, one without endpoint, no such tool", async () => {
    const registry = await startRegistry();
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    const remote = await introspected(registry, "people", server.url);
    await remote.call("register", declared("inline", [tool("only_found", "Cannot be called")], HOUR));
    const agent = agentOf(registry);
    const kindOf = async (toolId: string, args: Record<string, unknown> = {}) => {
      const outcome = await agent.call(toolId, args);
      return outcome.errorKind;
    };
    expect(await kindOf("people/echo", { text: "hello" })).toBe(undefined);
    expect(["INVALID_ARGUMENTS", "TOOL_ERROR"]).toContain(await kindOf("people/echo", { text: 1 }));
    expect(["INVALID_ARGUMENTS", "TOOL_ERROR"]).toContain(await kindOf("people/nothing"));
    expect(await agent.call("inline/only_found")).toMatchObject({ kind: "failed", errorKind: "UNREACHABLE", error: { message: expect.stringContaining("has no endpoint") } });
    expect(await agent.call("nobody/tool")).toMatchObject({ kind: "failed", errorKind: "UNREACHABLE", error: { message: "server nobody is not registered (any more)" } });
    expect(await agent.call("no-tool-id")).toMatchObject({ kind: "failed", errorKind: "INVALID_ARGUMENTS" });
    await server.stop();
    expect(await agent.call("people/echo", { text: "hello" })).toMatchObject({ kind: "failed", errorKind: "UNREACHABLE", success: false });
    const cancelled = new AbortController();
    cancelled.abort();
    expect(await agent.call("people/echo", {}, { signal: cancelled.signal })).toMatchObject({ kind: "failed" });
  });

  it("a server that started again elsewhere is called there, and one that forgot its sessions gets a new one", async () => {
    const registry = await startRegistry();
    const first = await startFixture("sdk-server.mjs", ["--sdk", "v1"]);
    const remote = await introspected(registry, "people", first.url);
    const agent = agentOf(registry);
    expect(await agent.call("people/echo", { text: "1" })).toMatchObject({ success: true });
    // The same address, another process: the session is not known there.
    await first.stop();
    const again = await startFixture("sdk-server.mjs", ["--sdk", "v1", "--port", new URL(first.url).port]);
    expect(await agent.call("people/echo", { text: "2" })).toMatchObject({ success: true });
    await again.stop();
    const elsewhere = await startFixture("sdk-server.mjs", ["--sdk", "v1"]);
    await remote.call("register", { serverId: "people", endpoint: elsewhere.url, standing: true, introspect: {} });
    expect(await agent.call("people/echo", { text: "3" })).toMatchObject({ success: true });
  });

  it("without the SDK needs a dialer, and says so; with one it is used", async () => {
    const registry = await startRegistry();
    const server = await startFixture("corpus-server.mjs", [corpusFile("memory")]);
    await introspected(registry, "memory", server.url);
    const dialled: string[] = [];
    const agent = agentOf(registry, {
      mcp: async ({ url, serverId, transport }) => {
        dialled.push(`${serverId} ${transport} ${url}`);
        return { callTool: async ({ name }) => ({ content: [], structuredContent: { name } }), close: async () => undefined };
      },
    });
    const outcomes = [await agent.call("memory/read_graph"), await agent.call("memory/open_nodes")];
    expect(outcomes.map((o) => o.kind === "answered" && o.result.structuredContent)).toEqual([{ name: "read_graph" }, { name: "open_nodes" }]);
    expect(dialled).toEqual([`memory streamable-http ${server.url}`]);
  });
});

describe("the loader", () => {
  it("leaves out what is late, names it, offers its substitute, and has it for a later turn", async () => {
    const registry = await startRegistry();
    const remote = new RemoteRegistry(registry.grpc);
    const slow = await startFixture("faulty-server.mjs", ["--fault", "silent"]);
    const stubs = [{ stub: { name: "count_words", briefDescription: "Counts the words of a text", substitutes: ["words/count_words_too"] } }];
    await remote.call("register", { serverId: "slow", instanceId: "slow-0001", endpoint: slow.url, ...HOUR, declared: { tools: stubs }, probe: { off: true } });
    await remote.call("register", declared("words", [tool("count_words_too", "Something else by name")], { ...HOUR, instanceId: "words-0001" }));
    const agent = agentOf(registry, { deadlineMs: 500 });
    await agent.follow();
    const chat = agent.inject({ topK: 1 });
    const turn = await chat.turn("count the words of a text");
    expect(turn.missing).toMatchObject([{ toolId: "slow/count_words", instead: { toolId: "words/count_words_too" } }]);
    expect(["late", "failed"]).toContain(turn.missing[0]?.why);
    expect(keys(turn)).toEqual(["words/count_words_too"]);
  });

  it("goes on with what it knows while the registry is away, marked stale, and is right again afterwards", async () => {
    const folder = await temporaryFolder();
    const port = await freePort();
    const registry = await startRegistry({ dataDir: folder, port });
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    await introspected(registry, "people", server.url);
    const agent = agentOf(registry);
    await agent.follow();
    const chat = agent.inject();
    await chat.turn("greet somebody");
    await chat.call("people/greet", { text: "1" });
    await registry.kill();
    await expect.poll(() => agent.follower.state.kind).toBe("stale");

    const away = await chat.turn("greet somebody else");
    expect(keys(away)).toEqual(["people/greet"]);
    expect(away.stale).toEqual(["people/greet"]);
    expect(away.search).toMatchObject({ kind: "away", error: { code: "UNAVAILABLE" } });
    // Its server is not away.
    expect(await chat.call("people/greet", { text: "2" })).toMatchObject({ kind: "answered", success: true });
    await expect(agent.find("anything")).rejects.toBeInstanceOf(RegistryError);

    await startRegistry({ dataDir: folder, port });
    await expect.poll(() => agent.follower.state.kind, { timeout: 20_000 }).toBe("live");
    const back = await chat.turn("greet somebody");
    expect([back.search.kind, back.stale, keys(back)]).toEqual(["found", [], ["people/greet"]]);
  });

  it("an agent that starts anew has its definitions from its folder, byte for byte", async () => {
    const registry = await startRegistry();
    const server = await startFixture("corpus-server.mjs", [corpusFile("git")]);
    await introspected(registry, "git", server.url);
    const folder = await temporaryFolder();
    const ids = (await new RemoteRegistry(registry.grpc).toolIds()).slice(0, 120);
    const before = agentOf(registry, { store: folderStore({ folder }) });
    await before.follow();
    const first = await before.load(ids, { deadlineMs: 10_000 });
    expect(first.missing).toEqual([]);
    await before.close();
    const after = agentOf(registry, { store: folderStore({ folder }) });
    await after.follow();
    const second = await after.load(ids, { deadlineMs: 10_000 });
    expect(new Set(second.tools.map((t) => t.from))).toEqual(new Set(["store"]));
    expect(second.tools.map((t) => Buffer.from(t.bytes).toString())).toEqual(first.tools.map((t) => Buffer.from(t.bytes).toString()));
  });

  it.skipIf(inject("redisServer") === "")("agents of two replicas share definitions in Redis, and lose a replica without losing a turn", async () => {
    const { redis, a, b } = await startPair();
    await a.api.call("register", declared("films", [tool("translate_subtitles", "Translate subtitles")], HOUR));
    const troubles: LoaderTrouble[] = [];
    const options = { targets: [a.process.grpc, b.process.grpc], onTrouble: (t: LoaderTrouble) => troubles.push(t) };
    const store = { redis: redis.url, prefix: "agents:" };
    const one = agentOf(a.process, { ...options, store: redisStore(store), random: () => 0 });
    await one.follow();
    expect((await one.load(["films/translate_subtitles"])).tools).toMatchObject([{ from: "registry" }]);
    await expect.poll(() => redis.admin.keys("agents:*")).toHaveLength(1);
    const two = agentOf(a.process, { ...options, store: redisStore(store), random: () => 0 });
    await two.follow();
    expect((await two.load(["films/translate_subtitles"])).tools).toMatchObject([{ from: "store", freshness: "cached" }]);

    await a.process.kill();
    const turn = await one.inject().turn("translate subtitles");
    expect([turn.search.kind, keys(turn)]).toEqual(["found", ["films/translate_subtitles"]]);
    expect((await one.moduleMap()).text).toContain("films");
    await expect.poll(() => one.follower.state.kind, { timeout: 20_000 }).toBe("live");
    expect(troubles).toEqual([]);
  });
});

describe("an agent", () => {
  it("that finds no registry says so, and follows once it is there", async () => {
    const port = await freePort();
    const registry = await startRegistry({ port });
    await registry.kill();
    const agent = agentOf(registry);
    await expect(agent.follow({ waitMs: 300 })).rejects.toMatchObject({ name: "RegistryError", code: "UNAVAILABLE", message: expect.stringContaining("cannot be reached") });
    await startRegistry({ port });
    expect((await agent.follow({ waitMs: 20_000 })).kind).toBe("live");
  });

  it("without following has definitions and turns all the same", async () => {
    const registry = await startRegistry();
    const remote = new RemoteRegistry(registry.grpc);
    await remote.call("register", declared("films", [tool("translate_subtitles", "Translate subtitles")], HOUR));
    const agent = agentOf(registry);
    const turn = await agent.inject().turn("translate subtitles");
    expect(keys(turn)).toEqual(["films/translate_subtitles"]);
    expect(turn.tokens.baseline).toMatchObject({ estimated: 1, counted: 0 });
    expect((await agent.moduleMap()).modules).toEqual([{ name: "films", tools: 1 }]);
  });

  it("of a filter finds what it follows, if not told otherwise", async () => {
    const registry = await startRegistry();
    const remote = new RemoteRegistry(registry.grpc);
    for (const id of ["films", "books"]) await remote.call("register", declared(id, [tool("translate_titles", "Translate titles")], { ...HOUR, instanceId: `${id}-0001` }));
    const agent = agentOf(registry, { filter: { serverIds: ["books"] } });
    await agent.follow();
    expect((await agent.find("translate titles")).tools.map((t) => t.toolId)).toEqual(["books/translate_titles"]);
    expect((await agent.find("translate titles", { filter: {} })).tools).toHaveLength(2);
  });
});

describe("a conversation", () => {
  it("gets what it called and did not have in the next turn, if the gate lets it", async () => {
    const registry = await startRegistry();
    const remote = new RemoteRegistry(registry.grpc);
    const tools = [tool("translate_subtitles", "Translate subtitles"), tool("burn_film", "Burn a film for good")];
    await remote.call("register", declared("films", tools, HOUR));
    const locked = { stub: { name: "open_vault", briefDescription: "Open the vault", requires: [{ scope: "vault" }] }, definition: Buffer.from(JSON.stringify(tool("open_vault", "Open the vault"))) };
    await remote.call("register", { serverId: "bank", instanceId: "bank-0001", ...HOUR, declared: { tools: [locked] } });
    const agent = agentOf(registry);
    await agent.follow();
    const chat = agent.inject();
    expect(keys(await chat.turn("translate the subtitles"))).toEqual(["films/translate_subtitles"]);
    for (const id of ["films/burn_film", "bank/open_vault"]) expect(await chat.call(id)).toMatchObject({ kind: "refused", registered: true });
    const next = await chat.turn("translate the subtitles");
    expect(keys(next)).toEqual(["films/translate_subtitles", "films/burn_film"]);
    expect(next.tokens.extra).toBe(true);
    expect(next.search).toMatchObject({ found: { withheld: [{ toolId: "bank/open_vault", cause: "SCOPE" }] } });
  });

  it("goes on over a connection that went dead without a word", async () => {
    const registry = await startRegistry();
    await new RemoteRegistry(registry.grpc).call("register", declared("films", [tool("translate_subtitles", "Translate subtitles")], HOUR));
    const wire = await startWire(Number(registry.grpc.split(":")[1]));
    const agent = agentOf({ grpc: `127.0.0.1:${wire.port}` });
    const ask = () => agent.find("translate subtitles", { timeoutMs: 2_000 }).then((found) => found.tools.length, (error: RegistryError) => error.code);
    expect(await ask()).toBe(1);
    wire.deafen();
    expect([await ask(), await ask(), await ask()]).toEqual(["DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"]);
    await expect.poll(ask, { timeout: 30_000 }).toBe(1);
  });
});

describe("turns and providers", () => {
  it.each(["replace", "append"] as const)("compose in %s mode: what is injected is exported, and calls come back to it", async (mode) => {
    const registry = await startRegistry();
    for (const name of ["git", "memory", "everything"]) {
      const server = await startFixture("corpus-server.mjs", [corpusFile(name)]);
      await introspected(registry, name, server.url);
    }
    const agent = agentOf(registry);
    await agent.follow();
    const chat = agent.inject({ mode, pinned: ["memory/read_graph"], keepTurns: 1 });
    let before: unknown[] = [];
    for (const intent of ["show the commits of a branch", "add numbers", "create entities in the knowledge graph", "read the whole graph"]) {
      const turn = await chat.turn(intent);
      const exported = new OpenAiChatTools(turn.inputs);
      expect(exported.report.refused).toBe(0);
      expect(exported.tools).toHaveLength(turn.tools.length);
      if (mode === "append") expect(exported.tools.slice(0, before.length)).toEqual(before);
      before = exported.tools;
      for (const { key } of chat.callable) {
        const name = exported.nameOf(key) ?? "";
        const read = exported.readCall({ id: "c1", type: "function", function: { name, arguments: "{}" } });
        expect(read.ok && chat.admit(read.call.toolId)).toMatchObject({ kind: "admitted", tool: { key } });
      }
      expect(new AnthropicTools(turn.inputs).report.refused).toBe(0);
    }
    expect(chat.totals.saved).toBeGreaterThan(0);
  });
});
