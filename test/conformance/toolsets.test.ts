import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redisMissing, startRedis, type TestRedis } from "../support/redis.js";
import { openEmbedded } from "./embedded.harness.js";
import { openMemory } from "./memory.harness.js";
import { redisHarness } from "./redis.harness.js";
import { alice, Bench, toolsetSuite } from "./toolsets.suite.js";

describe("toolsets in memory", () => toolsetSuite(openMemory));
describe("toolsets in the embedded store", () => toolsetSuite(openEmbedded));

const missing = redisMissing();
let redis: TestRedis;

describe.skipIf(missing)("toolsets in Redis", () => {
  beforeAll(async () => void (redis = await startRedis()));
  afterAll(() => redis.stop());

  toolsetSuite((window) => redisHarness({ url: redis.url, servers: [redis] })(window));

  it("10,000 abandoned ones leave nothing in a replica, and nothing in the store once their time is over", async () => {
    await redis.flush();
    const harness = await redisHarness({ url: redis.url, servers: [redis] })(undefined);
    const bench = new Bench(harness, { perPrincipal: 10_000, perNamespace: 10_000 });
    const fill = async (count: number): Promise<void> => {
      for (let left = count; left > 0; left -= 50) await Promise.all(Array.from({ length: 50 }, () => bench.create(alice, 600_000)));
    };
    await fill(500);
    bench.happened.length = 0;
    const before = heapBytes();
    await fill(9_500);
    bench.happened.length = 0;
    const grown = heapBytes() - before;
    // Less than 100 bytes each: a replica that kept so much as their handles would show more.
    expect(grown).toBeLessThan(900_000);
    await expect(bench.create(alice, 600_000)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { limit: "10000" } });
    expect(await redis.admin.dbsize()).toBeGreaterThan(10_000);
    await bench.elapse(600_000 * 1.25 + 70_000);
    await bench.create(alice, 600_000);
    await expect.poll(async () => (await redis.admin.keys("*toolset*")).length).toBeLessThan(5);
    await harness.close();
  }, 60_000);
});

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
