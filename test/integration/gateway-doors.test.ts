/** The doors of a gateway: who is let in, stdio, a Python client, streams that come back, and requests that are none. */
import { spawnSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { BIN } from "../support/cli.js";
import { connectClient, type TestGateway, testGateway, toolsetIn } from "../support/gateway.js";
import { bearer, entryOf, newToken, writeTokens } from "../support/identity.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry, temporaryFolder } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";
import { parseTarget } from "../../src/client/target.js";

const MODERN = "2026-07-28";
const META = { "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" } };
const ODD = '{ "name":"odd", "2":1, "1":2, "id":9007199254740993, "description":"Counts odd things.", "inputSchema":{"type":"object"} }';

let folder: string;
let registry: RegistryProcess;
let remote: RemoteRegistry;
let server: Fixture;
let gateway: TestGateway;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-doors-"));
  registry = await startRegistry({ keep: true, store: "memory", dataDir: folder });
  remote = new RemoteRegistry(registry.grpc, true);
  server = await startFixture("sdk-server.mjs", ["--sdk", "v2"], { keep: true });
  await remote.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
  await remote.call("register", { ...declared("odd", []), declared: { tools: [{ definition: Buffer.from(ODD) }] } });
  await eventually(() => remote.toolIds(), (ids) => ids.length === 4);
  gateway = await testGateway(registry.grpc, { keep: true, always: ["odd/odd"] });
});
afterAll(async () => {
  await gateway?.stop();
  await server?.stop();
  remote?.client.close();
  await registry?.kill();
  await rm(folder, { recursive: true, force: true });
});

const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

function post(body: unknown, headers: Record<string, string> = {}, url = gateway.url): Promise<Response> {
  return fetch(url, { method: "POST", headers: { ...JSON_HEADERS, ...headers }, body: typeof body === "string" ? body : JSON.stringify(body) });
}

async function begin(revision = "2025-11-25", headers: Record<string, string> = {}, url = gateway.url): Promise<Record<string, string>> {
  const answer = await post({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: "raw", version: "1" } } }, headers, url);
  expect((await answer.json()) as object).toMatchObject({ result: { protocolVersion: revision, serverInfo: { name: "toolcrib" } } });
  return { ...headers, "mcp-session-id": answer.headers.get("mcp-session-id") ?? "" };
}

function modern(method: string, params: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  const name = (params as { name?: string }).name;
  return post({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }, { "mcp-protocol-version": MODERN, "mcp-method": method, ...(name && { "mcp-name": name }), ...headers });
}

describe("every revision", () => {
  it.each(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])("%s begins a session, and the definitions in it are the server's own bytes", async (revision) => {
    const session = await begin(revision);
    const list = await (await post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, session)).text();
    expect(list).toContain(ODD.replace('"odd"', '"odd__odd"'));
    expect(await (await post({ jsonrpc: "2.0", id: 3, method: "ping" }, session)).json()).toEqual({ jsonrpc: "2.0", id: 3, result: {} });
    expect((await post({ jsonrpc: "2.0", method: "notifications/initialized" }, session)).status).toBe(202);
    expect((await fetch(gateway.url, { method: "DELETE", headers: session })).status).toBe(204);
    expect((await post({ jsonrpc: "2.0", id: 4, method: "ping" }, session)).status).toBe(404);
  });

  it("2026-07-28 discovers, lists the same bytes with their time to live, and acknowledges a subscription first", async () => {
    expect(await (await modern("server/discover")).json()).toMatchObject({ result: { supportedVersions: [MODERN], capabilities: { tools: { listChanged: true } } } });
    const [a, b] = await Promise.all([0, 1].map(async () => (await modern("tools/list")).text()));
    expect(a).toBe(b);
    expect(JSON.parse(a ?? "")).toMatchObject({ result: { ttlMs: 3_600_000, cacheScope: "public" } });
    const ending = new AbortController();
    const stream = await fetch(gateway.url, {
      method: "POST",
      headers: { ...JSON_HEADERS, "mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 9, method: "subscriptions/listen", params: { notifications: { toolsListChanged: true }, _meta: META } }),
      signal: ending.signal,
    });
    const first = await stream.body?.getReader().read();
    expect(Buffer.from(first?.value ?? []).toString()).toContain('"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}');
    ending.abort();
    expect((await modern("tools/list", {}, { "mcp-method": "tools/call" })).status).toBe(400);
    expect(await (await modern("initialize")).json()).toMatchObject({ error: { code: -32601 } });
  });
});

describe("a stream that comes back", () => {
  it("hears at once what changed while it was away, and nothing where nothing did", async () => {
    const session = await begin();
    const first = await openStream(session);
    await call(session, { intent: "greet somebody", limit: 1 });
    const [, id = ""] = await eventually(() => /id: (\S+)\nevent: message\ndata: .*list_changed/.exec(first.text()) ?? [], (found) => found.length > 0);
    first.end();
    const same = await openStream(session, id);
    await call(session, { intent: "add two numbers", limit: 1 });
    await eventually(() => same.text(), (text) => text.includes("list_changed"));
    expect(same.text().match(/list_changed/g)).toHaveLength(1);
    same.end();
    const late = await openStream(session, id);
    await eventually(() => late.text(), (text) => text.includes("list_changed"));
    late.end();
  });

  async function call(session: Record<string, string>, args: object): Promise<void> {
    await (await post({ jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "find_tools", arguments: args } }, session)).text();
  }

  async function openStream(session: Record<string, string>, lastEventId?: string) {
    const ending = new AbortController();
    const headers = { accept: "text/event-stream", ...session, ...(lastEventId !== undefined && { "last-event-id": lastEventId }) };
    const response = await fetch(gateway.url, { headers, signal: ending.signal });
    expect(response.status).toBe(200);
    let text = "";
    void (async () => {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    onTestFinished(() => ending.abort());
    return { text: () => text, end: () => ending.abort() };
  }
});

describe("what is no good request", () => {
  it.each<[string, () => Promise<Response>, number, RegExp]>([
    ["a name that is made to mean this machine", () => post("{}", { origin: "http://evil.example" }), 403, /Pages of http:\/\/evil\.example/],
    ["another path", () => post("{}", {}, gateway.url.replace("/mcp", "/other")), 404, /only \/mcp/],
    ["no JSON", () => post("{"), 400, /not JSON/],
    ["another content type", () => post("{}", { "content-type": "text/plain" }), 415, /application\/json/],
    ["too much", () => post(`"${"x".repeat(4 * 1024 * 1024)}"`), 413, /4194304 bytes/],
    ["no session", () => post({ jsonrpc: "2.0", id: 1, method: "ping" }), 400, /Mcp-Session-Id header is missing/],
    ["a session that never was", () => post({ jsonrpc: "2.0", id: 1, method: "ping" }, { "mcp-session-id": "nobody" }), 404, /Session not found/],
    ["a GET without a stream", () => fetch(gateway.url, { headers: { accept: "text/html" } }), 406, /text\/event-stream/],
    ["another method", () => fetch(gateway.url, { method: "PUT", body: "{}" }), 405, /only GET, POST and DELETE/],
  ])("is refused with its reason: %s", async (_what, send, status, why) => {
    const answer = await send();
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringMatching(why)]);
  });

  it("is answered message by message in a batch", async () => {
    const session = await begin("2025-03-26");
    const answer = await post([{ jsonrpc: "2.0", id: "a", method: "ping" }, { jsonrpc: "2.0", method: "notifications/initialized" }, { jsonrpc: "2.0", id: "b", method: "prompts/list" }], session);
    expect(await answer.json()).toMatchObject([{ id: "a", result: {} }, { id: "b", error: { code: -32601 } }]);
    const invalid = await post([{ jsonrpc: "2.0", id: "a", method: "ping" }, { id: 3 }], session);
    expect([invalid.status, await invalid.json()]).toMatchObject([400, { error: { code: -32600 } }]);
  });

  it("says whether it lives and is ready", async () => {
    const base = gateway.url.replace("/mcp", "");
    expect(await (await fetch(`${base}/livez`)).json()).toEqual({ status: "live" });
    await eventually(async () => (await fetch(`${base}/readyz`)).status, (status) => status === 200);
    const alone = await testGateway("127.0.0.1:1");
    const unready = await fetch(alone.url.replace("/mcp", "/readyz"));
    expect([unready.status, await unready.text()]).toEqual([503, expect.stringContaining("The registry is away")]);
  });
});

describe("a registry that identifies its callers", () => {
  it("is shown each caller's own token, and lets nobody use another's toolset", async () => {
    const home = await temporaryFolder();
    const [operator, alice, bob, stranger] = [newToken(), newToken(), newToken(), newToken()];
    const grant = (role: string) => [{ role, namespaces: ["default"] } as never];
    writeTokens(join(home, "tokens.json"), [entryOf(operator, "op", grant("operator")), entryOf(alice, "alice", grant("reader")), entryOf(bob, "bob", grant("reader")), entryOf(stranger, "stranger", [{ role: "reader", namespaces: ["elsewhere"] } as never])]);
    const guarded = await startRegistry({ store: "memory", args: ["--tokens-file", join(home, "tokens.json")] });
    const owner = new RemoteRegistry(guarded.grpc);
    await owner.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} }, 15_000, bearer(operator));
    const target = { ...parseTarget(guarded.grpc), access: { token: () => operator } };
    const door = await testGateway(guarded.grpc, { target, identification: "caller" });
    const init = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } } };
    const without = await post(init, {}, door.url);
    expect([without.status, without.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="toolcrib"']);
    expect((await post(init, { authorization: `Bearer ${newToken()}` }, door.url)).status).toBe(401);
    expect((await post(init, { authorization: `Bearer ${stranger}` }, door.url)).status).toBe(403);
    const session = await begin("2025-11-25", { authorization: `Bearer ${alice}` }, door.url);
    expect((await post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, session, door.url)).status).toBe(200);
    expect((await post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, { ...session, authorization: `Bearer ${bob}` }, door.url)).status).toBe(404);
    const hers = await connectClient("sdk v2, negotiating", door.url, { headers: { authorization: `Bearer ${alice}` } });
    const toolset = toolsetIn((await hers.call("find_tools", { intent: "greet somebody" })).text);
    expect((await hers.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "hi" } })).text).toBe("hi");
    const his = await connectClient("sdk v2, negotiating", door.url, { headers: { authorization: `Bearer ${bob}` } });
    expect((await his.call("call_tool", { toolset, tool: "one/greet", arguments: { text: "hi" } })).text).toMatch(/There is no toolset/);
  });
});

describe("a caller's own credential for servers", () => {
  it("goes to the servers that are listed for it, and to no other", async () => {
    const other = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    await remote.call("register", { serverId: "other", endpoint: other.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
    await eventually(() => remote.toolIds(), (ids) => ids.includes("other/greet"));
    const callerCredentials = [{ namespace: "default", serverId: "one", hosts: ["127.0.0.1"], header: "x-own-key" }];
    const door = await testGateway(registry.grpc, { callerCredentials, always: ["one/greet", "other/greet"] });
    const client = await connectClient("sdk v1", door.url, { headers: { "toolcrib-upstream-authorization": "a-callers-own-secret" } });
    for (const name of ["one__greet", "other__greet"]) expect((await client.call(name, { text: "hi" })).text).toBe("hi");
    const without = await connectClient("sdk v1", door.url);
    expect((await without.call("one__greet", { text: "hi" })).text).toMatch(/shown its callers' own credentials, and this call brought none/);
    const seen = async (fixture: Fixture) => JSON.stringify((await fixture.requests()).filter((r) => r.method === "tools/call").map((r) => r.headers));
    expect(await seen(server)).toContain('"x-own-key":"a-callers-own-secret"');
    expect(await seen(other)).not.toContain("a-callers-own-secret");
    await remote.call("deregister", { serverId: "other" });
  });
});

describe("stdio", () => {
  it("serves a desktop client: loads, tells of changes, ends with its client", async () => {
    const transport = new StdioClientTransport({ command: process.execPath, args: [BIN, "gateway", "--stdio", "--registry", registry.grpc], stderr: "ignore" });
    let changes = 0;
    const client = new ClientV1({ name: "desktop", version: "1" }, { listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void changes++ } } });
    await client.connect(transport);
    onTestFinished(() => client.close());
    expect((await client.listTools()).tools.map((t) => t.name)).toEqual(["find_tools"]);
    await client.callTool({ name: "find_tools", arguments: { intent: "greet somebody by name", limit: 1 } });
    await expect.poll(() => changes).toBeGreaterThan(0);
    expect((await client.listTools()).tools.map((t) => t.name)).toEqual(["find_tools", "one__greet"]);
    expect(await client.callTool({ name: "one__greet", arguments: { text: "over stdio" } })).toMatchObject({ content: [{ text: "over stdio" }] });
    await client.close();
  });

  it("keeps the bytes of definitions", async () => {
    const child = spawn(process.execPath, [BIN, "gateway", "--stdio", "--registry", registry.grpc, "--gateway-always", "odd/odd"], { stdio: ["pipe", "pipe", "ignore"] });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => void (out += chunk.toString()));
    const init = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "x", version: "1" } };
    for (const message of [{ id: 1, method: "initialize", params: init }, { method: "notifications/initialized" }, { id: 2, method: "tools/list" }]) child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    await eventually(() => out, (text) => text.includes('"id":2'));
    expect(out).toContain(ODD.replace('"odd"', '"odd__odd"'));
    child.stdin.end();
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
  });
});

/** MCP_PYTHON names a Python that has the official package `mcp`, where it is not `python3`. */
const python = process.env["MCP_PYTHON"] ?? "python3";
const hasPython = spawnSync(python, ["-c", "from mcp import Client"]).status === 0;

describe.skipIf(!hasPython)("the official Python client (skipped where Python has no `mcp` of 2.x)", () => {
  it.each([
    ["legacy", ["find_tools", "odd__odd"], "one__greet"],
    ["auto", ["find_tools", "describe_tools", "call_tool"], "call_tool"],
  ])("%s", async (mode, first, later) => {
    const script = fileURLToPath(new URL("../fixtures/client/mcp_client.py", import.meta.url));
    const child = spawn(python, [script, gateway.url, mode], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => void (out += chunk.toString()));
    await once(child, "close");
    expect(JSON.parse(out)).toMatchObject({ first, names: expect.arrayContaining([later]), answer: "from Python" });
  });
});
