/** Two replicas on one Redis: what one acknowledges the other knows, whichever of them dies. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { status } from "@grpc/grpc-js";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { definitionDigest } from "../../src/domain/digest.js";
import { SeededRandom } from "../support/fake-clock.js";
import { listedTexts } from "../support/mcp.js";
import { flush, redisForTest, type Replica, resume, startPair, startReplicaOn, toldOf } from "../support/pair.js";
import { declared } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";
import { judgeEach } from "../validators/record-tests.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

judgeEach(["P1", "P2", "P3", "P4", "P5", "P6", "P9", "P10", "P12"]);

const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });
const DEPLOYED = fileURLToPath(new URL("../fixtures/client/deployed-process.mjs", import.meta.url));
const HOUR = { leaseTtl: { seconds: 3600 } };

describe.skipIf(inject("redisServer") === "")("two replicas", () => {
  it("what is registered at one is read at the other with min_revision, by every read", async () => {
    const { a, b } = await startPair();
    for (let i = 0; i < 20; i++) {
      const [from, to] = i % 2 === 0 ? [a.api, b.api] : [b.api, a.api];
      const { revision } = await from.call("register", declared(`s${i}`, [tool("t")], HOUR));
      const asked = { minRevision: revision };
      expect(await to.toolIds({ ...asked, filter: { serverIds: [`s${i}`] } })).toEqual([`s${i}/t`]);
      const { schema } = await to.call("getFullSchema", { ...asked, toolId: `s${i}/t` });
      expect(schema.definition.toString()).toBe(JSON.stringify(tool("t")));
      const batch = await to.call("batchGetFullSchemas", { ...asked, toolIds: [`s${i}/t`] });
      expect(batch.results[0].schema.definition).toEqual(schema.definition);
      expect((await to.call("getServer", { ...asked, serverId: `s${i}` })).server.toolCount).toBe(1);
      expect((await to.call("listServers", asked)).servers).toHaveLength(i + 1);
      const watch = to.watch(asked);
      await watch.ready();
      expect(watch.stubs.map((s) => s.toolId)).toContain(`s${i}/t`);
      watch.cancel();
    }
  });

  it("kill -9 of either while registering loses nothing acknowledged; watchers resume on the other, no gap, no duplicate", {
    timeout: 120_000,
  }, async () => {
    const seed = Math.floor(Math.random() * 1e9);
    const random = new SeededRandom(seed);
    const redis = await redisForTest();
    let pair: [Replica, Replica] = [await startReplicaOn(redis.url), await startReplicaOn(redis.url)];
    let watch = pair[0].api.watch();
    await watch.ready();
    const heard: string[] = [];
    const acknowledged = new Set<string>();
    let next = 0;
    let over = false;
    const lane = async (lane: number): Promise<void> => {
      for (let i = lane; !over; i++) {
        const replica = pair[i % 2] as Replica;
        const id = `s${next++}`;
        const done = await replica.api.call("register", declared(id, [tool("t")], HOUR), 5_000).then(
          () => true,
          () => false,
        );
        if (done) acknowledged.add(id);
        else await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const lanes = [0, 1, 2, 3].map(lane);
    for (let round = 0; round < 4; round++) {
      const before = acknowledged.size;
      const moment = before + 10 + Math.floor(random.next() * 40);
      await eventually(
        () => acknowledged.size,
        (n) => n >= moment,
      );
      // The watcher always sits on the replica that dies, and goes on at the other one.
      const [dying, other] = pair;
      await dying.process.kill();
      await eventually(
        () => watch.error?.code,
        (code) => code === status.UNAVAILABLE,
      );
      heard.push(...watch.told);
      expect(watch.token, `seed ${seed}`).not.toBe("");
      watch = await resume(other.api, watch.token);
      pair = [other, await startReplicaOn(redis.url)];
    }
    over = true;
    await Promise.all(lanes);
    await flush(pair[1].api, [watch], "marker");
    heard.push(...watch.told);
    const listed = await pair[1].api.toolIds();
    for (const id of acknowledged) expect(listed, `seed ${seed}`).toContain(`${id}/t`);
    expect(heard.sort(), `seed ${seed}`).toEqual(listed.map((id) => `REGISTERED ${id}`).sort());
    expect(listed).toEqual(await pair[0].api.toolIds());
  });

  it("a token of one replica is good at the other while changes go on", async () => {
    const { a, b } = await startPair();
    let watch = a.api.watch();
    await watch.ready();
    const heard: string[] = [];
    let token = "";
    for (let i = 0; i < 12; i++) {
      await a.api.call("register", declared(`s${i}`, [tool("t")], HOUR));
      // A watch that was told nothing yet is still where its token was.
      token = watch.token || token;
      heard.push(...watch.told);
      watch.cancel();
      watch = (i % 2 === 0 ? b : a).api.watch({ resumeToken: token });
    }
    await flush(b.api, [watch], "marker");
    heard.push(...watch.told);
    expect(heard.filter((told) => !told.includes("marker"))).toEqual(
      Array.from({ length: 12 }, (_, i) => `REGISTERED s${i}/t`),
    );
  });

  it("a token from before both died is good at a replica that started after that", async () => {
    const { redis, a, b } = await startPair();
    const watch = a.api.watch();
    await watch.ready();
    await flush(b.api, [watch], "marker-1");
    const { token } = watch;
    watch.cancel();
    for (let i = 0; i < 10; i++)
      await (i % 2 === 0 ? a : b).api.call("register", declared("busy", [tool("t", `Version ${i}`)], HOUR));
    await Promise.all([a.process.kill(), b.process.kill()]);

    const fresh = await startReplicaOn(redis.url);
    const resumed = await resume(fresh.api, token);
    await flush(fresh.api, [resumed], "marker-2");
    expect(toldOf(resumed, "busy")).toEqual([
      "REGISTERED busy/t",
      ...Array.from({ length: 9 }, () => "SCHEMA_INVALIDATED busy/t"),
    ]);
    expect(toldOf(resumed, "marker-1")).toEqual([]);
  });

  it("stubs with digests but no definition: the server is asked when somebody first wants one, and only then", async () => {
    const { a, b } = await startPair();
    const server = await startFixture("corpus-server.mjs", [
      fileURLToPath(new URL("../fixtures/corpus/time.json", import.meta.url)),
    ]);
    const texts = [...(await listedTexts(server.url, "modern"))];
    const tools = texts.map(([name, text]) => ({ stub: { name, digest: definitionDigest(text) } }));
    const { revision } = await a.api.call("register", {
      serverId: "lazy",
      instanceId: "instance-1",
      endpoint: server.url,
      declared: { tools },
    });
    expect(await b.api.toolIds({ minRevision: revision })).toHaveLength(6);
    const listed = async () => (await server.requests()).filter((r) => r.method === "tools/list").length;
    expect(await listed()).toBe(1);

    for (const [i, [name, text]] of texts.entries()) {
      const asked = { toolId: `lazy/${name}` };
      const { schema } = await b.api.call("getFullSchema", asked, 15_000);
      expect(schema.definition.toString()).toBe(text);
      expect(schema.freshness).toBe(i === 0 ? "FRESHNESS_LIVE" : "FRESHNESS_CACHED");
      // The other replica finds it in the store.
      expect((await a.api.call("getFullSchema", asked)).schema).toMatchObject({
        freshness: "FRESHNESS_CACHED",
        definition: schema.definition,
      });
    }
    expect(await listed()).toBe(1 + 1);
  });
});

describe.skipIf(inject("redisServer") === "")("a rolling deploy", () => {
  /** A process with a registrar. */
  function deploy(replica: Replica, serverId: string, tools: Record<string, string>) {
    const child = spawn(process.execPath, [DEPLOYED, replica.process.grpc, serverId, JSON.stringify(tools)], {
      stdio: ["pipe", "inherit", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  }
  const instances = async (replica: Replica): Promise<number> =>
    (await replica.api.call("getServer", { serverId: "shop" }).catch(() => ({ server: { instances: [] } }))).server
      .instances.length;

  it("tells one event per changed tool, none for the others, and scale-out and scale-in tell nothing", {
    timeout: 60_000,
  }, async () => {
    const { a, b } = await startPair();
    const old = { keep: "Stays.", keep2: "Stays too.", change: "Before.", drop: "Goes." };
    /** At both replicas: what one has heard of, the other one may hear later. */
    const running = (count: number) => eventually(() => Promise.all([a, b].map(instances)), (counts) => counts.every((n) => n === count));
    const first = deploy(a, "shop", old);
    await running(1);
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();

    const second = deploy(b, "shop", old);
    await running(2);
    await flush(a.api, watches, "marker-1");
    for (const watch of watches) expect(toldOf(watch, "shop")).toEqual([]);

    const fresh = { keep: old.keep, keep2: old.keep2, change: "After.", come: "Is new." };
    const third = deploy(b, "shop", fresh);
    await running(3);
    for (const going of [first, second]) {
      going.kill("SIGTERM");
      await once(going, "exit");
    }
    await running(1);
    const fourth = deploy(a, "shop", fresh);
    await running(2);
    third.kill("SIGTERM");
    await once(third, "exit");
    await running(1);
    await flush(a.api, watches, "marker-2");
    for (const watch of watches) {
      expect(toldOf(watch, "shop").sort()).toEqual([
        "DEREGISTERED shop/drop",
        "REGISTERED shop/come",
        "SCHEMA_INVALIDATED shop/change",
      ]);
      const changed = watch.events.find((e) => e.toolId === "shop/change");
      expect(changed?.oldDigest).toMatch(/^sha256:/);
      expect(changed?.newDigest).not.toBe(changed?.oldDigest);
    }
    expect(await b.api.toolIds({ filter: { serverIds: ["shop"] } })).toEqual([
      "shop/change",
      "shop/come",
      "shop/keep",
      "shop/keep2",
    ]);

    fourth.kill("SIGTERM");
    await once(fourth, "exit");
    await flush(b.api, watches, "marker-3");
    expect(
      toldOf(watches[0] as (typeof watches)[0], "shop")
        .slice(3)
        .sort(),
    ).toEqual(["change", "come", "keep", "keep2"].map((name) => `DEREGISTERED shop/${name}`));
  });
});
