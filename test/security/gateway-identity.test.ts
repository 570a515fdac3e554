/** `serve --gateway` where the registry identifies its callers: who a session's principal is, what is closed to others, and that no secret shows. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { connectClient, toolsetIn } from "../support/gateway.js";
import { AUDIENCE, bearer, entryOf, ISSUER, Issuer, newToken, writeTokens } from "../support/identity.js";
import { type RegistryProcess, RemoteRegistry, startRegistry } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

const MODERN = "2026-07-28";
const META = { "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" } };
const INITIALIZE = { method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } } };
const CHALLENGE = 'Bearer realm="toolcrib"';

let folder: string;
let issuer: Issuer;
let registry: RegistryProcess;
let server: Fixture;
let url: string;
/** Of alice, twice. */
const alice = newToken();
const alices = newToken();
const bob = newToken();
const stranger = newToken();
const operator = newToken();
const shown: string[] = [alice, alices, bob, stranger, operator];

function write(without: readonly string[] = []): void {
  const reader = (namespace: string) => [{ role: "reader", namespaces: [namespace] }] as never;
  const entries = [
    entryOf(operator, "op", [{ role: "operator", namespaces: ["*"] }] as never),
    entryOf(alice, "alice", reader("default")),
    entryOf(alices, "alice", reader("default")),
    entryOf(bob, "bob", reader("default")),
    entryOf(stranger, "stranger", reader("elsewhere")),
  ];
  const hidden = new Set(without.map((token) => entryOf(token, "x", []).sha256));
  writeTokens(join(folder, "tokens.json"), entries.filter(({ sha256 }) => !hidden.has(sha256)));
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "toolcrib-gateway-who-"));
  issuer = await Issuer.create();
  writeFileSync(join(folder, "jwks.json"), JSON.stringify(issuer.jwks));
  write();
  const jwt = ["--jwt-jwks", join(folder, "jwks.json"), "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-algorithms", "ES256"];
  const args = ["--gateway", "--gateway-address", "127.0.0.1:0", "--tokens-file", join(folder, "tokens.json"), ...jwt, "--log-level", "debug"];
  registry = await startRegistry({ keep: true, store: "memory", dataDir: join(folder, "data"), args });
  url = /MCP (\S+\/mcp)/.exec(registry.output())?.[1] ?? "";
  server = await startFixture("sdk-server.mjs", ["--sdk", "v2"], { keep: true });
  const remote = new RemoteRegistry(registry.grpc, true);
  await remote.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} }, 15_000, bearer(operator));
  remote.client.close();
  await eventually(() => ask(alice, "tools/call", { name: "find_tools", arguments: { intent: "greet somebody by name" } }), ({ text }) => text.includes("one/greet"));
});
afterAll(async () => {
  // After everything that the tests did, of whatever outcome.
  for (const secret of shown) expect(registry?.output()).not.toContain(secret);
  await registry?.kill();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function send(token: string | undefined, body: object, headers: Record<string, string> = {}) {
  const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers };
  const ending = new AbortController();
  onTestOver(() => ending.abort());
  const response = await fetch(url, { method: "POST", headers: all, body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }), signal: ending.signal });
  return { status: response.status, challenge: response.headers.get("www-authenticate"), session: response.headers.get("mcp-session-id") ?? "", response };
}

/** `beforeAll` asks, too. */
function onTestOver(end: () => void): void {
  try {
    onTestFinished(end);
  } catch {
    // What is open then ends with the registry.
  }
}

/** One request of 2026-07-28. */
async function ask(token: string | undefined, method: string, params: object = {}) {
  const name = (params as { name?: string }).name;
  const headers = { "mcp-protocol-version": MODERN, "mcp-method": method, ...(name && { "mcp-name": name }) };
  const { response, ...facts } = await send(token, { method, params: { ...params, _meta: META } }, headers);
  // A subscription has no end.
  const text = method === "subscriptions/listen" && facts.status === 200 ? "" : await response.text();
  return { ...facts, text };
}

const REQUESTS: readonly (readonly [string, object])[] = [
  ["server/discover", {}],
  ["tools/list", {}],
  ["tools/call", { name: "find_tools", arguments: { intent: "greet" } }],
  ["tools/call", { name: "greet", arguments: {} }],
  ["subscriptions/listen", { notifications: { toolsListChanged: true } }],
];

describe("who is let in", () => {
  it.each(REQUESTS)("2026-07-28 %s %j: nobody and unknown tokens get 401 with a reason, known ones an answer", async (method, params) => {
    const nobody = await ask(undefined, method, params);
    expect([nobody.status, nobody.challenge, JSON.parse(nobody.text)]).toEqual([401, CHALLENGE, { jsonrpc: "2.0", id: null, error: { code: -32600, message: "send the registry's bearer token in the Authorization header" } }]);
    const wrong = newToken();
    shown.push(wrong);
    const unknown = await ask(wrong, method, params);
    expect([unknown.status, unknown.challenge, unknown.text]).toEqual([401, `${CHALLENGE}, error="invalid_token"`, expect.stringContaining("does not know this caller: send a valid bearer token")]);
    expect(unknown.text).not.toContain(wrong);
    expect(unknown.text).not.toContain("one/greet");
    expect((await ask(alice, method, params)).status).toBe(200);
  });

  it("sessions, too", async () => {
    const nobody = await send(undefined, INITIALIZE);
    expect([nobody.status, nobody.challenge, await nobody.response.text()]).toEqual([401, CHALLENGE, expect.stringContaining("bearer token")]);
    for (const wrong of [newToken(), "not.a.jwt", issuer.unsigned(), await issuer.confused(), await issuer.sign({ exp: 1 }), await issuer.sign({ aud: "another" })]) {
      shown.push(wrong);
      const unknown = await send(wrong, INITIALIZE);
      expect([unknown.status, unknown.challenge]).toEqual([401, `${CHALLENGE}, error="invalid_token"`]);
      expect(await unknown.response.text()).not.toContain(wrong);
    }
    // Grants in another namespace are none here.
    expect((await send(stranger, INITIALIZE)).status).toBe(403);
  });

  it("a JWT's subject is the session's principal", async () => {
    const token = await issuer.sign({ sub: "carol", toolcrib: [{ role: "reader", namespaces: ["default"] }] });
    const renewed = await issuer.sign({ sub: "carol", toolcrib: [{ role: "reader", namespaces: ["default"] }], jti: "2" });
    shown.push(token, renewed);
    const { session } = await send(token, INITIALIZE);
    const list = { method: "tools/list" };
    expect((await send(renewed, list, { "mcp-session-id": session })).status).toBe(200);
    expect((await send(alice, list, { "mcp-session-id": session })).status).toBe(404);
  });

  it("what the gateway knows of tools is not told to a caller who may not read them", async () => {
    const known = await ask(alice, "tools/call", { name: "greet", arguments: {} });
    expect(known.text).toContain("one/greet");
    const { status, text } = await ask(stranger, "tools/call", { name: "greet", arguments: {} });
    expect([status, text]).toEqual([200, expect.not.stringContaining("one/greet")]);
    for (const args of [{}, { category: "one" }, { category: "one/greet" }, { intent: "greet somebody by name" }])
      expect((await ask(stranger, "tools/call", { name: "find_tools", arguments: args })).text).not.toContain("greet ");
  });
});

describe("a toolset", () => {
  it("is its principal's, whichever of their tokens they show, and nobody else's", async () => {
    const hers = await connectClient("sdk v2, negotiating", url, { headers: { authorization: `Bearer ${alice}` } });
    const toolset = toolsetIn((await hers.call("find_tools", { intent: "greet somebody by name" })).text);
    const call = { toolset, tool: "one/greet", arguments: { text: "hi" } };
    const again = await connectClient("sdk v2, negotiating", url, { headers: { authorization: `Bearer ${alices}` } });
    expect((await again.call("call_tool", call)).text).toBe("hi");
    const his = await connectClient("sdk v2, negotiating", url, { headers: { authorization: `Bearer ${bob}` } });
    for (const [name, args] of [["call_tool", call], ["describe_tools", { toolset, tools: ["one/greet"] }], ["find_tools", { toolset, intent: "add" }]] as const) {
      const answer = await his.call(name, args);
      expect([answer.isError, answer.text]).toEqual([true, expect.stringContaining("There is no toolset")]);
    }
    expect((await hers.call("call_tool", call)).text).toBe("hi");
  });

  it("of a session can be neither used, listened to nor ended by another", async () => {
    const { session } = await send(alice, INITIALIZE);
    const headers = { "mcp-session-id": session, authorization: `Bearer ${bob}` };
    expect((await send(bob, { method: "tools/list" }, headers)).status).toBe(404);
    expect((await fetch(url, { headers: { ...headers, accept: "text/event-stream" } })).status).toBe(404);
    expect((await fetch(url, { method: "DELETE", headers })).status).toBe(404);
    expect((await send(alice, { method: "tools/list" }, { "mcp-session-id": session })).status).toBe(200);
  });
});

describe("a token that is taken back", () => {
  it("ends its streams, and its next request gets 401", async () => {
    const { session } = await send(alices, INITIALIZE);
    const headers = { "mcp-session-id": session, authorization: `Bearer ${alices}`, accept: "text/event-stream" };
    const stream = await fetch(url, { headers });
    expect(stream.status).toBe(200);
    const ended = stream.text();
    write([alices]);
    onTestFinished(() => write());
    await eventually(() => send(alices, { method: "tools/list" }, { "mcp-session-id": session }), ({ status }) => status === 401);
    await eventually(() => ask(alices, "tools/list"), ({ status }) => status === 401);
    expect(await ended).toContain(": open");
    expect((await send(alice, { method: "tools/list" }, { "mcp-session-id": session })).status).toBe(200);
  });
});
