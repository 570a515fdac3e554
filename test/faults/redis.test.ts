/** Redis flushed, cut, away, back: reads go on, nothing acknowledged is lost that Redis kept, and everybody agrees again. */
import { once } from "node:events";
import { type Metadata, status } from "@grpc/grpc-js";
import { describe, expect, inject, it, vi } from "vitest";
import { detailsOf, refusalOf } from "../support/details.js";
import { startFleet } from "../support/fleet.js";
import { flush, redisForTest, type Replica, resume, startPair, startReplicaOn, toldOf } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import type { TestRedis } from "../support/redis.js";
import { declared, RemoteRegistry, type RemoteWatch, startRegistry } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";
import { judgeEach } from "../validators/record-tests.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

// Some of these lose what Redis held, without saying when: what depends on that is left open.
judgeEach(["P1", "P2", "P3", "P4", "P5", "P6", "P9", "P10", "P12"], { oneHistory: false });

const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });
const HOUR = { leaseTtl: { seconds: 3600 } };
const withRedis = describe.skipIf(inject("redisServer") === "");

const errorOf = (watch: RemoteWatch) => (watch.error ? detailsOf(watch.error) : undefined);
const readyz = async (replica: { ops: string }): Promise<number> => (await fetch(`${replica.ops}/readyz`)).status;

async function killConnections(redis: TestRedis, name: string): Promise<number> {
  const list = (await redis.admin.client("LIST")) as string;
  const ids = list
    .split("\n")
    .filter((line) => line.includes(` name=${name} `))
    .map((line) => /\bid=(\d+)/.exec(line)?.[1] ?? "");
  for (const id of ids) await redis.admin.call("CLIENT", "KILL", "ID", id);
  return ids.length;
}

withRedis("Redis flushed under 50 renewing servers", () => {
  it("all are back within one renew interval, with a standing one; watchers relist to the same set and hear no DEREGISTERED", {
    timeout: 90_000,
  }, async () => {
    const { redis, a, b } = await startPair();
    const fleet = await startFleet([a.api, b.api], 50, 10);
    const live = await startFixture("corpus-server.mjs", [corpusFile("time")]);
    const { revision } = await a.api.call("register", {
      serverId: "standing",
      endpoint: live.url,
      standing: true,
      introspect: {},
    });
    const all = [...fleet.toolIds, ...(await a.api.toolIds({ filter: { serverIds: ["standing"] } }))].sort();
    for (const replica of [a, b])
      await eventually(
        () => replica.api.toolIds(),
        (ids) => ids.length === all.length,
      );
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();

    const flushedAt = performance.now();
    await redis.flush();
    // Until everybody is back the old catalogue is served whole, and never a part of the new one.
    const seen = new Set<number>();
    for (const watch of watches) {
      await eventually(
        async () => {
          for (const replica of [a, b]) seen.add((await replica.api.toolIds()).length);
          return errorOf(watch);
        },
        (error) => error !== undefined,
        40_000,
      );
      expect(errorOf(watch)).toMatchObject({
        code: status.OUT_OF_RANGE,
        reason: "RELIST_REQUIRED",
        metadata: { cause: "chain" },
      });
      expect(watch.told.filter((told) => /DEREGISTERED|EXPIRED|INVALIDATED/.test(told))).toEqual([]);
    }
    expect([...seen]).toEqual([all.length]);
    // The registry knows of the last one before that one has its answer.
    await eventually(() => fleet.registrations, (count) => count >= 100);
    expect(fleet.registrations).toBe(100);
    for (const at of fleet.registeredAt.values()) expect(at).toBeGreaterThan(flushedAt);
    for (const replica of [a, b]) {
      const again = replica.api.watch();
      await again.ready();
      expect(again.stubs.map((s) => s.toolId)).toEqual(all);
      expect(again.token).not.toBe("");
      expect(await refusalOf(resume(replica.api, watches[0]?.token ?? ""))).toMatchObject({
        reason: "RELIST_REQUIRED",
      });
      const dead = await refusalOf(replica.api.call("getStubs", { minRevision: revision }));
      expect(["DEAD_REVISION", "REVISION_NOT_REACHED"]).toContain(dead.reason);
      const { schema } = await replica.api.call("getFullSchema", { toolId: "fleet-007/work" });
      expect(schema.definition.toString()).toContain('"work"');
    }
    // The new history is followed like the old one.
    const after = b.api.watch();
    await after.ready();
    await flush(a.api, [after], "marker");
    expect(after.told).toEqual(["REGISTERED marker/mark"]);
  });
});

withRedis("connections to Redis cut", () => {
  it("the tail's, again and again during changes: no gap and no duplicate", { timeout: 60_000 }, async () => {
    const { redis, a, b } = await startPair();
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();
    let cut = 0;
    for (let i = 0; i < 60; i++) {
      if (i % 6 === 3) cut += await killConnections(redis, "toolcrib-tail");
      await (i % 2 === 0 ? a : b).api.call("register", declared(`s${i}`, [tool("t")], HOUR));
    }
    expect(cut).toBeGreaterThanOrEqual(10);
    await flush(a.api, watches, "marker");
    const all = Array.from({ length: 60 }, (_, i) => `REGISTERED s${i}/t`);
    for (const watch of watches) {
      expect(watch.told.filter((told) => !told.includes("marker"))).toEqual(all);
      expect(watch.error).toBeUndefined();
    }
  });

  it("those of requests too: what was acknowledged is there, and each tool is told once", {
    timeout: 60_000,
  }, async () => {
    const { redis, a, b } = await startPair();
    const watch = b.api.watch();
    await watch.ready();
    const acknowledged: string[] = [];
    let over = false;
    const cutting = (async () => {
      while (!over) {
        await killConnections(redis, "toolcrib");
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    })();
    for (let i = 0; acknowledged.length < 60; i++) {
      const done = await a.api.call("register", declared(`s${i}`, [tool("t")], HOUR)).then(() => true, detailsOf);
      if (done === true) acknowledged.push(`s${i}/t`);
      // Whether it was committed is not known then; that much is said.
      else expect(done).toMatchObject({ code: status.UNAVAILABLE, reason: "STORE_UNAVAILABLE" });
    }
    over = true;
    await cutting;
    await eventually(
      () =>
        a.api.call("register", declared("last", [tool("t")], HOUR)).then(
          () => true,
          () => false,
        ),
      (done) => done,
    );
    await eventually(
      () => watch.told,
      (told) => told.includes("REGISTERED last/t"),
    );
    const listed = await b.api.toolIds();
    for (const id of acknowledged) expect(listed).toContain(id);
    expect(watch.told.sort()).toEqual(listed.map((id) => `REGISTERED ${id}`).sort());
  });
});

withRedis("Redis away", () => {
  it("at the start: live but not ready, and ready by itself when Redis comes", { timeout: 60_000 }, async () => {
    const redis = await redisForTest();
    const wire = await startWire(redis.port);
    await wire.cut();
    const { child, grpc, ops } = await startRegistry({ store: `redis://127.0.0.1:${wire.port}`, unready: true });
    expect((await fetch(`${ops}/livez`)).status).toBe(200);
    const answer = await fetch(`${ops}/readyz`);
    expect(answer.status).toBe(503);
    expect(((await answer.json()) as { reasons: string[] }).reasons.length).toBeGreaterThan(0);
    const api = new RemoteRegistry(grpc);
    const refused = await refusalOf(api.call("getStubs"));
    expect(refused).toMatchObject({ code: status.UNAVAILABLE, reason: "NOT_READY" });
    expect(refused.retryMs).toBeGreaterThan(0);
    expect(await refusalOf(api.call("register", declared("s", [tool("t")])))).toMatchObject({
      code: status.UNAVAILABLE,
    });

    await wire.mend();
    await eventually(
      () => readyz({ ops }),
      (code) => code === 200,
    );
    await api.call("register", declared("s", [tool("t")]));
    expect(await api.toolIds()).toEqual(["s/t"]);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("P8: later: reads go on and say that they are stale, writes are refused with when to try again, and all recovers", {
    timeout: 90_000,
  }, async () => {
    const redis = await redisForTest();
    const wire = await startWire(redis.port);
    const a = await startReplicaOn(`redis://127.0.0.1:${wire.port}`);
    const b = await startReplicaOn(redis.url);
    const { lease, setDigest } = await a.api.call("register", declared("s", [tool("t")], HOUR));
    const watch = a.api.watch();
    await watch.ready();

    await wire.cut();
    await eventually(
      () => a.api.call("getStubs"),
      (page) => page.stale === true,
    );
    expect(await staleHeader(a)).toBe("true");
    expect(await a.api.toolIds()).toEqual(["s/t"]);
    expect((await a.api.call("listServers")).stale).toBe(true);
    expect((await a.api.call("getServer", { serverId: "s" })).stale).toBe(true);
    const { schema } = await a.api.call("getFullSchema", { toolId: "s/t" });
    expect(schema).toMatchObject({ freshness: "FRESHNESS_STALE" });
    expect(schema.definition.toString()).toBe(JSON.stringify(tool("t")));
    expect(await readyz(a.process)).toBe(200);
    expect(await staleHeader(b)).toBeUndefined();
    for (const [method, request] of [
      ["register", declared("new", [tool("t")], HOUR)],
      ["renew", { leases: [{ leaseId: lease.leaseId, setDigest }] }],
      ["deregister", { serverId: "s" }],
    ] as const) {
      const refused = await refusalOf(a.api.call(method, request));
      expect(refused, method).toMatchObject({ code: status.UNAVAILABLE, reason: "STORE_UNAVAILABLE" });
      expect(refused.retryMs, method).toBeGreaterThan(0);
    }
    // Meanwhile the other replica goes on.
    await b.api.call("register", declared("meanwhile", [tool("t")], HOUR));
    expect(watch.error).toBeUndefined();

    await wire.mend();
    await eventually(
      () => watch.told,
      (told) => told.includes("REGISTERED meanwhile/t"),
    );
    await eventually(
      () => a.api.call("getStubs"),
      (page) => page.stale === false,
    );
    expect(await staleHeader(a)).toBeUndefined();
    // The connection for requests may come back a moment after the tail's.
    const renewed = await eventually(
      () => a.api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] }).catch(() => undefined),
      (answer) => answer !== undefined,
    );
    expect(renewed.results[0].state).toBe("STATE_OK");
    const { revision } = await a.api.call("register", declared("new", [tool("t")], HOUR));
    expect(await b.api.toolIds({ minRevision: revision })).toEqual(["meanwhile/t", "new/t", "s/t"]);
    await eventually(
      () => watch.told,
      (told) => told.length === 2,
    );
    expect(watch.told).toEqual(["REGISTERED meanwhile/t", "REGISTERED new/t"]);
  });

  it("crashed and back empty: the catalogue is served until its servers are back", { timeout: 90_000 }, async () => {
    const { redis, a, b } = await startPair();
    const fleet = await startFleet([a.api, b.api], 6, 10);
    for (const replica of [a, b])
      await eventually(
        () => replica.api.toolIds(),
        (ids) => ids.length === 6,
      );
    const watch = a.api.watch();
    await watch.ready();
    await redis.kill();
    await eventually(
      () => a.api.call("getStubs"),
      (page) => page.stale === true,
    );
    expect(await a.api.toolIds()).toEqual(fleet.toolIds);
    await redis.restart();
    await eventually(
      async () => {
        expect(await a.api.toolIds()).toEqual(fleet.toolIds);
        return errorOf(watch)?.reason;
      },
      (reason) => reason === "RELIST_REQUIRED",
      40_000,
    );
    for (const replica of [a, b]) {
      const page = await eventually(
        () => replica.api.call("getStubs"),
        (p) => p.stale === false,
        30_000,
      );
      expect(page.stubs.map((s: { toolId: string }) => s.toolId)).toEqual(fleet.toolIds);
    }
    expect(watch.told).toEqual([]);
  });
});

withRedis("Redis full", () => {
  it("refuses Registers, while renewals, removals and reads go on", async () => {
    const { redis, a, b } = await startPair();
    const { lease, setDigest } = await a.api.call("register", declared("here", [tool("t")], HOUR));
    const leaving = await a.api.call("register", declared("leaving", [tool("t")], HOUR));
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await redis.admin.config("SET", "maxmemory", "1");
    const refused = await refusalOf(a.api.call("register", declared("new", [tool("t")], HOUR)));
    expect(refused).toMatchObject({ code: status.RESOURCE_EXHAUSTED, reason: "STORE_FULL" });
    const renewed = await b.api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] });
    expect(renewed.results[0].state).toBe("STATE_OK");
    const removed = await b.api.call("deregister", { leaseId: leaving.lease.leaseId });
    expect(removed.removed).toBe(true);
    for (const replica of [a, b])
      expect(await replica.api.toolIds({ minRevision: removed.revision })).toEqual(["here/t"]);

    await redis.admin.config("SET", "maxmemory", "0");
    await a.api.call("register", declared("new", [tool("t")], HOUR));
    expect(await a.api.toolIds()).toEqual(["here/t", "new/t"]);
  });
});

withRedis("leases over two replicas", () => {
  it("a registrant that stops renewing expires after its TTL, not before, and others stay", {
    timeout: 60_000,
  }, async () => {
    const { a, b } = await startPair();
    const fleet = await startFleet([b.api], 3, 10);
    const watch = b.api.watch();
    await watch.ready();
    const registeredAt = performance.now();
    const { lease, setDigest } = await a.api.call(
      "register",
      declared("mortal", [tool("t")], { leaseTtl: { seconds: 10 } }),
    );
    await eventually(
      () => watch.told,
      (told) => told.includes("EXPIRED mortal/t"),
      40_000,
    );
    expect(performance.now() - registeredAt).toBeGreaterThan(10_000);
    expect(watch.told).toEqual(["REGISTERED mortal/t", "EXPIRED mortal/t"]);
    // What b's watch told is what b knows; the other replica is only bound to it by the revision.
    const minRevision = watch.revision;
    for (const replica of [a, b])
      expect(await replica.api.toolIds({ filter: { serverIds: ["mortal"] }, minRevision })).toEqual([]);
    expect(await b.api.toolIds()).toEqual(fleet.toolIds);
    expect((await a.api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] })).results[0].state).toBe(
      "STATE_UNKNOWN_LEASE",
    );
  });

  it("20 concurrent Registers of one instance: one winner, one server, one event a tool", async () => {
    const { a, b } = await startPair();
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();
    const same = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? a : b).api.call("register", declared("same", [tool("t"), tool("u")], HOUR)),
      ),
    );
    expect(new Set(same.map((r) => r.lease.leaseId)).size).toBe(1);
    expect(new Set(same.map((r) => r.setDigest)).size).toBe(1);
    expect(new Set(same.map((r) => r.revision)).size).toBe(1);

    // Different sets: each is acknowledged, and the last one committed is the server's.
    const sets = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? a : b).api.call("register", declared("race", [tool("t", `Version ${i}`)], HOUR)),
      ),
    );
    expect(new Set(sets.map((r) => r.lease.leaseId)).size).toBe(1);
    await flush(a.api, watches, "marker");
    const final = [];
    for (const replica of [a, b]) {
      const { server } = await replica.api.call("getServer", { serverId: "race" });
      expect(server.instances).toHaveLength(1);
      final.push(server.setDigest);
    }
    expect(new Set(final).size).toBe(1);
    expect(sets.map((r) => r.setDigest)).toContain(final[0]);
    for (const watch of watches) {
      expect(toldOf(watch, "same").sort()).toEqual(["REGISTERED same/t", "REGISTERED same/u"]);
      const race = watch.events.filter((e) => e.serverId === "race");
      expect(race.map((e) => e.type)).toEqual([
        "REGISTERED",
        ...Array.from({ length: 19 }, () => "SCHEMA_INVALIDATED"),
      ]);
      // Each event begins where the one before ended.
      for (const [i, event] of race.entries()) if (i > 0) expect(event.oldDigest).toBe(race[i - 1]?.newDigest);
    }
  });

  it("with an etag, only one of 20 concurrent Registers wins", async () => {
    const { a, b } = await startPair();
    const { etag } = await a.api.call("register", declared("guarded", [tool("t")], HOUR));
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        (i % 2 === 0 ? a : b).api
          .call("register", declared("guarded", [tool("t", `Version ${i}`)], { ...HOUR, etag }))
          .then(
            () => "won",
            (error) => detailsOf(error).reason,
          ),
      ),
    );
    expect(outcomes.filter((o) => o === "won")).toHaveLength(1);
    expect(outcomes.filter((o) => o === "ETAG_MISMATCH")).toHaveLength(19);
  });

  it("a late Renew after Deregister hears DEREGISTERED, at either replica, and brings nothing back", async () => {
    const { a, b } = await startPair();
    const { lease, setDigest } = await a.api.call("register", declared("gone", [tool("t")], HOUR));
    const { revision } = await b.api.call("deregister", { serverId: "gone" });
    for (const replica of [a, b]) {
      const { results } = await replica.api.call("renew", { leases: [{ leaseId: lease.leaseId, setDigest }] });
      expect(results[0].state).toBe("STATE_DEREGISTERED");
      expect(await replica.api.toolIds({ minRevision: revision })).toEqual([]);
    }
    expect(await a.api.call("deregister", { leaseId: lease.leaseId })).toMatchObject({ removed: false });
    const unknown = `${lease.leaseId.slice(0, -4)}0000`;
    expect((await a.api.call("renew", { leases: [{ leaseId: unknown, setDigest }] })).results[0].state).toBe(
      "STATE_UNKNOWN_LEASE",
    );
  });

  it("an old instance's Deregister after a newer Register touches nothing of the newer one", async () => {
    const { a, b } = await startPair();
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();
    const old = await a.api.call(
      "register",
      declared("shop", [tool("t"), tool("old")], { ...HOUR, instanceId: "instance-old" }),
    );
    const fresh = await b.api.call(
      "register",
      declared("shop", [tool("t"), tool("new")], { ...HOUR, instanceId: "instance-new" }),
    );
    const renew = async (of: typeof old) =>
      (await a.api.call("renew", { leases: [{ leaseId: of.lease.leaseId, setDigest: of.setDigest }] })).results[0]
        .state;
    await eventually(
      () => renew(old),
      (state) => state === "STATE_SUPERSEDED",
    );
    expect(await a.api.call("deregister", { leaseId: old.lease.leaseId })).toMatchObject({ removed: true });
    expect(await renew(fresh)).toBe("STATE_OK");
    expect(await renew(old)).toBe("STATE_DEREGISTERED");
    await flush(a.api, watches, "marker");
    for (const replica of [a, b])
      expect(await replica.api.toolIds({ filter: { serverIds: ["shop"] } })).toEqual(["shop/new", "shop/t"]);
    for (const watch of watches) {
      expect(toldOf(watch, "shop").sort()).toEqual([
        "DEREGISTERED shop/old",
        "REGISTERED shop/new",
        "REGISTERED shop/old",
        "REGISTERED shop/t",
      ]);
    }
  });
});

/** The `toolcrib-stale` header of a read. */
function staleHeader(replica: Replica): Promise<string | undefined> {
  const client = replica.api.client as unknown as {
    getStubs(request: object, done: (error: Error | null) => void): NodeJS.EventEmitter;
  };
  return new Promise((resolve, reject) => {
    let header: string | undefined;
    const call = client.getStubs({}, (error) => (error ? reject(error) : resolve(header)));
    call.on("metadata", (metadata: Metadata) => {
      header = metadata.get("toolcrib-stale")[0]?.toString();
    });
  });
}
