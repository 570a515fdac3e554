/** Short stories of a registry, each with what one promise is about. An unbroken registry keeps all promises in all of them. */
import { Scene, type SceneParts } from "./scene.js";
import type { Facts } from "./history.js";

export interface Script {
  readonly facts?: Partial<Facts>;
  play(scene: Scene): Promise<void>;
}

export const tool = (name: string, says = `Does ${name}`): object => ({ name, description: says, inputSchema: { type: "object" } });

/** Both replicas read the whole list, in pages of several sizes. */
async function readEverywhere(scene: Scene): Promise<void> {
  await scene.settle();
  for (const client of [scene.a, scene.b]) {
    await client.list();
    await client.list({ pageSize: 2 });
  }
}

/** Servers come, change and go while watchers with several filters listen on both replicas. */
const day: Script = {
  async play(scene) {
    const { a, b } = scene;
    await scene.settle();
    const watchers = [a.watch(), b.watch(), b.watch({ filter: { serverIds: ["alpha"] } }), a.watch({ filter: { namePrefix: "t" } }), b.watch({ filter: { namePrefix: "t" } })];
    await scene.settle();
    await a.register("alpha", [tool("t1"), tool("t2"), tool("t3")], { requestId: "request-1", ttlMs: 3_600_000 });
    await b.register("alpha", [tool("t1"), tool("t2"), tool("t3")], { requestId: "request-1", ttlMs: 3_600_000 });
    await readEverywhere(scene);
    await b.register("beta", [tool("t9"), tool("u2")], { ttlMs: 3_600_000 });
    await scene.advance(11_000);
    await a.register("alpha", [tool("t1"), tool("t2", "Does it otherwise"), tool("t4")], { requestId: "request-2", ttlMs: 3_600_000 });
    await readEverywhere(scene);
    await b.deregister({ case: "toolId", value: "beta/u2" });
    await scene.advance(11_000);
    await a.deregister({ case: "serverId", value: "alpha" });
    await readEverywhere(scene);
    await scene.advance(11_000);
    for (const watcher of watchers) watcher.leave();
  },
};

/** A watcher leaves, things happen, and it goes on at the other replica. */
const journey: Script = {
  async play(scene) {
    const { a, b } = scene;
    await scene.settle();
    const stays = a.watch();
    const goes = a.watch();
    await a.register("one", [tool("t")], { ttlMs: 3_600_000 });
    await scene.settle();
    goes.leave();
    await a.register("two", [tool("t")], { ttlMs: 3_600_000 });
    await a.register("three", [tool("t")], { ttlMs: 3_600_000 });
    await scene.settle();
    b.watch({ resumeToken: goes.token });
    await scene.settle();
    await a.register("four", [tool("t")], { ttlMs: 3_600_000 });
    await scene.advance(11_000);
    stays.leave();
  },
};

/** One registrant renews, another falls silent, and a third is replaced by a newer instance. */
const leases: Script = {
  async play(scene) {
    const { a, b } = scene;
    await scene.settle();
    a.watch();
    b.watch();
    const kept = await a.register("kept", [tool("t")], { ttlMs: 30_000 });
    await b.register("silent", [tool("t")], { ttlMs: 30_000 });
    const old = await a.register("shop", [tool("t")], { instanceId: "instance-old", ttlMs: 60_000 });
    for (let turn = 0; turn < 3; turn++) {
      await scene.advance(8_000);
      await a.renew(kept);
      await a.list();
    }
    await a.register("shop", [tool("t"), tool("new")], { instanceId: "instance-new", ttlMs: 60_000 });
    await b.deregister({ case: "leaseId", value: old.leaseId });
    await b.renew(old);
    await readEverywhere(scene);
    for (let turn = 0; turn < 3; turn++) {
      await scene.advance(8_000);
      await a.renew(kept);
      await b.list();
    }
  },
};

/** The store is emptied: leased servers register again, standing ones come back by themselves. */
const flushed: Script = {
  facts: { oneHistory: false, healMs: 100_000 },
  async play(scene) {
    const { a, recorder, store } = scene;
    await scene.settle();
    await a.register("standing", [tool("t")], { ttlMs: 0 });
    const held = await a.register("leased", [tool("t")], { ttlMs: 3_600_000 });
    recorder.believes("default", "standing", ["t"]);
    recorder.believes("default", "leased", ["t"]);
    await scene.settle();
    const loss = recorder.fault("store-lost");
    store.flush();
    loss.end();
    await scene.advance(3_000);
    if ((await a.renew(held)) === "UNKNOWN_LEASE") await a.register("leased", [tool("t")], { ttlMs: 3_600_000 });
    await a.register("leased", [tool("t"), tool("u")], { ttlMs: 3_600_000 });
    recorder.believes("default", "leased", ["t", "u"]);
    await scene.advance(110_000);
    await readEverywhere(scene);
  },
};

/** The store goes away and comes back. */
const outage: Script = {
  async play(scene) {
    const { a, b, recorder, store } = scene;
    await scene.settle();
    await a.register("one", [tool("t")], { ttlMs: 3_600_000 });
    await b.definition("one/t");
    const away = recorder.fault("store-away");
    store.away = true;
    await scene.advance(12_000);
    for (const client of [a, b]) {
      await client.list().catch(() => undefined);
      await client.call("listServers", {}).catch(() => undefined);
      await client.definition("one/t").catch(() => undefined);
    }
    store.away = false;
    away.end();
    await scene.advance(5_000);
    await a.list();
  },
};

/** Some tools are no tools, and a tenant has servers of its own. */
const neighbours: Script = {
  async play(scene) {
    const { a, b } = scene;
    await scene.settle();
    await a.register("mixed", [tool("good"), "{\"name\":\"bad\"}", tool("fine")], { ttlMs: 3_600_000 });
    await readEverywhere(scene);
    await a.register("foreign", [tool("secret")], { namespace: "tenant", ttlMs: 3_600_000 });
    await scene.settle();
    for (const client of [a, b]) {
      await client.list();
      await client.list({ namespace: "tenant" });
      await client.call("listServers", {});
    }
  },
};

/** Definitions with spaces, an odd order of keys and a number that no double holds. */
const spelling: Script = {
  async play(scene) {
    const { a, b } = scene;
    const text = '{ "name" : "odd", "inputSchema": {"type":"object", "properties": {"n": {"const": 9007199254740993}}} }';
    await scene.settle();
    await a.register("books", [text, tool("plain")], { ttlMs: 3_600_000 });
    await scene.settle();
    for (const client of [a, b, a]) {
      await client.definition("books/odd");
      await client.definition("books/plain");
    }
  },
};

/** Lists and watches of a server whose definitions nobody asks for. */
const home: Script = {
  async play(scene) {
    const { a, b, recorder, site } = scene;
    site.listings.set("http://127.0.0.1:9/mcp", [tool("t"), tool("u")]);
    await scene.settle();
    await a.introspect("live", "http://127.0.0.1:9/mcp");
    await scene.advance(20_000);
    const quiet = recorder.quiet();
    b.watch();
    for (const client of [a, b]) for (let i = 0; i < 3; i++) await client.list({ pageSize: 1 });
    await scene.advance(5_000);
    quiet.end();
  },
};

export const SCRIPTS = { day, journey, leases, flushed, outage, neighbours, spelling, home } as const;

export type ScriptName = keyof typeof SCRIPTS;

export async function play(name: ScriptName, parts: SceneParts = {}) {
  const script: Script = SCRIPTS[name];
  const scene = new Scene({ ...parts, ...(script.facts && { facts: script.facts }) });
  await script.play(scene);
  return scene.end();
}
