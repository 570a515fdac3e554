/** `toolcrib gateway` and `serve --gateway` as processes: TLS on both sides, callers with identity, and what a shutdown does to calls under way. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { toolcrib } from "../support/cli.js";
import { connectClient, toolsetIn } from "../support/gateway.js";
import { Authority, bearer, entryOf, hasOpenssl, newToken, writeTokens } from "../support/identity.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

const INITIALIZE = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } } };
const grant = (role: string) => [{ role, namespaces: ["default"] } as never];

function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A gateway of its own; answers its URL and its process. */
async function startGatewayProcess(registry: string, args: readonly string[], env: Record<string, string> = {}) {
  const run = toolcrib(["gateway", "--registry", registry, "--gateway-address", "127.0.0.1:0", ...args], env);
  const [, url = ""] = await eventually(
    () => /MCP (\S+\/mcp)/.exec(run.stdout()) ?? (run.process.exitCode !== null ? [run.stderr(), run.stderr()] : []),
    (found) => found.length > 0,
  );
  if (!url.startsWith("http")) throw new Error(`the gateway did not start: ${url}`);
  return { run, url };
}

async function offer(remote: RemoteRegistry, script: "calling-server.mjs" | "faulty-calls.mjs", args: readonly string[], token?: string): Promise<Fixture> {
  const server = await startFixture(script, args);
  await remote.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} }, 15_000, token === undefined ? undefined : bearer(token));
  return server;
}

describe.skipIf(!hasOpenssl)("a gateway with TLS on both sides", () => {
  const post = (url: string, ca: string, headers: Record<string, string>, body: object): Promise<{ status: number; text: string; session: string }> =>
    new Promise((resolve, reject) => {
      const all = { "content-type": "application/json", accept: "application/json", ...headers };
      const request = httpsRequest(url, { method: "POST", headers: all, ca: readFileSync(ca), agent: false }, (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => void (text += chunk.toString()));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text, session: String(answer.headers["mcp-session-id"]) }));
      });
      request.on("error", reject);
      request.end(JSON.stringify(body));
    });

  it("shows its certificate, trusts the registry's by its authority, and passes tokens on; without the authority it says why it is not ready", async () => {
    const folder = folderForTest();
    const ours = new Authority(folder, "ours");
    const [registryCert, gatewayCert] = ["registry", "gateway"].map((name) => ours.issue(name, "DNS:localhost,IP:127.0.0.1"));
    const [operator, alice] = [newToken(), newToken()];
    writeTokens(join(folder, "tokens.json"), [entryOf(operator, "op", grant("operator")), entryOf(alice, "alice", grant("reader"))]);
    const registry = await startRegistry({
      store: "memory",
      args: ["--tls-cert", registryCert?.cert ?? "", "--tls-key", registryCert?.key ?? "", "--tokens-file", join(folder, "tokens.json")],
      unready: true,
    });
    const tls = ["--tls-cert", gatewayCert?.cert ?? "", "--tls-key", gatewayCert?.key ?? "", "--gateway-callers", "caller"];
    const place = `grpcs://${registry.grpc}`;
    const { run, url } = await startGatewayProcess(place, tls, { TOOLCRIB_CA: ours.cert, TOOLCRIB_TOKEN: operator });
    expect(url).toMatch(/^https:/);
    const begun = await eventually(() => post(url, ours.cert, { authorization: `Bearer ${alice}` }, INITIALIZE), ({ status }) => status === 200);
    const session = { authorization: `Bearer ${alice}`, "mcp-session-id": begun.session };
    expect(JSON.parse((await post(url, ours.cert, session, { jsonrpc: "2.0", id: 2, method: "tools/list" })).text).result.tools[0].name).toBe("find_tools");
    const nobody = await post(url, ours.cert, {}, INITIALIZE);
    expect([nobody.status, nobody.text]).toEqual([401, expect.stringContaining("bearer token")]);
    // Plain HTTP finds nobody there who understands it.
    await expect(fetch(url.replace("https:", "http:"), { method: "POST", body: "{}" })).rejects.toThrow();

    const stranger = await startGatewayProcess(place, tls, { TOOLCRIB_TOKEN: operator });
    await eventually(() => stranger.run.stdout() + stranger.run.stderr(), (text) => /certificate/i.test(text));
    for (const text of [run.stdout(), run.stderr(), stranger.run.stdout(), stranger.run.stderr()]) for (const secret of [operator, alice]) expect(text).not.toContain(secret);
  });
});

describe("serve --gateway where the registry identifies its callers", () => {
  it("asks everybody for a token, keeps toolsets apart, and tells no secret", async () => {
    const folder = folderForTest();
    const [operator, alice, bob] = [newToken(), newToken(), newToken()];
    writeTokens(join(folder, "tokens.json"), [entryOf(operator, "op", grant("operator")), entryOf(alice, "alice", grant("reader")), entryOf(bob, "bob", grant("reader"))]);
    const registry = await startRegistry({ store: "memory", args: ["--gateway", "--gateway-address", "127.0.0.1:0", "--tokens-file", join(folder, "tokens.json")] });
    await offer(new RemoteRegistry(registry.grpc), "calling-server.mjs", ["--sdk", "v2"], operator);
    const url = /MCP (\S+\/mcp)/.exec(registry.output())?.[1] ?? "";
    const post = (headers: Record<string, string>, body: object = INITIALIZE) => fetch(url, { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers }, body: JSON.stringify(body) });
    const nobody = await post({});
    expect([nobody.status, nobody.headers.get("www-authenticate"), await nobody.text()]).toEqual([401, 'Bearer realm="toolcrib"', expect.stringContaining("bearer token")]);
    expect((await post({ authorization: `Bearer ${newToken()}` })).status).toBe(401);

    const hers = await connectClient("sdk v2, negotiating", url, { headers: { authorization: `Bearer ${alice}` } });
    const toolset = toolsetIn((await hers.call("find_tools", { intent: "echo a text" })).text);
    expect((await hers.call("call_tool", { toolset, tool: "one/echo", arguments: { text: "hi" } })).text).toContain('"text":"hi"');
    const his = await connectClient("sdk v2, negotiating", url, { headers: { authorization: `Bearer ${bob}` } });
    expect((await his.call("call_tool", { toolset, tool: "one/echo", arguments: { text: "hi" } })).text).toMatch(/There is no toolset/);
    const session = (await post({ authorization: `Bearer ${alice}` })).headers.get("mcp-session-id") ?? "";
    const list = { jsonrpc: "2.0", id: 2, method: "tools/list" };
    expect((await post({ authorization: `Bearer ${alice}`, "mcp-session-id": session }, list)).status).toBe(200);
    expect((await post({ authorization: `Bearer ${bob}`, "mcp-session-id": session }, list)).status).toBe(404);
    for (const secret of [operator, alice, bob]) expect(registry.output()).not.toContain(secret);
  });
});

describe("calls under way while a gateway shuts down", () => {
  const kinds = ["sdk v1", "sdk v2, negotiating"] as const;

  async function calling(kind: (typeof kinds)[number], graceMs: number, slow: { steps: number; stepMs: number }) {
    const registry = await startRegistry({ store: "memory" });
    const server = await offer(new RemoteRegistry(registry.grpc), "calling-server.mjs", ["--sdk", "v2"]);
    const { run, url } = await startGatewayProcess(registry.grpc, ["--grace", String(graceMs), "--gateway-always", "one/slow"]);
    const client = await connectClient(kind, url);
    const toolset = kind === "sdk v1" ? "" : toolsetIn((await client.call("find_tools", { intent: "takes its time" })).text);
    const call = kind === "sdk v1" ? client.call("one__slow", slow) : client.call("call_tool", { toolset, tool: "one/slow", arguments: slow });
    // What becomes of it is asked for below.
    call.catch(() => undefined);
    await eventually(async () => (await server.control({ op: "facts" }))["calls"] as Record<string, number>, ({ slow: calls }) => calls === 1);
    return { run, url, call };
  }

  it.each(kinds)("are waited for, and new ones turned away: %s", async (kind) => {
    const { run, url, call } = await calling(kind, 30_000, { steps: 30, stepMs: 100 });
    run.process.kill("SIGTERM");
    await eventually(() => run.stdout() + run.stderr(), (text) => text.includes("stopping"));
    const answer = fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(INITIALIZE) });
    // Nobody listens any more, or whoever still does says that it shuts down.
    expect(await answer.then(({ status }) => status, () => 503)).toBe(503);
    expect(await call).toMatchObject({ text: "done", isError: false });
    expect((await run.exit)[0]).toBe(0);
  });

  it.each(kinds)("are told when the grace is over that they may have been executed: %s", async (kind) => {
    const { run, call } = await calling(kind, 300, { steps: 600, stepMs: 100 });
    run.process.kill("SIGTERM");
    const { isError, text } = await call;
    expect(isError).toBe(true);
    expect(text).toMatch(/this gateway is shutting down\. The server was told to stop, and may have executed the call/);
    expect((await run.exit)[0]).toBe(0);
  });
});
