/** Real MCP servers that fall ill in front of a real registry: what becomes of their health, and what agents are told. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { refusalOf } from "../support/details.js";
import { startWire } from "../support/proxy.js";
import { RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

/** So quick that a fall takes about a second. */
const INTERVAL_MS = 300;
const QUICK = ["--probe-interval", String(INTERVAL_MS), "--probe-timeout", "500"];

let folder: string;
let registry: RegistryProcess;
let api: RemoteRegistry;
let healthy: Fixture;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-health-"));
  registry = await startRegistry({ store: "memory", args: QUICK, keep: true, dataDir: folder });
  api = new RemoteRegistry(registry.grpc, true);
  // Most servers are well all the time, or the registry would take it for its own fault.
  healthy = await startFixture("faulty-server.mjs", ["--fault", "moody"], { keep: true });
  for (let i = 0; i < 12; i++) await declare(`healthy-${i}`, healthy.url);
});
afterAll(async () => {
  await healthy.stop();
  api.client.close();
  await registry.kill();
  await rm(folder, { recursive: true, force: true });
});

const moody = (...args: string[]) => startFixture("faulty-server.mjs", ["--fault", "moody", ...args]);
/** Its tools by name alone, so that a load has to ask the server. */
const declare = (serverId: string, endpoint: string, more: object = {}) => {
  const stubs = [{ name: "tool_001", substitutes: ["other/tool_001"] }, { name: "tool_002" }];
  const instance = { instanceId: "instance-1", leaseTtl: { seconds: 600 } };
  return api.call("register", { serverId, endpoint, ...instance, declared: { tools: stubs.map((stub) => ({ stub })) }, ...more });
};
const serverOf = async (serverId: string, at = api) => (await at.call("getServer", { serverId })).server;
const holding = (server: any): string[] =>
  server.conditions
    .filter((c: any) => c.status === "CONDITION_STATUS_TRUE")
    .map((c: any) => c.type.replace("CONDITION_TYPE_", ""))
    .sort();
const reachable = (server: any) => server.conditions.find((c: any) => c.type === "CONDITION_TYPE_REACHABLE");
const isUp = (server: any): boolean => server.availability === "AVAILABILITY_AVAILABLE";
const isDown = (server: any): boolean => server.availability === "AVAILABILITY_UNAVAILABLE";
const seen = (serverId: string) => eventually(() => serverOf(serverId), (s) => reachable(s)?.status === "CONDITION_STATUS_TRUE");
const fallen = (serverId: string) => eventually(() => serverOf(serverId), isDown);
const risen = (serverId: string) => eventually(() => serverOf(serverId), isUp, 40_000);
const load = (toolId: string, deadlineMs = 15_000) => api.call("getFullSchema", { toolId }, deadlineMs);

/** Requests by which a server is looked at. */
const LOOKS: readonly (string | null)[] = ["server/discover", "initialize", "ping"];
const looksAt = async (fixture: Fixture) => (await fixture.requests()).filter((r) => LOOKS.includes(r.method));
/** Waits for that many looks more. */
async function looked(fixture: Fixture, more: number): Promise<void> {
  const before = (await looksAt(fixture)).length;
  await eventually(async () => (await looksAt(fixture)).length, (count) => count >= before + more);
}
const changes = (told: readonly string[], serverId: string) => told.filter((t) => t === `AVAILABILITY_CHANGED ${serverId}`).length;

describe("a server that goes down", () => {
  it("is called unavailable and says why; what is stored is served STALE, the rest fails at once; it comes back by itself", async () => {
    const fixture = await moody();
    const wire = await startWire(Number(new URL(fixture.url).port));
    await declare("other", fixture.url);
    await api.call("register", {
      serverId: "down",
      instanceId: "instance-1",
      endpoint: `http://127.0.0.1:${wire.port}/mcp`,
      leaseTtl: { seconds: 600 },
      declared: {
        tools: [
          { definition: Buffer.from('{"name":"kept","inputSchema":{"type":"object"}}') },
          { stub: { name: "tool_001", substitutes: ["other/tool_001"] } },
        ],
      },
    });
    const watch = api.watch();
    await watch.ready();
    await Promise.all([seen("down"), seen("other")]);
    await wire.cut();

    const down = await fallen("down");
    expect(down).toMatchObject({ breaker: "BREAKER_STATE_OPEN", breakerDetail: { state: "BREAKER_STATE_OPEN" } });
    expect(down.nextProbe).not.toBeNull();
    expect(reachable(down)).toMatchObject({ status: "CONDITION_STATUS_FALSE", reason: "CONNECT_FAILED" });
    expect(down.instances[0].availability).toBe("AVAILABILITY_UNAVAILABLE");
    await eventually(() => changes(watch.told, "down"), (count) => count === 1);
    const { stubs } = await api.call("getStubs", { filter: { serverIds: ["down"] } });
    expect(stubs.map((s: any) => s.availability)).toEqual(Array(2).fill("AVAILABILITY_UNAVAILABLE"));

    expect((await load("down/kept")).schema.freshness).toBe("FRESHNESS_STALE");
    const refused = await refusalOf(load("down/tool_001"));
    expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "BREAKER_OPEN", substitutes: ["other/tool_001"] });
    expect(refused.retryMs).toBeGreaterThan(0);
    expect(refused.message).toMatch(/down since/);

    await wire.mend();
    await risen("down");
    const back = await eventually(() => serverOf("down"), (s) => s.breaker === "BREAKER_STATE_CLOSED");
    expect(holding(back)).toContain("REACHABLE");
    await eventually(() => changes(watch.told, "down"), (count) => count === 2);
    expect((await load("down/tool_001")).schema.freshness).toMatch(/LIVE|CACHED/);
    expect((await load("down/kept")).schema.freshness).toBe("FRESHNESS_CACHED");
    // An outage is no invalidation.
    expect(watch.told.filter((t) => /DEREGISTERED|SCHEMA_INVALIDATED/.test(t) && t.includes("down"))).toEqual([]);
  });

  it("answers 200 callers at half-open at once, and is dialled by its trial alone", async () => {
    const fixture = await moody();
    await declare("half", fixture.url, { probe: { timeout: { seconds: 8 }, fall: 1 } });
    await seen("half");
    await fixture.control({ op: "mood", mood: "silent" });
    await fallen("half");
    const before = (await fixture.requests()).length;
    await eventually(() => serverOf("half"), (s) => s.breaker === "BREAKER_STATE_HALF_OPEN");
    const refused = await Promise.all(Array.from({ length: 200 }, () => refusalOf(load("half/tool_002", 15_000))));
    expect(new Set(refused.map((r) => r.reason))).toEqual(new Set(["BREAKER_OPEN"]));
    expect(refused.every((r) => (r.retryMs ?? 0) > 0)).toBe(true);
    expect(await serverOf("half")).toMatchObject({ breaker: "BREAKER_STATE_HALF_OPEN" });
    const asked = (await fixture.requests()).slice(before).map((r) => r.method);
    // The handshake of a trial may be one request of each era.
    expect(asked.filter((m) => m === "tools/list")).toEqual([]);
    expect(asked.length).toBeLessThanOrEqual(2);
  });

  it("and up and down, again and again, yields few events", async () => {
    const fixture = await moody();
    await declare("flapping", fixture.url);
    await seen("flapping");
    const watch = api.watch({ filter: { serverIds: ["flapping"] } });
    await watch.ready();
    await fixture.control({ op: "mood", mood: "500", everyMs: 1_500 });
    await eventually(async () => (await fixture.control({ op: "turns" }))["turns"], (turns) => Number(turns) >= 16, 40_000);
    await eventually(() => changes(watch.told, "flapping"), (count) => count > 0);
    expect(changes(watch.told, "flapping")).toBeLessThanOrEqual(4);
    // Its first listing teaches the digests; nothing else is news of its tools.
    expect(watch.told.filter((t) => !/^AVAILABILITY_CHANGED|^UPDATED/.test(t))).toEqual([]);
  });
});

describe("a server that is there, but not as it should be", () => {
  it("wants credentials (401 + WWW-Authenticate): AuthRequired and Reachable, no breaker, available", async () => {
    const fixture = await moody("--mood", "401");
    await declare("auth", fixture.url);
    const server = await eventually(() => serverOf("auth"), (s) => holding(s).includes("AUTH_REQUIRED"));
    await looked(fixture, 5);
    const after = await serverOf("auth");
    expect(holding(after)).toEqual(["AUTH_REQUIRED", "REACHABLE"]);
    expect(after).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED", etag: server.etag });
    const refused = await refusalOf(load("auth/tool_001"));
    expect(refused).toMatchObject({ reason: "LOAD_FAILED", metadata: { kind: "auth" } });
    await fixture.control({ op: "mood" });
    await eventually(() => serverOf("auth"), (s) => !holding(s).includes("AUTH_REQUIRED"));
  });

  it("wants credentials for its list alone: AuthRequired holds, however often a probe is answered", async () => {
    const fixture = await moody();
    await fixture.control({ op: "mood", mood: "401", only: "tools/list" });
    await declare("auth-list", fixture.url);
    await seen("auth-list");
    await refusalOf(load("auth-list/tool_001"));
    const server = await eventually(() => serverOf("auth-list"), (s) => holding(s).includes("AUTH_REQUIRED"));
    await looked(fixture, 5);
    expect(await serverOf("auth-list")).toMatchObject({ etag: server.etag, breaker: "BREAKER_STATE_CLOSED" });
  });

  it("is throttling (429 + Retry-After): available, and not looked at before", async () => {
    const fixture = await moody("--mood", "429");
    await fixture.control({ op: "mood", mood: "429", retryAfter: 2 });
    await declare("throttling", fixture.url);
    await looked(fixture, 3);
    const at = (await looksAt(fixture)).map((r) => r.atMs ?? 0);
    expect(Math.min(...at.slice(1).map((ms, i) => ms - (at[i] ?? 0)))).toBeGreaterThan(1_900);
    expect(await serverOf("throttling")).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED" });
  });

  it("is going (503 + Retry-After): Draining, not looked at before, and down after three", async () => {
    const fixture = await moody();
    await declare("going", fixture.url);
    await seen("going");
    await fixture.control({ op: "mood", mood: "503", retryAfter: 2 });
    const before = (await looksAt(fixture)).length;
    await eventually(() => serverOf("going"), (s) => holding(s).includes("DRAINING"));
    await fallen("going");
    const at = (await looksAt(fixture)).slice(before).map((r) => r.atMs ?? 0);
    expect(Math.min(...at.slice(1).map((ms, i) => ms - (at[i] ?? 0)))).toBeGreaterThan(1_900);
  });

  // Each waits mostly for the pace of conditions and for backoff, so they wait together.
  it.concurrent.each([
    ["html", "CONDITION_STATUS_TRUE", /PROTOCOL_ERROR|HTTP_ERROR/],
    ["500", "CONDITION_STATUS_TRUE", /HTTP_ERROR/],
    ["drip", "CONDITION_STATUS_FALSE", /TIMEOUT/],
    ["endless", "CONDITION_STATUS_TRUE", /TOO_LARGE/],
    ["silent", "CONDITION_STATUS_FALSE", /TIMEOUT/],
  ])("answers everything with %s: down within three looks, with its reason, and up again when it answers", async (mood, reached, reason) => {
    const serverId = `mood-${mood}`;
    const fixture = await startFixture("faulty-server.mjs", ["--fault", "moody"], { keep: true });
    try {
      await declare(serverId, fixture.url);
      await seen(serverId);
      await fixture.control({ op: "mood", mood });
      const down = await fallen(serverId);
      expect(reachable(down)).toMatchObject({ status: reached, reason: expect.stringMatching(reason) });
      await fixture.control({ op: "mood" });
      await risen(serverId);
      expect((await load(`${serverId}/tool_001`)).schema.definition.length).toBeGreaterThan(0);
    } finally {
      await fixture.stop();
    }
  });

  it.each(["batch", "cursor-alternating", "cursor-endless"])("lists with the fault %s: its probes are answered, and it stays up", async (fault) => {
    const fixture = await startFixture("faulty-server.mjs", ["--fault", fault]);
    await declare(fault, fixture.url);
    await seen(fault);
    await load(`${fault}/tool_001`).catch(() => undefined);
    await looked(fixture, 4);
    expect(await serverOf(fault)).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED" });
  });
});

describe("eras", () => {
  it.each([
    ["modern", "server/discover"],
    ["legacy", "ping"],
    ["dual", "server/discover"],
  ])("a %s server is healthy, and is looked at by %s", async (era, method) => {
    const fixture = await moody("--era", era);
    await declare(`era-${era}`, fixture.url);
    await seen(`era-${era}`);
    await eventually(async () => (await fixture.requests()).filter((r) => r.method === method).length, (count) => count >= 4);
    expect(await serverOf(`era-${era}`)).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED" });
  });
});

describe("two instances of one server", () => {
  it("one killed: the server stays available, each instance says how it is, and loads go to the other one", async () => {
    const [one, two] = await Promise.all([moody(), moody()]);
    await declare("twin", one.url, { instanceId: "instance-1" });
    await declare("twin", two.url, { instanceId: "instance-2" });
    await seen("twin");
    const watch = api.watch({ filter: { serverIds: ["twin"] } });
    await watch.ready();
    await two.stop();
    const availabilities = async () =>
      Object.fromEntries((await serverOf("twin")).instances.map((i: any) => [i.instanceId, i.availability]));
    await eventually(availabilities, (all) => all["instance-2"] === "AVAILABILITY_UNAVAILABLE");
    expect(await availabilities()).toMatchObject({ "instance-1": "AVAILABILITY_AVAILABLE" });
    expect((await load("twin/tool_001")).schema.freshness).toBe("FRESHNESS_LIVE");
    expect((await one.requests()).filter((r) => r.method === "tools/list")).toHaveLength(1);
    expect(await serverOf("twin")).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", breaker: "BREAKER_STATE_CLOSED" });
    expect(changes(watch.told, "twin")).toBe(0);
  });
});

describe("a server with its own probe settings", () => {
  it("shows them, and is probed by them", async () => {
    const fixture = await moody();
    await declare("own", fixture.url, { probe: { interval: { seconds: 3600 }, timeout: { seconds: 1 }, fall: 2, rise: 5 } });
    await seen("own");
    const before = (await looksAt(fixture)).length;
    const other = await moody();
    await declare("usual", other.url);
    await looked(other, 5);
    expect((await looksAt(fixture)).length).toBe(before);
    const { instances } = await serverOf("own");
    expect(instances[0].probe).toMatchObject({ interval: { seconds: 3600 }, timeout: { seconds: 1 }, fall: 2, rise: 5, off: false });
    expect((await serverOf("usual")).instances[0].probe).toBeNull();
  });

  it("that asks for none is never dialled, and available", async () => {
    const fixture = await moody("--mood", "500");
    const other = await moody();
    await declare("unprobed", fixture.url, { probe: { off: true } });
    await declare("probed", other.url);
    await looked(other, 5);
    expect(await fixture.requests()).toEqual([]);
    expect(await serverOf("unprobed")).toMatchObject({ availability: "AVAILABILITY_AVAILABLE", conditions: [] });
  });
});

describe("a registry that is cut off from ten servers at once", () => {
  it("panics: it says so everywhere but to watchers, changes nothing, and goes on when the way is open again", async () => {
    const cutOff = await startRegistry({ store: "memory", args: QUICK });
    const at = new RemoteRegistry(cutOff.grpc);
    const fixture = await moody();
    const wires = await Promise.all(Array.from({ length: 10 }, () => startWire(Number(new URL(fixture.url).port))));
    const names = wires.map((_, i) => `ten-${i}`);
    for (const [i, wire] of wires.entries()) {
      const tool = { definition: Buffer.from('{"name":"work","inputSchema":{"type":"object"}}') };
      const endpoint = `http://127.0.0.1:${wire.port}/mcp`;
      await at.call("register", { serverId: names[i], instanceId: "instance-1", endpoint, leaseTtl: { seconds: 600 }, declared: { tools: [tool] } });
    }
    const servers = async () => (await at.call("listServers", {})) as { servers: any[]; notices: any[] };
    await eventually(servers, (s) => s.servers.every((one) => reachable(one)?.status === "CONDITION_STATUS_TRUE"));
    const before = (await servers()).servers.map((s) => s.revision);
    const watch = at.watch();
    await watch.ready();
    const panic = async () => /^toolcrib_panic (\d)/m.exec(await (await fetch(`${cutOff.ops}/metrics`)).text())?.[1];
    expect(await panic()).toBe("0");

    for (const wire of wires) wire.swallow();
    await eventually(panic, (value) => value === "1");
    const during = await servers();
    expect(during.notices).toMatchObject([{ kind: "KIND_PANIC", message: expect.stringMatching(/of 10 servers/) }]);
    await eventually(() => cutOff.output(), (text) => text.includes("most servers turned bad at once"));
    await eventually(async () => (await servers()).notices[0]?.message, (text) => /^10 of 10/.test(text ?? ""));
    expect(during.servers.every(isUp)).toBe(true);

    for (const wire of wires) {
      await wire.cut();
      await wire.mend();
    }
    await eventually(panic, (value) => value === "0");
    await looked(fixture, 30);
    const after = await servers();
    expect(after.notices).toEqual([]);
    expect(after.servers.map((s) => s.revision)).toEqual(before);
    expect(watch.told).toEqual([]);
  });
});
