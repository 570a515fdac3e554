import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import { MemoryStore } from "../../../src/store/memory/memory-store.js";
import { declare, introspect, stubsOf, tool, watch, World } from "../../support/replica.js";

let world: World;
let a: Registry;
let b: Registry;
beforeEach(async () => {
  world = new World();
  a = await world.replica();
  b = await world.replica();
});
afterEach(() => world.stop());

const ids = async (registry: Registry) => (await stubsOf(registry)).map((s) => s.toolId);

describe("leases", () => {
  it("P6: a lease is never ended early, and its tools go as EXPIRED after its TTL", async () => {
    await world.run(a.register(declare("s", ["one"], { retention: { kind: "leased", ttlMs: 10_000 } })));
    const w = await watch(b);
    await world.clock.advance(9_900);
    expect(await ids(a)).toEqual(["s/one"]);
    await world.clock.advance(5_000);
    expect(await ids(a)).toEqual([]);
    expect(w.told).toEqual(["EXPIRED s/one"]);
  });

  it("renewing keeps it, at either replica, and makes no revision", async () => {
    const { lease } = await world.run(
      a.register(declare("s", ["one"], { retention: { kind: "leased", ttlMs: 10_000 } })),
    );
    const before = a.partitions[0]?.live().history.head;
    for (let i = 0; i < 10; i++) {
      await world.clock.advance(5_000);
      const [told] = await world.run((i % 2 ? a : b).renew("", [{ leaseId: lease?.leaseId ?? "", setDigest: "" }]));
      expect(told?.state).toBe("ok");
    }
    expect(a.partitions[0]?.live().history.head).toEqual(before);
  });

  it("one bad lease does not spoil the others", async () => {
    const { lease } = await world.run(a.register(declare("s", ["one"])));
    const told = await world.run(
      a.renew("", [
        { leaseId: "l0-00000000000000000000000000000000", setDigest: "" },
        { leaseId: lease?.leaseId ?? "", setDigest: "sha256:other" },
        { leaseId: "noise", setDigest: "" },
      ]),
    );
    expect(told.map((t) => t.state)).toEqual(["unknown-lease", "register-again", "unknown-lease"]);
    expect(told[1]?.renewAfterMs).toBeGreaterThan(8_000);
  });

  it("P6: an old instance's Deregister leaves the newer instance's set alone", async () => {
    const one = await world.run(a.register(declare("s", ["one"], { instanceId: "instance-1" })));
    await world.run(a.register(declare("s", ["two"], { instanceId: "instance-2" })));
    const removed = await world.run(b.deregister("", { kind: "lease", leaseId: one.lease?.leaseId ?? "" }));
    expect(removed.removed).toBe(true);
    expect(await ids(a)).toEqual(["s/two"]);
    expect((await world.run(b.deregister("", { kind: "lease", leaseId: one.lease?.leaseId ?? "" }))).removed).toBe(
      false,
    );
  });

  it("deregistering the server ends all leases on purpose, and a new Register gets a new lease", async () => {
    const one = await world.run(a.register(declare("s", ["one"])));
    const w = await watch(b);
    await world.run(b.deregister("", { kind: "server", serverId: "s" }));
    expect(w.told).toEqual(["DEREGISTERED s/one"]);
    const [late] = await world.run(a.renew("", [{ leaseId: one.lease?.leaseId ?? "", setDigest: "" }]));
    expect(late?.state).toBe("deregistered");
    const again = await world.run(a.register(declare("s", ["one"])));
    expect(again.lease?.leaseId).not.toBe(one.lease?.leaseId);
  });

  it("the brake: a mass end is given a second term, then goes bit by bit", async () => {
    const ttl = { retention: { kind: "leased", ttlMs: 10_000 } } as const;
    for (let i = 0; i < 20; i++) await world.run(a.register(declare(`s${i}`, ["one"], ttl)));
    const w = await watch(a);
    // The registrations took a moment, so a sweep may meet the last one alone and let it go as an ordinary end.
    await world.clock.advance(14_000);
    expect(w.told.length).toBeLessThanOrEqual(2);
    await world.clock.advance(9_000);
    expect(w.told.length).toBeGreaterThan(2);
    expect(w.told.length).toBeLessThan(20);
    await world.clock.advance(60_000);
    expect(await ids(a)).toEqual([]);
    expect(w.told.length).toBe(20);
  });
});

describe("after a loss in the store", () => {
  /** The same replica, its store exchanged for an empty one underneath: what FLUSHALL looks like. */
  function flushable() {
    const lost = world.memory.partitions[0];
    const fresh = new MemoryStore(world.clock, world.random).partitions[0];
    if (!lost || !fresh) throw new Error("no partition");
    let target = lost;
    const store = {
      kind: "memory" as const,
      partitions: [
        {
          partition: 0,
          log: {
            commit: (c: Parameters<typeof lost.log.commit>[0]) => target.log.commit(c),
            snapshot: () => target.log.snapshot(),
            head: () => target.log.head(),
            poll: (...args: Parameters<typeof lost.log.poll>) => target.log.poll(...args),
          },
          get leases() {
            return target.leases;
          },
          get blobs() {
            return target.blobs;
          },
          get notes() {
            return target.notes;
          },
        },
      ],
      close: async () => undefined,
    };
    return { store, flush: () => void (target = fresh) };
  }

  it("P7: serves the old catalogue, stale, until registrants are back; then watchers relist and nobody heard DEREGISTERED", async () => {
    const { store, flush } = flushable();
    const c = await world.replica(store);
    world.listings.set("http://127.0.0.1:1/mcp", [tool("standing")]);
    await world.run(c.register(introspect("op", "http://127.0.0.1:1/mcp")));
    const leased = await world.run(c.register(declare("s", ["one"])));
    const dead = await world.run(c.register(declare("dead", ["gone"])));
    const w = await watch(c);
    const token = w.lastToken;
    flush();
    await world.clock.advance(2_500);
    const page = await world.run(c.server({ namespace: "", serverId: "s", minRevision: "" }));
    expect(page.stale).toBe(true);
    expect(await ids(c)).toEqual(["dead/gone", "op/standing", "s/one"]);
    const stale = await watch(c);
    expect(stale.snapshotEnded).toBe(true);
    expect(stale.tokens).toEqual([]);
    const [told] = await world.run(c.renew("", [{ leaseId: leased.lease?.leaseId ?? "", setDigest: "" }]));
    expect(told?.state).toBe("unknown-lease");
    await world.run(c.register(declare("s", ["one"])));
    // `dead` is waited for until its old lease and one more TTL have passed.
    await world.clock.advance(55_000);
    expect(w.fault).toBeUndefined();
    await world.clock.advance(10_000);
    expect(w.fault?.metadata["cause"]).toBe("chain");
    expect(w.told).toEqual([]);
    expect(dead.lease).toBeDefined();
    expect((await ids(c)).includes("op/standing")).toBe(true);
    expect((await ids(c)).includes("dead/gone")).toBe(false);
    await expect(watch(c, {}, token)).rejects.toMatchObject({ reason: "RELIST_REQUIRED" });
  });
});
