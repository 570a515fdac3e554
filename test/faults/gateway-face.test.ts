/** What goes wrong around a gateway, and what its clients hear of it. */
import { describe, expect, it } from "vitest";
import { toolcrib } from "../support/cli.js";
import { connectClient, type TestGateway, testGateway, toolsetIn } from "../support/gateway.js";
import { RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

interface World {
  readonly registry: RegistryProcess;
  readonly remote: RemoteRegistry;
  readonly servers: readonly Fixture[];
}

/** A registry with servers `one`, `two`, …, each with the tools greet, add and echo of the official SDK. */
async function world(count = 1, options: Parameters<typeof startRegistry>[0] = { store: "memory" }): Promise<World> {
  const registry = await startRegistry(options);
  const remote = new RemoteRegistry(registry.grpc);
  const servers = await Promise.all(["one", "two", "three"].slice(0, count).map(async (serverId) => {
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    await remote.call("register", { serverId, endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
    return server;
  }));
  await eventually(() => remote.toolIds(), (ids) => ids.length === 3 * count);
  return { registry, remote, servers };
}

/** Initializes by hand, and answers what posts further messages of that session. */
async function rawSession({ url }: { url: string }, headers: Record<string, string> = {}) {
  const send = (message: object, more: Record<string, string> = {}) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } };
  const answer = await send({ id: 1, method: "initialize", params });
  await answer.text();
  const id = answer.headers.get("mcp-session-id") ?? "";
  const request = async (method: string, about: object = {}, at = url): Promise<{ status: number; text: string }> => {
    const response = await fetch(at, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-session-id": id, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 2, method, params: about }),
    });
    return { status: response.status, text: await response.text() };
  };
  return { id, request };
}

describe("a client that ignores list_changed", () => {
  it("can call what find_tools named, and hears clearly when it calls what was unloaded", async () => {
    const { registry } = await world();
    const gateway = await testGateway(registry.grpc);
    const { request } = await rawSession(gateway);
    const found = await request("tools/call", { name: "find_tools", arguments: { intent: "greet somebody by name", limit: 1 } });
    expect(found.text).toContain("notifications/tools/list_changed");
    expect(found.text).toContain("one__greet");
    expect((await request("tools/call", { name: "one__greet", arguments: { text: "hello" } })).text).toContain("hello");
    await request("tools/call", { name: "find_tools", arguments: { intent: "add two numbers", limit: 1 } });
    const gone = await request("tools/call", { name: "one__greet", arguments: { text: "hello" } });
    expect(gone.text).toContain("is not loaded now");
    expect(gone.text).toContain('"isError":true');
  });

  it("can be given the stable mode by its URL, or by its name", async () => {
    const { registry } = await world();
    const gateway = await testGateway(registry.grpc, { stableClients: ["deaf client"] });
    const byUrl = await connectClient("sdk v1", `${gateway.url}?mode=stable`);
    const byName = await connectClient("sdk v2, sessions", gateway.url, { name: "Deaf Client" });
    for (const client of [byUrl, byName]) {
      expect(await client.names()).toEqual(["find_tools", "describe_tools", "call_tool"]);
      const toolset = toolsetIn((await client.call("find_tools", { intent: "greet somebody" })).text);
      expect((await client.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "hi" } })).text).toBe("hi");
      expect(client.changes()).toBe(0);
    }
    expect(await byUrl.listed()).toEqual(await byName.listed());
  });
});

describe("tools that change under a session", () => {
  it("leave by themselves, and an open stream hears of it", async () => {
    const { registry, remote, servers } = await world(2);
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", gateway.url);
    await client.call("find_tools", { category: "one" });
    expect(await client.names()).toHaveLength(4);
    await expect.poll(() => gateway.streams).toBe(1);
    await expect.poll(client.changes).toBeGreaterThan(0);

    const before = client.changes();
    await servers[0]?.control({ op: "remove", name: "add" });
    await remote.call("refreshServer", { serverId: "one" });
    await expect.poll(client.changes, { timeout: 10_000 }).toBeGreaterThan(before);
    await expect.poll(client.names).toEqual(expect.not.arrayContaining(["one__add"]));
    const removed = await client.call("one__add", { text: "x" });
    expect(removed).toMatchObject({ isError: true });
    expect(removed.text).toContain("not registered any more");

    const isolated = client.changes();
    await remote.call("isolateServer", { serverId: "one", why: "a test" });
    await expect.poll(client.changes, { timeout: 10_000 }).toBeGreaterThan(isolated);
    await expect.poll(client.names).toEqual(["find_tools"]);
    expect((await client.call("one__greet", { text: "x" })).text).toContain("does not answer now");
  });

  it("are told of when they went between describe and call", async () => {
    const { registry, remote } = await world();
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v2, negotiating", gateway.url);
    const toolset = toolsetIn((await client.call("find_tools", { intent: "greet somebody" })).text);
    expect((await client.call("describe_tools", { toolset, tools: ["one/greet"] })).isError).toBe(false);
    await remote.call("deregister", { serverId: "one" });
    await expect.poll(async () => (await client.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "x" } })).text).toMatch(/one\/greet is not registered any more.*find_tools/);
    expect((await client.call("describe_tools", { toolset, tools: ["one/greet"] })).text).toContain("not registered any more");
  });
});

describe("one tool name on three servers", () => {
  it("stays apart, by name and by id", async () => {
    const { registry, servers } = await world(3);
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", gateway.url);
    await client.call("find_tools", { intent: "greet somebody by name, on one, two and three", limit: 3 });
    expect((await client.names()).filter((n) => n.endsWith("__greet")).sort()).toEqual(["one__greet", "three__greet", "two__greet"]);
    expect((await client.call("two__greet", { text: "to two" })).text).toBe("to two");
    const calls = await Promise.all(servers.map(async (s) => (await s.requests()).filter((r) => r.method === "tools/call").length));
    expect(calls).toEqual([0, 1, 0]);
    const which = await client.call("greet", { text: "x" });
    expect(which.text).toMatch(/Several loaded tools are named greet.*__greet or/);
  });
});

describe("a gateway killed between find and call", () => {
  it("is replaced by another one that knows the session and the toolset", async () => {
    const { registry } = await world();
    const first = toolcrib(["gateway", "--registry", registry.grpc, "--gateway-address", "127.0.0.1:0"]);
    const url = await eventually(() => /MCP (\S+),/.exec(first.stdout())?.[1] ?? "", (u) => u !== "");
    const second = await testGateway(registry.grpc);
    const { request } = await rawSession({ url });
    await request("tools/call", { name: "find_tools", arguments: { intent: "greet somebody", limit: 1 } });
    const stable = await connectClient("sdk v2, negotiating", url);
    const toolset = toolsetIn((await stable.call("find_tools", { intent: "greet somebody" })).text);
    first.process.kill("SIGKILL");
    await first.exit;
    expect((await request("tools/list", {}, second.url)).text).toContain("one__greet");
    expect((await request("tools/call", { name: "one__greet", arguments: { text: "still here" } }, second.url)).text).toContain("still here");
    const again = await connectClient("sdk v2, negotiating", second.url);
    expect((await again.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "here, too" } })).text).toBe("here, too");
  });

  it("tells a session's stream of what another gateway loaded", async () => {
    const { registry } = await world();
    const [a, b] = await Promise.all([testGateway(registry.grpc), testGateway(registry.grpc)]);
    const client = await connectClient("sdk v1", a.url);
    await client.names();
    await expect.poll(() => a.streams).toBe(1);
    const params = { name: "find_tools", arguments: { intent: "greet somebody", limit: 1 } };
    const answer = await fetch(b.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", "mcp-session-id": client.sessionId() ?? "" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params }),
    });
    expect(await answer.text()).toContain("one__greet");
    await expect.poll(client.changes, { timeout: 15_000 }).toBe(1);
    expect(await client.names()).toContain("one__greet");
  });
});

describe("a registry that is away", () => {
  it("leaves what is loaded working, and answers say so", async () => {
    const { registry } = await world();
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", gateway.url);
    const stable = await connectClient("sdk v2, negotiating", gateway.url);
    await client.call("find_tools", { intent: "greet somebody", limit: 1 });
    await client.names();
    expect((await client.call("one__greet", { text: "before" })).text).toBe("before");
    const toolset = toolsetIn((await stable.call("find_tools", { intent: "greet somebody" })).text);
    await stable.call("describe_tools", { toolset, tools: ["one/greet"] });
    await registry.kill();
    const during = await client.call("one__greet", { text: "during" });
    expect(during.text).toBe("during");
    await expect.poll(async () => (await client.call("one__greet", { text: "x" })).result._meta).toMatchObject({ "toolcrib/stale": true });
    expect(await client.names()).toContain("one__greet");
    expect((await stable.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "stable" } })).text).toBe("stable");
    await expect.poll(async () => (await stable.call("describe_tools", { toolset, tools: ["one/greet"] })).text).toContain("stale");
    const find = await client.call("find_tools", { intent: "something else" });
    expect(find).toMatchObject({ isError: true });
    expect(find.text).toMatch(/registry cannot be asked now.*Tools that are loaded go on working/);
  });
});

describe("handles and arguments that are wrong", () => {
  it("are answered with what to do, as a result that a model reads", async () => {
    const { registry } = await world();
    const gateway: TestGateway = await testGateway(registry.grpc);
    const other = await testGateway(registry.grpc, { namespace: "other" });
    const client = await connectClient("sdk v2, negotiating", gateway.url);
    const toolset = toolsetIn((await client.call("find_tools", { intent: "greet somebody", limit: 1 })).text);
    const foreign = toolsetIn((await (await connectClient("sdk v2, negotiating", other.url)).call("find_tools", {})).text);

    const wrong = async (args: object) => {
      const answer = await client.call("call_tool", args);
      expect(answer.isError).toBe(true);
      return answer.text;
    };
    const unknown = await wrong({ toolset: "ts-nobody", tool: "one/greet", arguments: {} });
    expect(unknown).toMatch(/There is no toolset "ts-nobody" here.*find_tools/);
    expect(await wrong({ toolset: foreign, tool: "one/greet", arguments: {} })).toBe(unknown.replace("ts-nobody", foreign));
    const call = JSON.stringify({ toolset, tool: "one/greet", arguments: { text: "hi" } });
    expect(await wrong({ arguments: { toolset, name: "one/greet", arguments: { text: "hi" } } })).toContain(call);
    expect(await wrong({ toolset, arguments: { name: "one/greet", text: "hi" } })).toContain(call);
    expect(await wrong({ toolset, tool: "one/greet", text: "hi" })).toContain(call);
    expect(await wrong({ toolset, tool: "one/greet", arguments: '{"text":"hi"}' })).toContain(call);
    expect(await wrong({ toolset, tool: "one/echo", arguments: {} })).toMatch(/one\/echo is not in this toolset.*Loaded are: one\/greet/);
    expect(await wrong({ toolset, tool: "one/greet", arguments: {} })).toMatch(/text/);
    expect((await client.call("one/greet", { text: "hi" })).text).toContain('"tool": "one/greet"');
    const session = await fetch(gateway.url, {
      method: "POST",
      headers: { "content-type": "application/json", "mcp-session-id": foreign },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    expect(session.status).toBe(404);
  });
});
