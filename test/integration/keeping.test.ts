/** Replicas that list, follow and load real MCP servers; only the transport in front is left out. */
import { describe, expect, it, onTestFinished } from "vitest";
import { Registry } from "../../src/catalogue/registry.js";
import type { Fault } from "../../src/domain/fault.js";
import { everything } from "../../src/domain/filter.js";
import { DEFAULT_NAMESPACE } from "../../src/domain/ids.js";
import { LIMITS } from "../../src/domain/limits.js";
import { systemClock, systemRandom } from "../../src/ops/system.js";
import { createClaims } from "../../src/probe/claims.js";
import { createIntake } from "../../src/probe/intake.js";
import { createKeeper } from "../../src/probe/keeper.js";
import { createWatchCodec } from "../../src/rpc/watch-codec.js";
import { createDefinitions } from "../../src/schemas/definitions.js";
import { createLister } from "../../src/schemas/lister.js";
import { createLoader } from "../../src/schemas/loader.js";
import type { Directory } from "../../src/schemas/ports.js";
import { stubCodec } from "../../src/store/codec/stub.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { createUpstream } from "../../src/upstream/upstream.js";
import { declare, introspect, Recorder, stubsOf } from "../support/replica.js";
import { startFixture } from "../support/servers.js";
import { localPolicy, silentLogger } from "../support/upstream.js";

const clock = systemClock;
const random = systemRandom;
const logger = silentLogger;
const ignore = (): void => undefined;

function startReplica(memory: MemoryStore) {
  const store = memory.attach();
  const partition = store.partitions[0];
  if (!partition) throw new Error("a store has a partition");
  const upstream = createUpstream({ clock, logger, version: "0.0.0", policy: localPolicy });
  const definitions = createDefinitions({ blobsOf: () => partition.blobs, clock, logger });
  const registry = new Registry({
    deps: {
      logger,
      stubs: stubCodec,
      upstream,
      now: () => clock.now(),
      onDefinitions: (ns, blobs) => definitions.prime(ns, blobs),
    },
    store,
    clock,
    random,
    watchCodec: createWatchCodec(stubCodec),
    observer: { commit: ignore, registered: ignore, relist: ignore, renewed: ignore, swept: ignore, blobsSwept: ignore },
    ring: { revisions: 10_000, bytes: 1 << 26 },
    maxWatchers: 100,
  });
  const history = (namespace: string) => registry.partitionOf(namespace).live().history;
  const directory: Directory = {
    server: (namespace, serverId) => history(namespace).server(namespace, serverId)?.record,
    holderOf: () => undefined,
    stale: (namespace) => registry.partitionOf(namespace).stale,
  };
  const listings: string[] = [];
  const relist: typeof lister.relist = (namespace, serverId) => lister.relist(namespace, serverId);
  const intake = createIntake({ writer: registry.listings, records: directory, relist, clock, random, logger });
  const lister = createLister({
    upstream,
    directory,
    intake,
    definitions,
    clock,
    logger,
    onListing: (r) => void listings.push(r),
  });
  registry.useLoader(createLoader({ definitions, directory, lister, codec: stubCodec, clock }));
  const claims = createClaims({ notesOf: () => partition.notes, replicaId: random.id(), clock, random, logger });
  const keeper = createKeeper({ records: directory, relist, upstream, claims, clock, random, logger });
  registry.onEntry(({ change }) => keeper.servers([change]));
  registry.start();
  let stopping: Promise<void> | undefined;
  const stop = () =>
    (stopping ??= (async () => {
      await keeper.stop();
      lister.stop();
      await intake.stop();
      await registry.stop();
      await upstream.close();
      await store.close();
    })());
  onTestFinished(stop);
  const schema = async (toolId: string, deadlineMs = 10_000) =>
    (await registry.schema({ namespace: "", key: { kind: "tool", toolId }, view: "full", minRevision: "", deadlineMs }))
      .schema;
  return { registry, keeper, listings, schema, stop };
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
    expect(a.keeper.counts().held + b.keeper.counts().held).toBe(1);
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
    await until("held", () => a.keeper.counts().held + b.keeper.counts().held === 1);
    await until("listed empty", () => a.listings.length + b.listings.length > 0);
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
    const listings = () => a.listings.length + b.listings.length;
    await a.registry.register(introspect("storm", server.url));
    await until("registered", () => watcher.events.length === 3);
    await until("listed on notices", () => listings() >= 4);
    await server.control({ op: "change", name: "tool_002", description: "Does it otherwise." });
    await until("changed", () => watcher.events.length > 3);
    // Two more listings repeat what the watcher has heard already.
    const before = listings();
    await until("listed again", () => listings() >= before + 2);
    expect(about(watcher).slice(3)).toEqual(["SCHEMA_INVALIDATED storm/tool_002"]);
    expect(new Set([...a.listings, ...b.listings])).toEqual(new Set(["ok"]));
  });
});

describe("a claim", () => {
  it("goes to the other replica when its holder stops, which then hears the changes", async () => {
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    const { a, b, watcher } = await twoReplicas();
    await a.registry.register(introspect("sdk", server.url));
    await until("held", () => a.keeper.counts().held + b.keeper.counts().held === 1);
    const [holder, other] = a.keeper.counts().held === 1 ? [a, b] : [b, a];
    // The watcher must outlive the holder, so it watches at the other one.
    const seen = new Recorder();
    await until("folded", async () => (await stubsOf(other.registry)).length === 3);
    await other.registry.watch({ filter: everything(DEFAULT_NAMESPACE), resumeToken: "", minRevision: "" }, seen);
    watcher.handle?.close();
    await holder.stop();
    await until("taken over", () => other.keeper.counts().held === 1);
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
    const stub = (await stubsOf(a.registry)).find((s) => s.toolId === "sdk/echo");
    expect(stub?.digest).toBe(first.digest);
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
    await until("the load's own deadline", () => a.listings.length > 0);
    expect(a.listings).toEqual(["timeout"]);
    await until(
      "unavailable",
      async () =>
        (await a.registry.server({ namespace: "", serverId: "silent", minRevision: "" })).server.header.availability ===
        "unavailable",
    );
  });
});
