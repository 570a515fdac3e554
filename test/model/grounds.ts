/** The three stores, each with as much control over time as it allows. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "../../src/catalogue/ports.js";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.js";
import { MemoryStore } from "../../src/store/memory/memory-store.js";
import { openRedisStore } from "../../src/store/redis/redis-store.js";
import { ELAPSE } from "../conformance/redis.harness.js";
import { FakeClock, SeededRandom } from "../support/fake-clock.js";
import type { TestRedis } from "../support/redis.js";
import { realClock, silentLogger } from "../support/upstream.js";
import { Recorder } from "../validators/recorder.js";
import { type Broken, Site } from "../validators/site.js";
import { SwitchedStore } from "../validators/switched-store.js";
import type { Client } from "../validators/client.js";
import { type Ground, type OpenGround, RING, WINDOW } from "./ground.js";

const FACTS = { oneHistory: true, healMs: 150_000, window: RING.revisions };

/** Moves time on until the work is done; `breathe` lets the machine do what takes real time. */
function driving(clock: FakeClock, breathe: () => Promise<unknown>) {
  return async <T>(work: Promise<T>): Promise<T> => {
    let done = false;
    const settled = work.finally(() => void (done = true));
    settled.catch(() => undefined);
    for (let turn = 0; turn < 5_000 && !done; turn++) {
      await clock.advance(turn < 200 ? 1 : 20);
      if (!done) await breathe();
    }
    return settled;
  };
}

export const openMemoryGround: OpenGround = () => memoryGround({});

/** `broken` are parts of its second replica. */
export async function memoryGround(broken: Broken): Promise<Ground> {
  const clock = new FakeClock();
  const random = new SeededRandom(7);
  const recorder = new Recorder(FACTS, () => clock.monotonic());
  let current: MemoryStore;
  const fresh = (): MemoryStore => {
    current = new MemoryStore(clock, random, { window: WINDOW });
    return current;
  };
  const store = new SwitchedStore(fresh(), fresh);
  const site = new Site({ clock, random, recorder, ring: RING, drive: driving(clock, async () => undefined) });
  const clients = [site.replica("a", store.attach()), site.replica("b", store.attach(), broken)];
  await clock.advance(20);
  return {
    recorder,
    clients,
    elapse: (ms) => clock.advance(ms),
    async until(holds) {
      for (let i = 0; i < 60; i++) {
        if (await holds()) return true;
        await clock.advance(1_000);
      }
      return false;
    },
    async lose() {
      store.flush();
    },
    async save() {
      const [engine] = current["engines"];
      const saved = engine && structuredClone(engine.state);
      return async () => {
        if (engine && saved) engine["tables"] = structuredClone(saved);
      };
    },
    reopen: undefined,
    async close() {
      const stopped = site.stop();
      await clock.advance(2_000);
      await stopped;
    },
  };
}

/** One replica, as the folder belongs to one process. */
export const openEmbeddedGround: OpenGround = async () => {
  const clock = new FakeClock();
  const random = new SeededRandom(7);
  const recorder = new Recorder(FACTS, () => clock.monotonic());
  const dataDir = await mkdtemp(join(tmpdir(), "toolcrib-model-"));
  const breathe = (): Promise<unknown> => pause(1);
  const drive = driving(clock, breathe);
  const open = () => openEmbeddedStore({ dataDir, clock, random, logger: silentLogger, window: WINDOW });
  let store = await open();
  const site = () => new Site({ clock, random, recorder, ring: RING, drive });
  let current = site();
  const clients: Client[] = [current.replica("a", store)];
  const stop = async (): Promise<void> => {
    await drive(current.stop());
    await store.close();
  };
  const ground: Ground = {
    recorder,
    clients,
    async elapse(ms) {
      for (let left = ms; left > 0; left -= 1_000) {
        await clock.advance(Math.min(left, 1_000));
        await breathe();
      }
    },
    async until(holds) {
      for (let i = 0; i < 200; i++) {
        if (await holds()) return true;
        await clock.advance(500);
        await breathe();
      }
      return false;
    },
    lose: undefined,
    save: undefined,
    async reopen() {
      await stop();
      store = await open();
      current = site();
      clients[0] = current.replica("a", store);
    },
    async close() {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
  return ground;
};

let prefixes = 0;

/** Time is real, but for leases it can be moved: what is stored moves back, and the recorder's clock moves on. */
export function redisGround(redis: TestRedis): OpenGround {
  return async () => {
    let aheadMs = 0;
    const random = new SeededRandom(Date.now());
    const keyPrefix = `model${prefixes++}:`;
    const recorder = new Recorder({ ...FACTS, healMs: 45_000 }, () => performance.now() + aheadMs);
    const site = new Site({ clock: realClock, random, recorder, ring: RING });
    const stores: Store[] = [];
    const clients: Client[] = [];
    for (const name of ["a", "b"]) {
      const store = await openRedisStore({ url: redis.url, keyPrefix, random, logger: silentLogger, window: WINDOW });
      stores.push(store);
      clients.push(site.replica(name, store));
    }
    const keys = (): Promise<string[]> => redis.admin.keys(`${keyPrefix}*`);
    const until = async (holds: () => Promise<boolean>): Promise<boolean> => {
      for (const end = performance.now() + 5_000; performance.now() < end; await pause(20)) if (await holds()) return true;
      return false;
    };
    return {
      recorder,
      clients,
      async elapse(ms) {
        aheadMs += ms;
        const all = await keys();
        if (all.length > 0) await redis.admin.eval(ELAPSE, all.length, ...all, ms);
      },
      until,
      async lose() {
        const all = await keys();
        if (all.length > 0) await redis.admin.del(...all);
      },
      async save() {
        const saved = await Promise.all((await keys()).map(async (key) => [key, await redis.admin.dumpBuffer(key)] as const));
        return async () => {
          const all = await keys();
          const step = redis.admin.multi();
          if (all.length > 0) step.del(...all);
          for (const [key, bytes] of saved) if (bytes) step.restore(key, 0, bytes);
          await step.exec();
        };
      },
      reopen: undefined,
      async close() {
        await site.stop();
        await Promise.all(stores.map((s) => s.close()));
        const all = await keys();
        if (all.length > 0) await redis.admin.del(...all);
      },
    };
  };
}
