/** Redis that fails over, and a Redis Cluster: the registry follows without a restart, and loses nothing that Redis kept. */
import { once } from "node:events";
import { status } from "@grpc/grpc-js";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { partitionIndex } from "../../src/catalogue/placement.js";
import { partitionKeys } from "../../src/store/redis/keys.js";
import { type Details, detailsOf } from "../support/details.js";
import { startFleet } from "../support/fleet.js";
import { redisForTest, type Replica, startReplicaOn } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import { type ClusterSet, type SentinelSet, startCluster, startSentinelSet } from "../support/redis-topologies.js";
import { declared, RemoteRegistry, type RemoteWatch, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 120_000 });

const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });
const HOUR = { leaseTtl: { seconds: 3600 } };
/** What a failover loses and nobody registers again keeps the old catalogue in use until its lease would have ended. */
const SHORT = { leaseTtl: { seconds: 10 } };
const withRedis = describe.skipIf(inject("redisServer") === "");

async function sentinelsForTest(): Promise<SentinelSet> {
  const set = await startSentinelSet();
  onTestFinished(() => set.stop());
  return set;
}

async function clusterForTest(): Promise<ClusterSet> {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  return cluster;
}

/** Registers again and again until it is told to stop; keeps what was acknowledged and how the others were refused. */
function writer(api: RemoteRegistry, namespace: string, prefix: string, lease: object = HOUR) {
  const acknowledged: string[] = [];
  const refused: Details[] = [];
  let over = false;
  const running = (async () => {
    for (let i = 0; !over; i++) {
      const request = { ...declared(`${prefix}-${i}`, [tool("t")], lease), namespace };
      await api.call("register", request).then(
        () => acknowledged.push(`${prefix}-${i}/t`),
        (error) => refused.push(detailsOf(error)),
      );
      // Enough to be in the middle of something whenever Redis is disturbed.
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  return {
    acknowledged,
    refused,
    /** Waits until some more writes were acknowledged. */
    async goesOn(more = 5): Promise<void> {
      const wanted = acknowledged.length + more;
      await eventually(
        () => acknowledged.length,
        (count) => count >= wanted,
        60_000,
      );
    },
    async stop(): Promise<void> {
      over = true;
      await running;
    },
  };
}

/** What may happen to a caller while Redis fails over: it is told to try again. */
function onlyUnavailable(refused: readonly Details[]): void {
  for (const one of refused) {
    expect(one).toMatchObject({ code: status.UNAVAILABLE });
    expect(["STORE_UNAVAILABLE", "NOT_READY"]).toContain(one.reason);
    expect(one.retryMs).toBeGreaterThan(0);
  }
}

/** All there is, at every replica alike. */
async function agreed(replicas: readonly Replica[], namespace: string): Promise<string[]> {
  const lists = await eventually(
    () => Promise.all(replicas.map(async ({ api }) => (await api.toolIds({ filter: {}, namespace })).sort())),
    (all) => all.every((ids) => JSON.stringify(ids) === JSON.stringify(all[0])),
    60_000,
  );
  return lists[0] as string[];
}

/** Either nothing was lost and the watch goes on, or it was told to start over: never a silent gap (P2). */
async function toldOrRelisted(watch: RemoteWatch, toolId: string): Promise<"told" | "relist"> {
  return eventually(
    () => {
      if (watch.told.includes(`REGISTERED ${toolId}`)) return "told";
      return watch.error ? "relist" : undefined;
    },
    (how) => how !== undefined,
    60_000,
  ) as Promise<"told" | "relist">;
}

withRedis("Redis with Sentinels", () => {
  it("kill -9 of the primary: both replicas write again without a restart, watchers miss nothing or relist, no tool is a phantom", async () => {
    const set = await sentinelsForTest();
    const replicas = await Promise.all([startReplicaOn(set.url), startReplicaOn(set.url)]);
    const [a, b] = replicas as [Replica, Replica];
    const fleet = await startFleet([a.api, b.api], 10, 10);
    const watches = replicas.map(({ api }) => api.watch());
    for (const watch of watches) await watch.ready();
    const writing = writer(a.api, "", "before", SHORT);
    await writing.goesOn(20);

    const old = await set.killPrimary();
    await writing.goesOn();
    const fresh = await set.promoted(old);
    expect(fresh.port).not.toBe(old.port);
    await writing.stop();
    onlyUnavailable(writing.refused);

    const { revision } = await b.api.call("register", declared("after", [tool("t")], HOUR));
    expect(await a.api.toolIds({ minRevision: revision }).then((ids) => ids.includes("after/t"), () => true)).toBe(true);
    for (const watch of watches) {
      const how = await toldOrRelisted(watch, "after/t");
      if (how === "relist") expect(detailsOf(watch.error as never)).toMatchObject({ reason: "RELIST_REQUIRED" });
    }
    await eventually(
      async () => (await Promise.all(replicas.map(({ api }) => api.call("getStubs")))).map(({ stale }) => stale),
      (stale) => stale.every((is) => is === false),
      60_000,
    );
    // Whoever was lost in the failover registers again with its next renewal.
    await eventually(() => agreed(replicas, ""), (listed) => [...fleet.toolIds, "after/t"].every((id) => listed.includes(id)), 60_000);
    // Whatever is listed is in Redis: nothing outlived the primary in a replica's memory only.
    await eventually(
      async () => {
        const held = await fresh.admin.hkeys(partitionKeys("toolcrib:", 0).records);
        const ids = await a.api.toolIds();
        return { held: held.sort(), listed: ids.map((id) => `default/${id.split("/")[0]}`).sort() };
      },
      (both) => JSON.stringify(both.held) === JSON.stringify(both.listed),
    );
    for (const { process } of replicas) expect(process.child.exitCode).toBeNull();
  });

  it("a primary that becomes a replica while it lives, there and back: READONLY is a store that is away, not a caller's mistake", async () => {
    const set = await sentinelsForTest();
    const replicas = await Promise.all([startReplicaOn(set.url), startReplicaOn(set.url)]);
    const [a] = replicas as [Replica, Replica];
    const watch = a.api.watch();
    await watch.ready();
    const writing = writer(a.api, "", "w", SHORT);
    await writing.goesOn();
    for (let round = 0; round < 2; round++) {
      await set.failover();
      await writing.goesOn();
      await set.settled();
    }
    await writing.stop();
    onlyUnavailable(writing.refused);
    await a.api.call("register", declared("last", [tool("t")], HOUR));
    await toldOrRelisted(watch, "last/t");
    expect(await agreed(replicas, "")).toContain("last/t");
  });

  it("one address whose server turns into a replica: refused with when to try again, and taken up again when it is the primary", async () => {
    const redis = await redisForTest();
    const other = await redisForTest();
    const replica = await startReplicaOn(redis.url);
    await replica.api.call("register", declared("s", [tool("t")], HOUR));
    // A replica of nobody that answers: it keeps its data and takes no writes.
    await redis.admin.call("CONFIG", "SET", "replica-serve-stale-data", "yes");
    await other.kill();
    await redis.admin.call("REPLICAOF", "127.0.0.1", other.port);
    const refused = await replica.api.call("register", declared("t", [tool("t")], HOUR)).catch(detailsOf);
    onlyUnavailable([refused as Details]);
    expect(await replica.api.toolIds()).toEqual(["s/t"]);
    await redis.admin.call("REPLICAOF", "NO", "ONE");
    await eventually(
      () => replica.api.call("register", declared("t", [tool("t")], HOUR)).then(() => true, () => false),
      (done) => done,
    );
    expect(await replica.api.toolIds()).toEqual(["s/t", "t/t"]);
  });
});

const PARTITIONS = 4;

/** One namespace for each partition. */
function namespaces(): string[] {
  const found = new Map<number, string>();
  for (let i = 0; found.size < PARTITIONS; i++) {
    const partition = partitionIndex(`team-${i}`, PARTITIONS);
    if (!found.has(partition)) found.set(partition, `team-${i}`);
  }
  return Array.from({ length: PARTITIONS }, (_, partition) => found.get(partition) as string);
}

const onCluster = (cluster: ClusterSet): Promise<Replica> => startReplicaOn(cluster.url, ["--partitions", String(PARTITIONS)]);

withRedis("a Redis Cluster", () => {
  it("namespaces of four partitions: register, watch, renew, expire, list and deregister in each, at either replica", async () => {
    const cluster = await clusterForTest();
    const [a, b] = await Promise.all([onCluster(cluster), onCluster(cluster)]);
    const use = async (namespace: string, partition: number): Promise<void> => {
      const watch = b.api.watch({ filter: {}, namespace });
      await watch.ready();
      const kept = await a.api.call("register", { ...declared("kept", [tool("t")], HOUR), namespace });
      expect(kept.lease.leaseId).toMatch(new RegExp(`^l${partition}-`));
      await a.api.call("register", { ...declared("mortal", [tool("t")], { leaseTtl: { seconds: 10 } }), namespace });
      const renewed = await b.api.call("renew", { namespace, leases: [{ leaseId: kept.lease.leaseId, setDigest: kept.setDigest }] });
      expect(renewed.results[0].state).toBe("STATE_OK");
      // A lease of this namespace means nothing in another.
      const elsewhere = namespaces()[(partition + 1) % PARTITIONS];
      const foreign = await b.api.call("renew", { namespace: elsewhere, leases: [{ leaseId: kept.lease.leaseId }] });
      expect(foreign.results[0].state).toBe("STATE_UNKNOWN_LEASE");
      expect(await b.api.toolIds({ namespace, minRevision: kept.revision })).toContain("kept/t");
      const { schema } = await b.api.call("getFullSchema", { namespace, toolId: "kept/t" });
      expect(schema.definition.toString()).toBe(JSON.stringify(tool("t")));
      const gone = await b.api.call("deregister", { namespace, leaseId: kept.lease.leaseId });
      expect(gone.removed).toBe(true);
      await eventually(
        () => watch.told,
        (told) => told.includes("EXPIRED mortal/t"),
        60_000,
      );
      expect(watch.told).toEqual(["REGISTERED kept/t", "REGISTERED mortal/t", "DEREGISTERED kept/t", "EXPIRED mortal/t"]);
      // What b's watch told is what b knows; the other replica is only bound to it by the revision.
      const { servers } = await a.api.call("listServers", { namespace, minRevision: watch.revision });
      expect(servers).toEqual([]);
    };
    await Promise.all(namespaces().map(use));
    const holders = await Promise.all(cluster.servers.map(async ({ admin }) => (await admin.keys("toolcrib:{*")).length));
    for (const count of holders) expect(count).toBeGreaterThan(0);
  });

  it("a slot that moves to another node during writes: nothing acknowledged is lost, and whoever is refused may try again", async () => {
    const cluster = await clusterForTest();
    const [a, b] = await Promise.all([onCluster(cluster), onCluster(cluster)]);
    const all = namespaces();
    const watches = all.map((namespace) => b.api.watch({ filter: {}, namespace }));
    for (const watch of watches) await watch.ready();
    const writers = all.map((namespace, i) => writer((i % 2 === 0 ? a : b).api, namespace, "s"));
    for (const one of writers) await one.goesOn();
    const slot = await cluster.slotOf(partitionKeys("toolcrib:", 0).head);
    for (let round = 0; round < 3; round++) {
      const from = await cluster.ownerOf(slot);
      const to = cluster.servers.find((server) => server !== from);
      if (to) await cluster.moveSlot(slot, to);
      for (const one of writers) await one.goesOn();
    }
    for (const one of writers) await one.stop();
    for (const [i, namespace] of all.entries()) {
      const one = writers[i];
      const watch = watches[i];
      if (!one || !watch) throw new Error("one for each namespace");
      onlyUnavailable(one.refused);
      await a.api.call("register", { ...declared("last", [tool("t")], HOUR), namespace });
      await eventually(
        () => watch.told,
        (told) => told.includes("REGISTERED last/t"),
      );
      expect(watch.error).toBeUndefined();
      const listed = await agreed([a, b], namespace);
      for (const id of one.acknowledged) expect(listed).toContain(id);
      // Each is told once, and in the order of the log: those of one writer in the order of its calls.
      expect([...watch.told].sort()).toEqual(listed.map((id) => `REGISTERED ${id}`).sort());
      expect(watch.told.filter((told) => one.acknowledged.includes(told.slice("REGISTERED ".length)))).toEqual(
        one.acknowledged.map((id) => `REGISTERED ${id}`),
      );
    }
  });

  it("a node that is gone takes its partitions' writes along, and no other's", async () => {
    const cluster = await clusterForTest();
    for (const { admin } of cluster.servers) await admin.config("SET", "cluster-require-full-coverage", "no");
    const a = await onCluster(cluster);
    const all = namespaces();
    for (const namespace of all) await a.api.call("register", { ...declared("s", [tool("t")], HOUR), namespace });
    const owners = await Promise.all(
      all.map(async (_, partition) => cluster.ownerOf(await cluster.slotOf(partitionKeys("toolcrib:", partition).head))),
    );
    const lost = owners[2];
    await lost?.kill();
    for (const [i, namespace] of all.entries()) {
      const page = await eventually(
        () => a.api.call("getStubs", { namespace }),
        ({ stale }) => stale === (owners[i] === lost),
        30_000,
      );
      expect(page.stubs.map((s: { toolId: string }) => s.toolId)).toEqual(["s/t"]);
      const written = await eventually(
        () => a.api.call("register", { ...declared("more", [tool("t")], HOUR), namespace }).then(() => undefined, detailsOf),
        (refused) => (refused !== undefined) === (owners[i] === lost),
        30_000,
      );
      if (written) onlyUnavailable([written]);
    }
  });
});

withRedis("the number of partitions", () => {
  it("is the store's: taken from it when nothing is said, refused when another is asked for", async () => {
    const redis = await redisForTest();
    const first = await startReplicaOn(redis.url, ["--partitions", "4"]);
    const namespace = namespaces()[3] as string;
    await first.api.call("register", { ...declared("s", [tool("t")], HOUR), namespace });
    const second = await startReplicaOn(redis.url);
    expect(await second.api.toolIds({ namespace })).toEqual(["s/t"]);
    await expect(startRegistry({ store: redis.url, args: ["--partitions", "2"] })).rejects.toThrow(
      /was created with 4 partitions, and 2 were asked for: the number is fixed when a store is created/,
    );
  });

  it("is learned when Redis comes, by a replica that started before it", async () => {
    const redis = await redisForTest();
    await startReplicaOn(redis.url, ["--partitions", "4"]);
    const wire = await startWire(redis.port);
    await wire.cut();
    const late = await startRegistry({ store: `redis://127.0.0.1:${wire.port}`, unready: true });
    expect(late.output()).toContain(`waiting for Redis at 127.0.0.1:${wire.port} (`);
    expect(late.output()).not.toContain("is up");
    await wire.mend();
    const up = await eventually(
      () => /is up: gRPC (\S+), HTTP/.exec(late.output())?.[1],
      (address) => address !== undefined,
      30_000,
    );
    const api = new RemoteRegistry(up as string);
    const namespace = namespaces()[3] as string;
    const { lease } = await api.call("register", { ...declared("s", [tool("t")], HOUR), namespace });
    expect(lease.leaseId).toMatch(/^l3-/);
    late.child.kill("SIGTERM");
    expect(await once(late.child, "exit")).toEqual([0, null]);
  });
});
