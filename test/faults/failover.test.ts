/** A failover that loses writes which Redis had acknowledged (P7): nobody is left with what is gone, and what lives comes back. */
import { status } from "@grpc/grpc-js";
import { describe, expect, inject, it, vi } from "vitest";
import { detailsOf } from "../support/details.js";
import { startFleet } from "../support/fleet.js";
import { redisForTest, startReplicaOn } from "../support/pair.js";
import { startWire } from "../support/proxy.js";
import { declared, type RemoteWatch } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 120_000 });

const tool = (name: string) => ({ name, description: `Does ${name}`, inputSchema: { type: "object" } });
const TTL_SECONDS = 10;

async function relisted(watch: RemoteWatch): Promise<void> {
  await eventually(
    () => watch.error,
    (error) => error !== undefined,
    40_000,
  );
  if (watch.error) {
    expect(detailsOf(watch.error)).toMatchObject({ code: status.OUT_OF_RANGE, reason: "RELIST_REQUIRED" });
    expect(["chain", "ahead"]).toContain(detailsOf(watch.error).metadata["cause"]);
  }
}

describe.skipIf(inject("redisServer") === "")("a failover to a replica that lacks the last writes", () => {
  it("tells every watcher to relist, brings back within a renewal who still lives, and leaves no phantom tool", async () => {
    const primary = await redisForTest();
    const follower = await redisForTest();
    await follower.admin.call("REPLICAOF", "127.0.0.1", primary.port);
    const wire = await startWire(primary.port);
    const url = `redis://127.0.0.1:${wire.port}`;
    const a = await startReplicaOn(url);
    const b = await startReplicaOn(url);
    const kept = await startFleet([a.api, b.api], 5, TTL_SECONDS);
    await eventually(
      async () => (await follower.admin.call("ROLE")) as [string, string, number, string, number],
      ([kind, , , link]) => kind === "slave" && link === "connected",
    );
    await primary.admin.wait(1, 5_000);
    const watches = [a.api.watch(), b.api.watch()];
    for (const watch of watches) await watch.ready();

    // From here on the follower hears nothing more, and what is acknowledged is in one place only.
    await follower.admin.call("REPLICAOF", "NO", "ONE");
    const lost = await startFleet([b.api], 3, TTL_SECONDS, "late");
    await a.api.call("register", declared("phantom", [tool("nobody")], { leaseTtl: { seconds: TTL_SECONDS } }));
    await a.api.call("register", declared("phantom-standing", [tool("kept")], { standing: true, endpoint: "http://127.0.0.1:9/mcp" }));
    for (const { api } of [a, b])
      await eventually(
        () => api.toolIds(),
        (ids) => ids.includes("phantom/nobody") && ids.includes("phantom-standing/kept"),
      );

    const cut = wire.cut();
    await primary.kill();
    await cut;
    wire.aim(follower.port);
    await wire.mend();

    for (const watch of watches) await relisted(watch);
    for (const watch of watches) expect(watch.told.filter((told) => /DEREGISTERED|EXPIRED/.test(told))).toEqual([]);
    // Nobody renews the phantom: it is gone once the lease that was lost would have ended. Everybody else is there.
    const alive = [...kept.toolIds, ...lost.toolIds, "phantom-standing/kept"].sort();
    for (const { api } of [a, b])
      await eventually(
        () => api.toolIds(),
        (ids) => JSON.stringify(ids) === JSON.stringify(alive),
        60_000,
      );
    for (const { api } of [a, b]) {
      const again = api.watch();
      await again.ready();
      expect(again.stubs.map((stub) => stub.toolId)).toEqual(alive);
    }
  });
});
