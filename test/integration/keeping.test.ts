/** Replicas that list, follow and load real MCP servers; only the transport in front is left out. */
import { describe, expect, it, onTestFinished } from "vitest";
import { loadConfig } from "../../src/config/config.js";
import { assemble } from "../../src/core.js";
import type { Fault } from "../../src/domain/fault.js";
import { everything } from "../../src/domain/filter.js";
import { DEFAULT_NAMESPACE } from "../../src/domain/ids.js";
import { LIMITS } from "../../src/domain/limits.js";
import { systemClock, systemRandom } from "../../src/ops/system.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { NO_CREDENTIALS } from "../../src/upstream/credentials/credentials.js";
import { declare, introspect, Recorder, stubsOf } from "../support/replica.js";
import { startFixture } from "../support/servers.js";
import { localPolicy, silentLogger } from "../support/upstream.js";

const clock = systemClock;
const random = systemRandom;

const loaded = loadConfig({ argv: ["--store", "memory", "--probe-timeout", "1000"], env: {} });
if (!loaded.ok) throw new Error(loaded.errors.join("\n"));
const { config } = loaded;

function startReplica(memory: MemoryStore) {
  const store = memory.attach();
  const world = { clock, random, log: silentLogger, version: "0.0.0" };
  const core = assemble(config, world, store, localPolicy, { credentials: NO_CREDENTIALS });
  const { registry, metrics } = core;
  core.start();
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= core.stop().then(() => store.close()));
  onTestFinished(stop);
  const schema = async (toolId: string, deadlineMs = 10_000) =>
    (await registry.schema({ namespace: "", key: { kind: "tool", toolId }, view: "full", minRevision: "", deadlineMs }))
      .schema;
  return { registry, metrics, held: () => core.kept().held, schema, stop };
}

type Replica = ReturnType<typeof startReplica>;

/** How many listings of all replicas ended how. */
async function listingsOf(...replicas: readonly Replica[]): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { metrics } of replicas) {
    for (const { labels, value } of (await metrics.upstreamListings.get()).values) {
      const result = String(labels["result"]);
      sums[result] = (sums[result] ?? 0) + value;
    }
  }
  return sums;
}

async function until<T>(what: string, look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const endsAt = performance.now() + 20_000;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (performance.now() > endsAt) throw new Error(`never: ${what}`);
    await clock.sleep(20);
  }
}

async function twoReplicas() {
  const memory = new MemoryStore(clock, random);
  const a = startReplica(memory);
  const b = startReplica(memory);
  for (const { registry } of [a, b]) await until("started", () => registry.partitions[0]?.state.kind === "following");
  const watcher = new Recorder();
  watcher.handle = await b.registry.watch(
    { filter: everything(DEFAULT_NAMESPACE), resumeToken: "", minRevision: "" },
    watcher,
  );
  return { a, b, watcher };
}

const textOf = (bytes: Uint8Array): string =>
  (JSON.parse(new TextDecoder().decode(bytes)) as { description: string }).description;
const about = (w: Recorder) => w.events.filter((e) => e.id.includes("/")).map((e) => `${e.type} ${e.id}`);

describe.each([
  ["session era, SDK v1", ["--sdk", "v1"]],
  ["2026-07-28, SDK v2", ["--sdk", "v2"]],
])("an introspected server that changes while it runs (%s)", (_, args) => {
  it("shows a watcher on another replica one event per changed tool, and its next schema is the new one", async () => {
    const server = await startFixture("sdk-server.mjs", args);
    const { a, b, watcher } = await twoReplicas();
    await a.registry.register(introspect("sdk", server.url));
    await until("registered", () => watcher.events.length === 3);
    const subscribed = async () =>
      (await server.requests()).some((r) => r.http === "GET" || r.method === "subscriptions/listen");
    await until("subscribed", subscribed);
    expect(a.held() + b.held()).toBe(1);
    expect(textOf((await b.schema("sdk/echo")).definition)).toBe("Says it again.");

    watcher.events.length = 0;
    await server.control({ op: "change", name: "echo", description: "Says it twice." });
    await until("changed", () => watcher.events.length > 0);
    expect(about(watcher)).toEqual(["SCHEMA_INVALIDATED sdk/echo"]);
    expect(watcher.events[0]?.old).not.toBe(watcher.events[0]?.new);
    expect(await b.schema("sdk/echo")).toMatchObject({ digest: watcher.events[0]?.new, freshness: "cached" });
    expect(textOf((await b.schema("sdk/echo")).definition)).toBe("Says it twice.");

    await server.control({ op: "add", name: "zip" });
    await until("added", () => watcher.events.length > 1);
    await server.control({ op: "remove", name: "greet" });
    await until("removed", () => watcher.events.length > 2);
    expect(about(watcher)).toEqual(["SCHEMA_INVALIDATED sdk/echo", "REGISTERED sdk/zip", "DEREGISTERED sdk/greet"]);
  });
});

describe("a server that lists nothing while it starts", () => {
  it("is pending, not empty, and is listed at once when it says that its tools are there", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "empty-first-10s", "--empty-ms", "3600000"]);
    const { a, b, watcher } = await twoReplicas();
    await a.registry.register(introspect("slow", server.url));
    await until("held", () => a.held() + b.held() === 1);
    await until("listed empty", async () => (await listingsOf(a, b))["ok"]);
    const read = async () => (await b.registry.server({ namespace: "", serverId: "slow", minRevision: "" })).server;
    expect((await read()).header.pending).toBe(true);
    await until("subscribed", async () =>
      (await server.requests()).some((r) => r.http === "GET" || r.method === "subscriptions/listen"),
    );
    await server.control({ op: "fill" });
    await until("listed", () => about(watcher).length === 3);
    expect((await read()).header.pending).toBe(false);
    expect(about(watcher).every((e) => e.startsWith("REGISTERED slow/"))).toBe(true);
  });
});

describe("a server that says every 5 ms, and in every answer, that its list changed", () => {
  it("is kept current all the same, with one event per changed tool", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "notice-storm"]);
    const { a, b, watcher } = await twoReplicas();
    const listings = async () => (await listingsOf(a, b))["ok"] ?? 0;
    await a.registry.register(introspect("storm", server.url));
    await until("registered", () => watcher.events.length === 3);
    await until("listed on notices", async () => (await listings()) >= 4);
    await server.control({ op: "change", name: "tool_002", description: "Does it otherwise." });
    await until("changed", () => watcher.events.length > 3);
    // Two more listings repeat what the watcher has heard already.
    const before = await listings();
    await until("listed again", async () => (await listings()) >= before + 2);
    expect(about(watcher).slice(3)).toEqual(["SCHEMA_INVALIDATED storm/tool_002"]);
    expect(Object.keys(await listingsOf(a, b))).toEqual(["ok"]);
  });
});

describe("a claim", () => {
  it("goes to the other replica when its holder stops, which then hears the changes", async () => {
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    const { a, b, watcher } = await twoReplicas();
    await a.registry.register(introspect("sdk", server.url));
    await until("held", () => a.held() + b.held() === 1);
    const [holder, other] = a.held() === 1 ? [a, b] : [b, a];
    // The watcher must outlive the holder, so it watches at the other one.
    const seen = new Recorder();
    await until("folded", async () => (await stubsOf(other.registry)).length === 3);
    await other.registry.watch({ filter: everything(DEFAULT_NAMESPACE), resumeToken: "", minRevision: "" }, seen);
    watcher.handle?.close();
    await holder.stop();
    await until("taken over", () => other.held() === 1);
    await server.control({ op: "add", name: "zip" });
    await until("heard", () => about(seen).includes("REGISTERED sdk/zip"));
  });
});

describe("a declared server", () => {
  it("has its digests learned from the first load, on every replica", async () => {
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v1"]);
    const { a, b, watcher } = await twoReplicas();
    await a.registry.register(declare("sdk", ["echo", "greet"], { endpoint: server.url }));
    await until("registered", () => watcher.events.length === 2);
    const first = await b.schema("sdk/echo");
    expect(first.freshness).toBe("live");
    await until("learned", () => watcher.events.length === 4);
    expect(about(watcher).slice(2)).toEqual(["UPDATED sdk/echo", "UPDATED sdk/greet"]);
    // The watcher is one of b.
    await until("learned by a", async () => (await stubsOf(a.registry)).some((s) => s.toolId === "sdk/echo" && s.digest === first.digest));
    expect(await a.schema("sdk/echo", 0).catch(() => a.schema("sdk/echo"))).toMatchObject({
      digest: first.digest,
      definition: first.definition,
    });
  });

  it("that accepts TCP and never answers costs 200 callers their deadline, and one listing", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "silent"]);
    const { a, watcher } = await twoReplicas();
    await a.registry.register(declare("silent", ["one", "two"], { endpoint: server.url }));
    await until("registered", () => watcher.events.length === 2);
    const ask = (i: number) => a.schema(`silent/${i % 2 ? "one" : "two"}`, LIMITS.loadCallerMs);
    const faults = await Promise.all(Array.from({ length: 200 }, (_, i) => ask(i).catch((err: Fault) => err.reason)));
    expect(new Set(faults)).toEqual(new Set(["LOAD_PENDING"]));
    await until("the load's own deadline", async () => (await listingsOf(a))["timeout"]);
    expect(await listingsOf(a)).toEqual({ timeout: 1 });
    await until(
      "unavailable",
      async () =>
        (await a.registry.server({ namespace: "", serverId: "silent", minRevision: "" })).server.header.availability ===
        "unavailable",
    );
  });
});
