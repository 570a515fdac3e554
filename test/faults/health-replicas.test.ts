/** Three replicas on one store look after one server: the work is shared, and whatever becomes of them, nothing false is said. */
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { CLAIM_TTL_MS } from "../../src/probe/claims.js";
import { startRedis } from "../support/redis.js";
import { RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 120_000 });

const INTERVAL_MS = 500;
/** A claim runs out, the others try for it every third of its time, and the new holder lists before it looks. */
const TAKEN_OVER_MS = 2 * CLAIM_TTL_MS;

interface Replica {
  readonly process: RegistryProcess;
  readonly api: RemoteRegistry;
}

async function startReplicas(url: string): Promise<Replica[]> {
  const args = ["--probe-interval", String(INTERVAL_MS), "--probe-timeout", "500"];
  const processes = await Promise.all(Array.from({ length: 3 }, () => startRegistry({ store: url, args })));
  return processes.map((process) => ({ process, api: new RemoteRegistry(process.grpc) }));
}

const stateOf = async ({ api }: Replica) => (await api.call("getServer", { serverId: "shared" }, 5_000)).server;

/** The replica that looks after the server: only it knows when it looks next. */
async function holderAmong(replicas: readonly Replica[]): Promise<Replica> {
  const held = async () => {
    const states = await Promise.all(replicas.map(stateOf));
    return replicas.filter((_, i) => states[i].nextProbe !== null);
  };
  const [holder] = await eventually(held, (all) => all.length === 1, TAKEN_OVER_MS);
  return holder as Replica;
}

describe.skipIf(inject("redisServer") === "")("three replicas", () => {
  it("share the work: one look an interval, by whoever is there; stopped, continued and killed holders change nothing", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const fixture = await startFixture("faulty-server.mjs", ["--fault", "moody"]);
    const replicas = await startReplicas(redis.url);
    const [first] = replicas as [Replica];
    const tool = { definition: Buffer.from('{"name":"work","inputSchema":{"type":"object"}}') };
    const instance = { instanceId: "instance-1", leaseTtl: { seconds: 600 } };
    await first.api.call("register", { serverId: "shared", endpoint: fixture.url, ...instance, declared: { tools: [tool] } });
    const looks = async () => (await fixture.requests()).filter((r) => r.method === "server/discover").map((r) => r.atMs ?? 0);
    /** A look after this moment. */
    const lookedAgain = async () => {
      const before = (await looks()).length;
      await eventually(async () => (await looks()).length, (count) => count > before, TAKEN_OVER_MS);
    };

    await eventually(() => stateOf(first), (s) => s.conditions.length > 0);
    const before = await looks();
    await eventually(looks, (all) => all.length >= before.length + 10, 60_000);
    const spans = (await looks()).slice(before.length);
    // Three who each looked would do so in a third of the time, two in half of it.
    expect(((spans.at(-1) ?? 0) - (spans[0] ?? 0)) / (spans.length - 1)).toBeGreaterThan(INTERVAL_MS * 0.65);

    const holder = await holderAmong(replicas);
    const others = replicas.filter((r) => r !== holder);
    const known = await stateOf(others[0] as Replica);
    const watch = (others[0] as Replica).api.watch();
    await watch.ready();

    holder.process.child.kill("SIGSTOP");
    const second = await holderAmong(others);
    await lookedAgain();
    holder.process.child.kill("SIGCONT");
    await eventually(() => stateOf(holder).catch(() => undefined), (s) => s?.nextProbe === null, TAKEN_OVER_MS);
    await lookedAgain();
    expect(await stateOf(second)).toMatchObject({ revision: known.revision, conditions: known.conditions });

    await second.process.kill();
    const left = replicas.filter((r) => r !== second);
    const third = await holderAmong(left);
    await lookedAgain();
    expect(await stateOf(third)).toMatchObject({ etag: known.etag, conditions: known.conditions });
    expect(watch.told).toEqual([]);
  });
});
