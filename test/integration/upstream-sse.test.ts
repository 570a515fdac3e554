/** Servers of the transport of 2024-11-05, which are kept up by the official SDK v1. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Transport } from "../../src/domain/server.js";
import type { ClosableUpstream } from "../../src/upstream/upstream.js";
import { toolcribDone } from "../support/cli.js";
import { FakeClock } from "../support/fake-clock.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually, failureOf, soon, startUpstream } from "../support/upstream.js";

const NAMES = ["add", "echo", "greet"];
const start = (...args: string[]) => startFixture("sse-server.mjs", args);
const streams = async (server: Fixture) => Number((await server.control({ op: "streams" }))["streams"]);
const list = (upstream: ClosableUpstream, server: Fixture) => upstream.list(server.url, soon(), undefined, "http-sse");
/** `http method` of all that the server was asked. */
const asked = async (server: Fixture) => (await server.requests()).map(({ http, method }) => `${http} ${method ?? ""}`.trim());

function subscribe(upstream: ClosableUpstream, server: Fixture, transport: Transport = "http-sse") {
  const leaving = new AbortController();
  let heard = 0;
  const ended = upstream.subscribe(server.url, () => heard++, leaving.signal, undefined, transport);
  ended.catch(() => undefined);
  onTestFinished(() => leaving.abort());
  return { heard: () => heard, ended, leave: () => leaving.abort() };
}

/** name → the tool's text as the server's own SDK writes it. */
async function wireTexts(server: Fixture): Promise<Map<string, string>> {
  const stream = await fetch(server.url, { headers: { accept: "text/event-stream" } });
  const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const until = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const found = pattern.exec(text)?.[1];
      if (found !== undefined) return found;
      text += (await reader.read()).value ?? "";
    }
  };
  const place = new URL(await until(/event: endpoint\ndata: (.*)\n\n/), server.url);
  const post = (message: object) =>
    fetch(place, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message) });
  const params = { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  await post({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  await until(/data: (\{"result":\{"protocolVersion".*\})\n\n/);
  await post({ jsonrpc: "2.0", method: "notifications/initialized" });
  await post({ jsonrpc: "2.0", id: 2, method: "tools/list", params: {} });
  const { result } = JSON.parse(await until(/data: (\{"result":\{"tools".*\})\n\n/)) as { result: { tools: { name: string }[] } };
  await reader.cancel();
  return new Map(result.tools.map((tool) => [tool.name, JSON.stringify(tool)]));
}

describe("a registered server", () => {
  it("is listed, its definitions are verbatim, and a tool added while it runs is seen by a watcher", { timeout: 60_000 }, async () => {
    const server = await start();
    const registry = await startRegistry({ store: "memory" });
    const remote = new RemoteRegistry(registry.grpc);
    const done = await toolcribDone(["register", "--registry", registry.grpc, "--id", "old", "--url", server.url, "--transport", "sse"]);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("3 tools listed") });
    expect((await remote.toolIds()).sort()).toEqual(NAMES.map((name) => `old/${name}`));

    const { server: known } = await remote.call("getServer", { serverId: "old" });
    expect(known).toMatchObject({ protocolVersion: expect.stringMatching(/^20/), instances: [{ transport: "TRANSPORT_HTTP_SSE", endpoint: server.url }] });
    const { servers } = await remote.call("listServers");
    expect(servers).toMatchObject([{ instances: [{ transport: "TRANSPORT_HTTP_SSE" }] }]);

    for (const [name, text] of await wireTexts(server)) {
      const { schema } = await remote.call("getFullSchema", { toolId: `old/${name}` }, 10_000);
      expect(Buffer.from(schema.definition).toString()).toBe(text);
    }

    const watch = remote.watch();
    await watch.ready();
    await eventually(() => streams(server), (open) => open > 0);
    await server.control({ op: "add", name: "extra" });
    await eventually(() => watch.told, (told) => told.includes("REGISTERED old/extra"));
    expect((await asked(server)).filter((one) => one.startsWith("POST server/discover"))).toEqual([]);
  });
});

it("a registered server that is started again, on the same port, is followed again under its id", { timeout: 60_000 }, async () => {
  const first = await start();
  const registry = await startRegistry({ store: "memory" });
  const remote = new RemoteRegistry(registry.grpc);
  // Without a transport: what it speaks is found out.
  await remote.call("register", { serverId: "old", endpoint: first.url, standing: true, introspect: {} });
  const watch = remote.watch();
  await watch.ready();
  await eventually(() => streams(first), (open) => open > 0);
  await first.stop();
  const second = await start("--port", new URL(first.url).port);
  await eventually(() => streams(second), (open) => open > 0, 40_000);
  await second.control({ op: "add", name: "after_the_restart" });
  await eventually(() => watch.told, (told) => told.includes("REGISTERED old/after_the_restart"));
  const { schema } = await remote.call("getFullSchema", { toolId: "old/after_the_restart" }, 10_000);
  expect(Buffer.from(schema.definition).toString()).toContain("Does after_the_restart.");
});

it("import takes entries of type sse, and doctor finds nothing wrong with them", { timeout: 60_000 }, async () => {
  const server = await start();
  const registry = await startRegistry({ store: "memory" });
  const config = join(await temporaryFolder(), "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { old: { type: "sse", url: server.url } } }));
  const done = await toolcribDone(["import", config, "--yes", "--registry", registry.grpc]);
  expect(done, done.stdout + done.stderr).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/^old +old +registered +3$/m);
  const remote = new RemoteRegistry(registry.grpc);
  const { server: known } = await remote.call("getServer", { serverId: "old" });
  expect(known.instances).toMatchObject([{ transport: "TRANSPORT_HTTP_SSE" }]);

  const servers = await toolcribDone(["servers", "--registry", registry.grpc]);
  expect(servers.stdout).toMatch(new RegExp(`^old +3 .*${server.url}$`, "m"));
  const doctor = await toolcribDone(["doctor", "--registry", registry.grpc, "--ops", registry.ops]);
  expect(doctor.stdout).toMatch(/server old/);
  expect(doctor.stdout).not.toMatch(/404|cannot be reached/);
});

describe("a server whose transport is not known", () => {
  it("is asked for its stream where it refuses initialize, and not asked anew for each listing", async () => {
    const server = await start();
    const clock = new FakeClock();
    const upstream = startUpstream(clock);
    const first = await upstream.list(server.url, soon());
    expect(first).toMatchObject({ era: "legacy", listChanged: true });
    expect(first.tools.map(({ name }) => name)).toEqual(NAMES);
    const handshake = ["GET", "POST initialize", "POST notifications/initialized", "POST tools/list"];
    expect(await asked(server)).toEqual(["POST server/discover", "POST initialize", ...handshake]);

    await upstream.list(server.url, soon());
    await clock.advance(60_000);
    await eventually(() => streams(server), (open) => open === 0);
    const before = await asked(server);
    expect(before.slice(6)).toEqual(["POST tools/list"]);
    await upstream.list(server.url, soon());
    expect((await asked(server)).slice(before.length)).toEqual(handshake);
  });

  it("is looked at again after a while; the stream that is used meanwhile stays", async () => {
    const server = await start();
    const clock = new FakeClock();
    const upstream = startUpstream(clock);
    await upstream.list(server.url, soon());
    const { leave } = subscribe(upstream, server, "streamable-http");
    expect(await streams(server)).toBe(1);
    await clock.advance(3_700_000);
    const before = (await asked(server)).length;
    expect((await upstream.list(server.url, soon())).tools).toHaveLength(3);
    expect((await asked(server)).slice(before)).toEqual(["POST server/discover", "POST initialize", "POST tools/list"]);
    leave();
  });

  it("is one of Streamable HTTP now: a failed stream makes it looked at in full", async () => {
    const old = await start();
    const clock = new FakeClock();
    const upstream = startUpstream(clock);
    await upstream.list(old.url, soon());
    await old.stop();
    const newer = await startFixture("sdk-server.mjs", ["--sdk", "v1", "--port", new URL(old.url).port]);
    expect((await upstream.list(old.url, soon())).tools).toHaveLength(3);
    expect((await newer.requests()).map(({ http }) => http)).toContain("POST");
  });
});

describe("the stream", () => {
  it("brings notices, one by one, and serves listings beside them", async () => {
    const server = await start();
    const upstream = startUpstream();
    await list(upstream, server);
    const { heard, ended, leave } = subscribe(upstream, server);
    expect(await streams(server)).toBe(1);
    for (const body of [{ op: "add", name: "extra" }, { op: "change", name: "echo", description: "Otherwise." }, { op: "remove", name: "greet" }]) {
      const before = heard();
      await server.control(body);
      await eventually(heard, (count) => count > before);
    }
    const { tools } = await list(upstream, server);
    expect(tools.map(({ name }) => name)).toEqual(["add", "echo", "extra"]);
    expect(await streams(server)).toBe(1);
    leave();
    await ended;
  });

  it("that ends is an error, and may have lost notices when it is opened again", async () => {
    const server = await start();
    const upstream = startUpstream();
    await list(upstream, server);
    const first = subscribe(upstream, server);
    expect(await streams(server)).toBe(1);
    await server.control({ op: "drop-streams" });
    expect(await failureOf(first.ended)).toMatchObject({ kind: "connect", message: expect.stringContaining("ended its event stream") });
    expect(first.heard()).toBe(0);
    const second = subscribe(upstream, server);
    await eventually(second.heard, (heard) => heard === 1);
  });

  it("is closed when nobody has used it for a while, and when the registry stops", async () => {
    const server = await start();
    const clock = new FakeClock();
    const upstream = startUpstream(clock);
    await list(upstream, server);
    await clock.advance(29_000);
    expect(await streams(server)).toBe(1);
    await clock.advance(1_000);
    await eventually(() => streams(server), (open) => open === 0);
    await list(upstream, server);
    expect(await streams(server)).toBe(1);
    await upstream.close();
    await eventually(() => streams(server), (open) => open === 0);
  });

  it("that is gone is opened anew by the next listing, also of a server that was started again", async () => {
    const server = await start();
    const upstream = startUpstream();
    await list(upstream, server);
    await server.control({ op: "drop-streams" });
    await eventually(() => streams(server), (open) => open === 0);
    expect((await list(upstream, server)).tools).toHaveLength(3);
    await server.stop();
    const again = await start("--port", new URL(server.url).port);
    expect((await list(upstream, again)).tools).toHaveLength(3);
  });

  it("brings a list page by page", async () => {
    const server = await start("--paged");
    const { tools } = await list(startUpstream(), server);
    expect(tools.map(({ name }) => name)).toEqual(NAMES);
    expect((await asked(server)).filter((one) => one === "POST tools/list")).toHaveLength(3);
  });

  it("is one for all who ask at the same time", async () => {
    const server = await start();
    const upstream = startUpstream();
    const listings = await Promise.all(Array.from({ length: 10 }, () => list(upstream, server)));
    for (const { tools } of listings) expect(tools).toHaveLength(3);
    expect((await asked(server)).filter((one) => one === "GET")).toHaveLength(1);
  });
});
