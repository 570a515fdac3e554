/**
 * Any sequence of what clients, operators and time may do, on each store: the registry answers as the model says, and keeps every
 * promise. A failure prints the seed, the path and the shortest sequence; MODEL_SEED and MODEL_PATH repeat it. Redis keeps its own
 * time: leases end there by moving what is stored back.
 */
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { startRedis, type TestRedis } from "../support/redis.js";
import { WATCHING } from "../validators/mutants/watching.js";
import { explore } from "./all.js";
import { memoryGround, openEmbeddedGround, openMemoryGround, redisGround } from "./grounds.js";

const asked = Number(process.env["MODEL_RUNS"] ?? 0);
const deep = process.env["DEEP_TESTS"] === "1" || asked > 0;
const runs = (usual: number, much: number) => (asked > 0 ? asked : deep ? much : usual);
const limitMs = deep ? 500_000 : 25_000;
const timeout = deep ? 600_000 : 90_000;

describe("any sequence of commands", { timeout }, () => {
  it("on two replicas over memory", () => explore(openMemoryGround, { runs: runs(200, 3_000), commands: 30, limitMs }));

  it("finds a broken hub, and tells of it in a few commands", async () => {
    const broken = WATCHING.find((m) => m.name === "a hub that tells a change twice")?.parts.broken ?? {};
    const found = explore(() => memoryGround(broken), { runs: 200, commands: 30, limitMs });
    const failure = await found.then(() => undefined, (error: Error) => error);
    expect(failure?.cause).toMatchObject({ message: expect.stringMatching(/^P2 no gap: watcher w\d+ .*twice/) });
    expect(failure?.message).toMatch(/seed: .*path: .*Counterexample: \[.*(Watch|Resume).*\]/s);
    // A watch and a change are enough.
    expect(/Counterexample: \[(.*)\]/.exec(failure?.message ?? "")?.[1]?.match(/(^|,)[A-Z]/g)?.length).toBeLessThanOrEqual(3);
  });

  it("on the embedded store, stopped and started in between", () => explore(openEmbeddedGround, { runs: runs(25, 300), commands: 20, limitMs }));
});

describe.skipIf(inject("redisServer") === "")("any sequence of commands", { timeout }, () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it("on two replicas over Redis", () => explore(redisGround(redis), { runs: runs(15, 200), commands: 20, limitMs }));
});
