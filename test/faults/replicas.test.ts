/** Replicas and registrants that stop for a while, lose answers or believe in another time: nobody else notices. */
import { existsSync } from "node:fs";
import { describe, expect, inject, it, onTestFinished, vi } from "vitest";
import { startFleet } from "../support/fleet.js";
import { flush, type Replica, redisForTest, resume, startPair, startReplicaOn, toldOf } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import { declared, RemoteRegistry, type RemoteWatch } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 90_000 });

const withRedis = describe.skipIf(inject("redisServer") === "");
const tool = (name: string, description = `Does ${name}`) => ({ name, description, inputSchema: { type: "object" } });
const HOUR = { leaseTtl: { seconds: 3600 } };
const TTL_SECONDS = 10;

const ended = (watch: RemoteWatch): string[] => watch.told.filter((told) => /DEREGISTERED|EXPIRED/.test(told));
async function countOf({ process }: Replica, metric: string): Promise<number> {
  const text = await (await fetch(`${process.ops}/metrics`)).text();
  const values = text.split("\n").filter((line) => line.startsWith(metric));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

withRedis("a commit whose answer is lost", () => {
  it("repeated with the same request id at another replica, is the same revision and one event", async () => {
    const { a, b } = await startPair();
    const watch = b.api.watch();
    await watch.ready();
    const wire = await startWire(Number(a.process.grpc.split(":")[1]));
    const far = new RemoteRegistry(`127.0.0.1:${wire.port}`, true);
    onTestFinished(() => far.client.close());
    await far.call("getStubs");
    const request = declared("lost", [tool("once")], { ...HOUR, requestId: "the-one-request" });
    wire.deafen();
    const lost = far.call("register", request, 60_000).then(
      () => "answered",
      (error: { details: string }) => error.details,
    );
    await eventually(
      () => toldOf(watch, "lost"),
      (told) => told.length > 0,
    );
    await wire.cut();
    expect(await lost).not.toBe("answered");

    const { server } = await b.api.call("getServer", { serverId: "lost" });
    const again = await b.api.call("register", request);
    expect(again.etag).toBe(server.etag);
    await flush(b.api, [watch], "marker");
    expect(toldOf(watch, "lost")).toEqual(["REGISTERED lost/once"]);
  });
});

withRedis("a watcher that drops in the middle of a change", () => {
  it("gets it whole when it resumes with its last token, at another replica", async () => {
    const { a, b } = await startPair();
    const watch = a.api.watch();
    await watch.ready();
    // Far over 32 KiB, so it comes in many messages, of which only the last one has a token.
    const names = Array.from({ length: 400 }, (_, i) => `tool-${String(i).padStart(3, "0")}`);
    const dropped = new Promise<void>((resolve) => {
      watch.stream.on("data", (m: { message: string; change?: { resumeToken: string } }) => {
        if (m.message !== "change" || m.change?.resumeToken !== "") return;
        watch.cancel();
        resolve();
      });
    });
    await a.api.call("register", declared("big", names.map((name) => tool(name, "x".repeat(500))), HOUR));
    await dropped;
    expect(watch.events.length).toBeLessThan(names.length);
    const next = await resume(b.api, watch.token);
    await eventually(
      () => toldOf(next, "big").length,
      (count) => count >= names.length,
    );
    expect(toldOf(next, "big")).toEqual(names.map((name) => `REGISTERED big/${name}`));
  });
});

withRedis("one lease and two sweepers", () => {
  it("ends in one revision, told once", async () => {
    const { a, b } = await startPair();
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();
    await a.api.call("register", declared("silent", [tool("gone")], { leaseTtl: { seconds: TTL_SECONDS } }));
    await eventually(
      () => watches.map((w) => toldOf(w, "silent")),
      (told) => told.every((t) => t.includes("EXPIRED silent/gone")),
      60_000,
    );
    await flush(b.api, watches, "marker");
    for (const watch of watches) expect(toldOf(watch, "silent")).toEqual(["REGISTERED silent/gone", "EXPIRED silent/gone"]);
  });
});

withRedis("a registrant frozen past its TTL", () => {
  it("expires, and is back by itself when it goes on", async () => {
    const { a, b } = await startPair();
    const fleet = await startFleet([a.api], 3, TTL_SECONDS);
    const watch = b.api.watch();
    await watch.ready();
    fleet.freeze("fleet-001");
    await eventually(
      () => ended(watch),
      (told) => told.length > 0,
      60_000,
    );
    expect(ended(watch)).toEqual(["EXPIRED fleet-001/work"]);
    fleet.thaw("fleet-001");
    await eventually(
      () => b.api.toolIds(),
      (ids) => ids.length === fleet.toolIds.length,
      60_000,
    );
    expect(ended(watch)).toEqual(["EXPIRED fleet-001/work"]);
  });
});

withRedis("a replica that was frozen for longer than every lease and claim", () => {
  it("expires nothing by its own clock, and its late verdicts change nothing", async () => {
    const redis = await redisForTest();
    const quick = ["--probe-interval", "500", "--probe-timeout", "500"];
    const a = await startReplicaOn(redis.url, quick);
    const b = await startReplicaOn(redis.url, quick);
    const fleet = await startFleet([b.api], 10, TTL_SECONDS);
    const watch = b.api.watch();
    await watch.ready();
    a.process.child.kill("SIGSTOP");
    onTestFinished(() => void a.process.child.kill("SIGCONT"));
    // It is time itself that has to pass here.
    await sleep((process.env["DEEP_TESTS"] ? 60 : 20) * 1_000);
    a.process.child.kill("SIGCONT");
    // Some sweeps and looks later it has done whatever it was going to do.
    const sweeps = await countOf(a, "toolcrib_sweeps_total");
    await eventually(
      () => countOf(a, "toolcrib_sweeps_total"),
      (count) => count >= sweeps + 5,
      30_000,
    );
    await flush(a.api, [watch], "marker");
    expect(watch.told).toEqual(["REGISTERED marker/mark"]);
    expect((await a.api.toolIds()).sort()).toEqual([...fleet.toolIds, "marker/mark"].sort());
  });
});

const FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"].find((f) =>
  existsSync(f),
);

withRedis("a replica whose clock is five minutes off", () => {
  it.skipIf(FAKETIME === undefined).each(["+5m", "-5m"])("by %s: leases end by the store's clock alone (needs libfaketime)", async (offset) => {
    const redis = await redisForTest();
    const env = { LD_PRELOAD: FAKETIME as string, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: "1" };
    const a = await startReplicaOn(redis.url, [], env);
    const b = await startReplicaOn(redis.url);
    const fleet = await startFleet([a.api, b.api], 6, TTL_SECONDS);
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();
    const before = performance.now();
    await a.api.call("register", declared("silent", [tool("gone")], { leaseTtl: { seconds: TTL_SECONDS } }));
    await eventually(
      () => watches.map((w) => toldOf(w, "silent")),
      (told) => told.every((t) => t.includes("EXPIRED silent/gone")),
      60_000,
    );
    // P6: not before its time, whatever either replica believes the time to be.
    expect(performance.now() - before).toBeGreaterThan(TTL_SECONDS * 1_000);
    for (const watch of watches) expect(ended(watch)).toEqual(["EXPIRED silent/gone"]);
    for (const replica of [a, b]) expect(await replica.api.toolIds()).toEqual([...fleet.toolIds]);
  });
});
