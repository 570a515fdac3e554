/** Real MCP servers that go wrong in front of a real registry: what it lists, loads and says then. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Metadata, status } from "@grpc/grpc-js";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { definitionDigest } from "../../src/domain/digest.js";
import { detailsOf, refusalOf } from "../support/details.js";
import { listedTexts } from "../support/mcp.js";
import { flush, toldOf } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import { RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

let registry: RegistryProcess;
let api: RemoteRegistry;
beforeEach(async () => {
  registry = await startRegistry({ store: "memory" });
  api = new RemoteRegistry(registry.grpc);
});

const introspect = (serverId: string, endpoint: string): Promise<any> =>
  api.call("register", { serverId, endpoint, standing: true, introspect: {} });
const declare = (serverId: string, endpoint: string, stubs: readonly object[]) =>
  api.call("register", {
    serverId,
    endpoint,
    instanceId: "instance-1",
    declared: { tools: stubs.map((stub) => ({ stub })) },
  });
const serverOf = async (serverId: string) => (await api.call("getServer", { serverId })).server;
const condition = async (serverId: string, type: string) =>
  (await serverOf(serverId)).conditions.find((c: { type: string }) => c.type === `CONDITION_TYPE_${type}`);
const load = (toolId: string, deadlineMs = 15_000) => api.call("getFullSchema", { toolId }, deadlineMs);

/**
 * As a caller with this deadline asks, but without its timer: on a busy machine that would fire before the answer is read.
 * The registry itself ends the call with DEADLINE_EXCEEDED if its answer is late.
 */
function callWithin(deadlineMs: number, method: string, request: object) {
  const metadata = new Metadata();
  metadata.set("grpc-timeout", `${deadlineMs}m`);
  return api.call(method, request, Number.POSITIVE_INFINITY, metadata);
}

describe("paging", () => {
  it.each(["legacy", "modern"])("a tool on page 3 of 101 tools is listed and loaded (%s)", async (era) => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "paged-101", "--era", era]);
    const answer = await introspect("paged", server.url);
    expect(answer.tools).toHaveLength(101);
    expect(await api.toolIds({ pageSize: 40 })).toHaveLength(101);

    // A registrant that gives names alone: the definition and its digest come from the server.
    await declare("lazy", server.url, [{ name: "tool_101" }, { name: "tool_001" }]);
    const watch = api.watch({ filter: { serverIds: ["lazy"] } });
    await watch.ready();
    expect(watch.stubs.map((s) => s.digest)).toEqual(["", ""]);
    const { schema } = await load("lazy/tool_101");
    expect(JSON.parse(schema.definition.toString())).toMatchObject({ name: "tool_101" });
    expect(schema.freshness).toBe("FRESHNESS_LIVE");
    await eventually(
      () => watch.told,
      (told) => told.length === 2,
    );
    expect(watch.told.sort()).toEqual(["UPDATED lazy/tool_001", "UPDATED lazy/tool_101"]);
    expect(watch.events.find((e) => e.toolId === "lazy/tool_101")).toMatchObject({
      oldDigest: "",
      newDigest: schema.digest,
    });
    expect((await load("lazy/tool_001")).schema.freshness).toBe("FRESHNESS_CACHED");
  });

  it("an empty cursor is a cursor like any other", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "cursor-empty-valid"]);
    expect((await introspect("empty-cursor", server.url)).tools).toHaveLength(4);
  });

  it("a cursor refused once, as after a change, starts the listing over", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "cursor-expires"]);
    expect((await introspect("expiring", server.url)).tools).toHaveLength(4);
  });

  it.each(["cursor-stuck", "cursor-alternating", "cursor-endless", "cursor-always-refused"])(
    "%s: no list, and the reason is told",
    async (fault) => {
      const server = await startFixture("faulty-server.mjs", ["--fault", fault]);
      const good = await startFixture("corpus-server.mjs", [corpusFile("time")]);
      const [bad] = await Promise.all([introspect("bad", server.url), introspect("good", good.url)]);
      expect(bad).toMatchObject({ pending: true, tools: [] });
      const listed = await condition("bad", "LISTED");
      expect(listed.status).toBe("CONDITION_STATUS_FALSE");
      expect(listed.message).toMatch(/cursor|page/i);
      await declare("bad-lazy", server.url, [{ name: "tool_001" }]);
      const refused = await refusalOf(load("bad-lazy/tool_001"));
      expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "LOAD_FAILED" });
      expect(refused.message).toMatch(/cursor|page/i);
      expect(await api.toolIds({ filter: { serverIds: ["good"] } })).toHaveLength(6);
    },
  );
});

describe("a server that starts with an empty list", () => {
  it("is pending until it lists something, and then listed at its first word", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "empty-first-10s", "--empty-ms", "3600000"]);
    const watch = api.watch();
    await watch.ready();
    expect(await introspect("slow-start", server.url)).toMatchObject({ pending: true, tools: [] });
    expect(await condition("slow-start", "LISTED")).toMatchObject({
      status: "CONDITION_STATUS_FALSE",
      reason: "EMPTY_LIST",
    });
    await eventually(
      () => server.control({ op: "streams" }),
      (s) => s["streams"] === 1,
    );
    await server.control({ op: "fill" });
    await eventually(
      () => watch.events,
      (events) => events.filter((e) => e.type === "REGISTERED").length === 3,
    );

    // Known by now, an empty list is doubted.
    const asked = async (): Promise<number> =>
      (await server.requests()).filter((r) => r.method === "tools/list").length;
    const before = await asked();
    await server.control({ op: "empty" });
    await eventually(asked, (n) => n > before);
    await flush(api, [watch], "marker");
    expect(toldOf(watch, "slow-start").filter((told) => told.startsWith("DEREGISTERED"))).toEqual([]);
    expect(await api.toolIds({ filter: { serverIds: ["slow-start"] } })).toHaveLength(3);
  });

  it("and gives no notice, is asked again by itself", { timeout: 60_000 }, async () => {
    const server = await startFixture("faulty-server.mjs", [
      "--fault",
      "empty-first-10s",
      "--empty-ms",
      "10000",
      "--era",
      "legacy",
    ]);
    expect(await introspect("quiet-start", server.url)).toMatchObject({ pending: true });
    await eventually(
      () => api.toolIds(),
      (ids) => ids.length === 3,
      40_000,
    );
  });
});

describe("one bad tool among a hundred", () => {
  it.each(["int", "missing", "null", "boolean"])("inputSchema %s: it alone is rejected, by name", async (variant) => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "one-bad-tool", "--variant", variant]);
    const answer = await introspect("mixed", server.url);
    expect(answer.tools.filter((t: { outcome: string }) => t.outcome === "OUTCOME_ACCEPTED")).toHaveLength(100);
    const known = await serverOf("mixed");
    expect(known).toMatchObject({ toolCount: 100, rejectedCount: 1 });
    expect(known.rejectedTools).toHaveLength(1);
    expect(known.rejectedTools[0].name).toBe("bad_tool");
    expect(known.rejectedTools[0].reasons.join(" ")).toContain("inputSchema");
    const ids = await api.toolIds();
    expect(ids).toHaveLength(100);
    expect(ids).not.toContain("mixed/bad_tool");
    expect(await refusalOf(load("mixed/bad_tool"))).toMatchObject({ code: status.NOT_FOUND });
    expect((await load("mixed/a_050")).schema.definition.toString()).toContain('"a_050"');
  });

  it("mended while the server runs, it is listed and its siblings are told nothing", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "one-bad-tool"]);
    await introspect("mixed", server.url);
    const watch = api.watch();
    await watch.ready();
    await eventually(
      () => server.control({ op: "streams" }),
      (s) => s["streams"] === 1,
    );
    await server.control({ op: "change", name: "bad_tool" });
    await eventually(
      () => watch.told,
      (told) => told.includes("REGISTERED mixed/bad_tool"),
    );
    await flush(api, [watch], "marker");
    expect(toldOf(watch, "mixed")).toEqual(["REGISTERED mixed/bad_tool"]);
    expect(await serverOf("mixed")).toMatchObject({ toolCount: 101, rejectedCount: 0 });
  });
});

describe("a server that accepts and never answers", () => {
  /** TCP alone. */
  async function startSilent(): Promise<{ url: string; accepted: () => number }> {
    const sockets = new Set<Socket>();
    let accepted = 0;
    const server = createServer((socket) => {
      accepted++;
      sockets.add(socket.on("error", () => {}).resume());
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, accepted: () => accepted };
  }

  it("while 200 callers ask: each hears LOAD_PENDING within its deadline, one or two connections, others undisturbed", async () => {
    const silent = await startSilent();
    const good = await startFixture("corpus-server.mjs", [corpusFile("time")]);
    const [goodTool, goodText] = [...(await listedTexts(good.url, "modern"))][0] as [string, string];
    const stubs = Array.from({ length: 20 }, (_, i) => ({ name: `t${i}`, substitutes: [`fine/${goodTool}`] }));
    await declare("silent", silent.url, stubs);
    await declare("fine", good.url, [{ name: goodTool }]);

    const callers = Array.from({ length: 200 }, (_, i) =>
      refusalOf(callWithin(4_000, "getFullSchema", { toolId: `silent/t${i % 20}` })),
    );
    await eventually(silent.accepted, (n) => n > 0);
    const other = await load(`fine/${goodTool}`);
    expect(other.schema).toMatchObject({ freshness: "FRESHNESS_LIVE" });
    expect(other.schema.definition.toString()).toBe(goodText);
    for (const refused of await Promise.all(callers)) {
      expect(refused).toMatchObject({
        code: status.UNAVAILABLE,
        reason: "LOAD_PENDING",
        substitutes: [`fine/${goodTool}`],
      });
      expect(refused.retryMs).toBeGreaterThan(0);
    }
    expect(silent.accepted()).toBeLessThanOrEqual(2);

    // So does a batch, with what it has of the others.
    const asked = { toolIds: ["silent/t0", `fine/${goodTool}`] };
    const { results } = await callWithin(3_000, "batchGetFullSchemas", asked);
    expect(results[0].error).toMatchObject({ code: status.UNAVAILABLE, reason: "LOAD_PENDING" });
    expect(results[1].schema.definition.toString()).toBe(goodText);
  });

  it("registers as pending while another server registers beside it", async () => {
    const silent = await startSilent();
    const good = await startFixture("corpus-server.mjs", [corpusFile("time")]);
    const order: string[] = [];
    const slow = introspect("silent", silent.url).then((answer) => {
      order.push("silent");
      return answer;
    });
    await introspect("fine", good.url);
    order.push("fine");
    expect(await slow).toMatchObject({ pending: true });
    expect(order).toEqual(["fine", "silent"]);
    expect(await serverOf("silent")).toMatchObject({ availability: "AVAILABILITY_UNAVAILABLE", toolCount: 0 });
  });
});

describe("notices", () => {
  it.each(["legacy", "modern"])(
    "every 5 ms and inside tools/list cost few listings, and each change comes through once (%s)",
    { timeout: 60_000 },
    async (era) => {
      const startedAt = performance.now();
      const server = await startFixture("faulty-server.mjs", ["--fault", "notice-storm", "--era", era]);
      await introspect("storm", server.url);
      const watch = api.watch();
      await watch.ready();
      await eventually(
        () => server.control({ op: "streams" }),
        (s) => s["streams"] === 1,
      );
      for (let round = 1; round <= 3; round++) {
        await server.control({ op: "change", name: "tool_002" });
        await eventually(
          () => watch.told,
          (told) => told.length >= round,
        );
      }
      const listings = (await server.requests()).filter((r) => r.method === "tools/list").length;
      const seconds = (performance.now() - startedAt) / 1_000;
      // Up to 8 while the pace slows from 50 ms to 5 s, the first ones, and one in 5 s after that; the notices were 200 a second.
      expect(listings).toBeLessThan(14 + seconds / 4);
      await flush(api, [watch], "marker");
      expect(toldOf(watch, "storm")).toEqual(Array.from({ length: 3 }, () => "SCHEMA_INVALIDATED storm/tool_002"));
    },
  );
});

describe("sessions", () => {
  it("404 'session not found' inside a listing begins a new session", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "session-404", "--era", "legacy"]);
    expect((await introspect("forgetful", server.url)).tools).toHaveLength(3);
    const begun = (await server.requests()).filter((r) => r.method === "initialize").length;
    expect(begun).toBeGreaterThanOrEqual(2);
  });

  it("forgotten while the server runs, with its notices: the next change still comes through", {
    timeout: 60_000,
  }, async () => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy"]);
    await introspect("restarted", server.url);
    const watch = api.watch();
    await watch.ready();
    await eventually(
      () => server.control({ op: "streams" }),
      (s) => s["streams"] === 1,
    );
    await server.control({ op: "forget-sessions" });
    await server.control({ op: "change", name: "current_time" });
    await eventually(
      () => watch.told,
      (told) => told.includes("SCHEMA_INVALIDATED restarted/current_time"),
      40_000,
    );
  });
});

describe("a server that goes away", () => {
  it.each(["legacy", "modern"])(
    "is published as unavailable, its definitions are served STALE, and all is well when it is back (%s)",
    { timeout: 90_000 },
    async (era) => {
      const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", era]);
      const wire = await startWire(Number(new URL(server.url).port));
      await introspect("wobbly", `http://127.0.0.1:${wire.port}/mcp`);
      const watch = api.watch();
      await watch.ready();
      await eventually(
        () => server.control({ op: "streams" }),
        (s) => s["streams"] === 1,
      );
      const fresh = await load("wobbly/current_time");
      expect(fresh.schema.freshness).toBe("FRESHNESS_CACHED");

      await wire.cut();
      await eventually(
        () => watch.told,
        (told) => told.includes("AVAILABILITY_CHANGED wobbly"),
        45_000,
      );
      expect(await condition("wobbly", "REACHABLE")).toMatchObject({
        status: "CONDITION_STATUS_FALSE",
        reason: "CONNECT_FAILED",
      });
      const stale = await load("wobbly/current_time");
      expect(stale.schema).toMatchObject({ freshness: "FRESHNESS_STALE", definition: fresh.schema.definition });
      expect(await api.toolIds({ filter: { availability: "AVAILABILITY_UNAVAILABLE" } })).toHaveLength(6);

      await wire.mend();
      await eventually(
        () => watch.told.filter((told) => told === "AVAILABILITY_CHANGED wobbly"),
        (told) => told.length === 2,
        60_000,
      );
      expect((await load("wobbly/current_time")).schema.freshness).toBe("FRESHNESS_CACHED");
      await flush(api, [watch], "marker");
      // An outage is no invalidation: nothing else was told.
      expect(toldOf(watch, "wobbly")).toEqual(["AVAILABILITY_CHANGED wobbly", "AVAILABILITY_CHANGED wobbly"]);
      expect(watch.events.map((e) => e.oldDigest).join("")).toBe("");
    },
  );

  it("before it was ever asked: LOAD_FAILED with when to ask again and what can stand in, and loads when it is back", async () => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time")]);
    const wire = await startWire(Number(new URL(server.url).port));
    await wire.cut();
    await declare("away", `http://127.0.0.1:${wire.port}/mcp`, [
      { name: "current_time", substitutes: ["relative_time"] },
      { name: "relative_time" },
    ]);
    const refused = await refusalOf(load("away/current_time"));
    expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "LOAD_FAILED", metadata: { kind: "connect" } });
    expect(refused.retryMs).toBeGreaterThan(0);
    await eventually(
      () => serverOf("away"),
      (s) => s.availability === "AVAILABILITY_UNAVAILABLE",
    );

    await wire.mend();
    const loaded = await eventually(
      () => load("away/current_time").catch((error) => detailsOf(error).reason),
      (answer) => answer.schema?.freshness === "FRESHNESS_LIVE" || answer.schema?.freshness === "FRESHNESS_CACHED",
      40_000,
    );
    // Whoever asks first lists it: this load, or the one who looks after it.
    expect(loaded.schema.toolId).toBe("away/current_time");
    await eventually(
      () => serverOf("away"),
      (s) => s.availability === "AVAILABILITY_AVAILABLE",
    );
  });
});

describe("a definition that is not the declared one", () => {
  it("is not served under the declared digest, and the registrant is told to register again", async () => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time")]);
    const texts = await listedTexts(server.url, "modern");
    const right = definitionDigest(texts.get("relative_time") ?? "");
    const wrong = `sha256:${"0".repeat(64)}`;
    const { lease, setDigest } = await declare("liar", server.url, [
      { name: "current_time", digest: wrong, substitutes: ["relative_time"] },
      { name: "relative_time", digest: right },
    ]);
    const refused = await refusalOf(load("liar/current_time"));
    expect(refused).toMatchObject({
      code: status.FAILED_PRECONDITION,
      reason: "DIGEST_MISMATCH",
      substitutes: ["liar/relative_time"],
    });
    expect(refused.metadata).toMatchObject({
      declared: wrong,
      listed: definitionDigest(texts.get("current_time") ?? ""),
    });
    expect((await load("liar/relative_time")).schema.definition.toString()).toBe(texts.get("relative_time"));
    const renewed = await eventually(
      async () => (await api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] })).results[0].state,
      (state) => state !== "STATE_OK",
    );
    expect(renewed).toBe("STATE_REGISTER_AGAIN");

    // With the right digest all is well.
    const again = await declare(
      "liar",
      server.url,
      [...texts].map(([name, text]) => ({ name, digest: definitionDigest(text) })),
    );
    expect((await load("liar/current_time")).schema.definition.toString()).toBe(texts.get("current_time"));
    expect(
      (await api.call("renew", { leases: [{ leaseId: again.lease.leaseId, setDigest: again.setDigest }] })).results[0]
        .state,
    ).toBe("STATE_OK");
  });
});
