import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import type { Store } from "../../../src/catalogue/ports.js";
import { declare, introspect, listingOf, Recorder, seen, stubsOf, tool, watch, World } from "../../support/replica.js";
import { storeUnavailable } from "../../../src/domain/fault.js";
import { everything } from "../../../src/domain/filter.js";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import { createIntake } from "../../../src/probe/intake.js";
import { createLister } from "../../../src/schemas/lister.js";
import { Flushable } from "../../support/flushable.js";
import { silentLogger } from "../../support/upstream.js";

let world: World;
afterEach(() => world.stop());

const server = (r: any, id: string) => r.server({ namespace: "", serverId: id, minRevision: "" });

/** One test for each bug that was found in the catalogue by reading; its letter is its name in the history. */
/** Bytes of buffers that somebody still holds: what is only garbage is collected first. */
function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  gc();
  return process.memoryUsage().arrayBuffers;
}

describe("bugs that were found", () => {
  it("D: a revision of a dead chain never passes as an expectation (no zombie)", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach(),
      B = f.attach();
    const a = await world.replica(A.store),
      b = await world.replica(B.store);
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-1" })));
    await world.clock.advance(1_000);
    B.hold.hold();
    f.flush();
    await world.clock.advance(1_000); // B's last poll on the old store ends; A has noticed
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-1" })));
    const second = b.register(declare("s", ["one"], { instanceId: "instance-2" }));
    await world.clock.advance(10);
    B.hold.release();
    await world.run(second);
    await world.clock.advance(3_000);
    await world.clock.advance(600_000); // everybody is dead
    const left = await server(a, "s").then(
      (x: any) => x.server.header.instances.length,
      () => 0,
    );
    expect(left).toBe(0);
  }, 60_000);

  it("E: a second broken chain while growing does not swap in a half-empty catalogue", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach();
    const a = await world.replica(A.store);
    for (const id of ["s1", "s2", "s3"]) await world.run(a.register(declare(id, ["one"])));
    f.flush();
    await world.clock.advance(2_000);
    for (const id of ["s1", "s2"]) await world.run(a.register(declare(id, ["one"])));
    await world.run(a.register(introspect("standing", "http://127.0.0.1:1/mcp")));
    await world.clock.advance(100);
    f.flush(); // again, 2 s later
    await world.clock.advance(2_000);
    await world.run(a.register(declare("s3", ["one"]))); // only the last one is back so far
    await world.clock.advance(1_000);
    expect((await stubsOf(a)).map((s) => s.serverId)).toEqual(["s1", "s2", "s3"]);
    await world.clock.advance(5_000);
    const standing = a.partitions[0]!.live().history.server("default", "standing");
    expect(standing, "a standing server acknowledged in the first new history").toBeDefined();
  }, 60_000);

  it("N: a standing instance comes back beside a leased one that was quicker to register again", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach();
    const a = await world.replica(A.store);
    const standing = declare("both", ["one"], { instanceId: "kept-for-ever", retention: { kind: "standing" } });
    await world.run(a.register(standing));
    await world.run(a.register(declare("both", ["one"], { instanceId: "leased-one" })));
    f.flush();
    // The leased instance registers at the same moment as the broken log is noticed.
    const again = a.register(declare("both", ["one"], { instanceId: "leased-one" })).catch(() => undefined);
    await world.clock.advance(2_000);
    await world.run(again);
    await world.run(a.register(declare("both", ["one"], { instanceId: "leased-one" })));
    await world.clock.advance(5_000);
    const { header } = a.partitions[0]!.live().history.server("default", "both")!.record;
    expect(header.instances.map((i) => i.instanceId).sort()).toEqual(["kept-for-ever", "leased-one"]);
    expect(header.retention).toBe("standing");
    await world.clock.advance(120_000);
    expect((await stubsOf(a)).map((s) => s.serverId)).toEqual(["both"]);
  }, 60_000);

  it("E2: standing server acknowledged while growing survives a second break", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach();
    const a = await world.replica(A.store);
    for (const id of ["s1", "s2"]) await world.run(a.register(declare(id, ["one"])));
    f.flush();
    await world.clock.advance(2_000);
    await world.run(a.register(introspect("standing", "http://127.0.0.1:1/mcp")));
    f.flush();
    await world.clock.advance(10_000);
    expect(a.partitions[0]!.live().history.server("default", "standing")).toBeDefined();
  }, 60_000);

  it("F: a Register with another rejected tool is told in the server's status", async () => {
    world = new World();
    const a = await world.replica();
    const bad = { name: "bad", inputSchema: "nonsense" };
    await world.run(a.register(declare("s", [tool("one"), bad])));
    expect((await server(a, "s")).server.header.rejected.map((r: any) => r.name)).toEqual(["bad"]);
    await world.run(a.register(declare("s", [tool("one")])));
    await world.clock.advance(1_000);
    expect((await server(a, "s")).server.header.rejected).toEqual([]);
  });

  it("A1: a failed listing of an old registration does not make a new one unavailable", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(
      a.register(declare("s", ["one"], { instanceId: "instance-1", endpoint: "http://127.0.0.1:1/mcp" })),
    );
    const directory = { server: (ns: string, id: string) => a.partitions[0]!.live().history.server(ns, id)?.record };
    let failE1: (e: unknown) => void = () => {};
    const upstream = {
      list: (endpoint: string) =>
        endpoint.includes(":1/")
          ? new Promise<any>((_, no) => {
              failE1 = no;
            })
          : Promise.resolve(listingOf([tool("one")])),
    };
    const intake = createIntake({
      writer: a.listings,
      records: directory,
      relist: (ns, id) => lister.relist(ns, id),
      heard: () => undefined,
      clock: world.clock,
      random: world.random,
      logger: silentLogger,
    });
    const lister = createLister({
      upstream,
      directory,
      intake,
      definitions: { keep: async () => {} },
      clock: world.clock,
      logger: silentLogger,
    });
    const load = lister.list("default", "s").catch((e) => e);
    await world.clock.advance(100);
    // The server moved: a new process at a new endpoint, the old one says goodbye.
    const old = (await server(a, "s")).server.header.instances[0].leaseId;
    await world.run(
      a.register(declare("s", ["one"], { instanceId: "instance-2", endpoint: "http://127.0.0.1:2/mcp" })),
    );
    await world.run(a.deregister("", { kind: "lease", leaseId: old }));
    failE1(new UpstreamError("connect", "refused"));
    await load;
    await world.clock.advance(1_000);
    expect((await server(a, "s")).server.header.availability).toBe("available");
  });

  it("A2: a sight that waited its turn is not published about a newer registration", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-1" })));
    a.listings.health("default", "s", seen("unavailable"));
    await world.clock.advance(3_000);
    a.listings.health("default", "s", seen("unavailable", "TIMEOUT"));
    await world.run(a.deregister("", { kind: "server", serverId: "s" }));
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-2" })));
    expect((await server(a, "s")).server.header.availability).toBe("available");
    await world.clock.advance(10_000);
    expect((await server(a, "s")).server.header.availability).toBe("available");
  });

  it("J: a standing server deregistered before it is healed stays away", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach();
    const a = await world.replica(A.store);
    await world.run(a.register(introspect("gone", "http://127.0.0.1:1/mcp")));
    await world.run(a.register(declare("s", ["one"])));
    const snap = A.store.partitions[0]!.leases as any;
    const buried = snap.buried;
    let let1 = () => {};
    snap.buried = (x: string, y: string) =>
      new Promise((r) => {
        let1 = () => r(buried(x, y));
      });
    f.flush();
    await world.clock.advance(2_000);
    const out = await world.run(a.deregister("", { kind: "server", serverId: "gone" }));
    expect(out.removed).toBe(true);
    let1();
    await world.clock.advance(2_000);
    expect(a.partitions[0]!.live().history.server("default", "gone")).toBeUndefined();
  });

  it("H: onHistory hears of the swap", async () => {
    world = new World();
    const f = new Flushable(world);
    const A = f.attach();
    const a = await world.replica(A.store);
    await world.run(a.register(declare("s", ["one"])));
    const heard: string[] = [];
    a.partitions[0]!.onHistory(() => heard.push(a.partitions[0]!.state.kind));
    f.flush();
    await world.clock.advance(2_000);
    await world.clock.advance(120_000);
    expect(a.partitions[0]!.state.kind).toBe("following");
    expect(heard.at(-1)).toBe("following");
  });

  for (let ticks = 0; ticks < 8; ticks++)
    it(`C: a watch opened ${ticks} ticks into a relist is told`, async () => {
      world = new World();
      const inner = world.memory.attach();
      const p = inner.partitions[0]!;
      let breakNow: ((r: any) => void) | undefined;
      let give: ((s: any) => void) | undefined;
      let mode = "normal";
      const store: Store = {
        ...inner,
        partitions: [
          {
            ...p,
            log: {
              ...p.log,
              poll: (after, limit, signal) =>
                mode === "normal"
                  ? p.log.poll(after, limit, signal)
                  : mode === "break"
                    ? new Promise((r) => {
                        breakNow = r;
                      })
                    : p.log.poll(after, limit, signal),
              snapshot: () =>
                mode === "break"
                  ? new Promise((r) => {
                      give = r;
                    })
                  : p.log.snapshot(),
              commit: p.log.commit,
              head: p.log.head,
            },
          },
        ],
      };
      const a = await world.replica(store);
      await world.run(a.register(declare("s", ["one"])));
      mode = "break";
      await world.clock.advance(2_000);
      breakNow!({ kind: "broken", cause: "compacted" });
      await world.clock.settle();
      const snapshot = await p.log.snapshot();
      const rec = new Recorder();
      give!(snapshot);
      mode = "done";
      for (let i = 0; i < ticks; i++) await Promise.resolve();
      rec.handle = await a.watch({ filter: everything(""), resumeToken: "", minRevision: "" }, rec);
      await world.run(a.register(declare("t", ["two"])));
      await world.clock.advance(20_000);
      const fine = rec.fault !== undefined || rec.told.length > 0 || rec.stubs.length > 1;
      expect(fine).toBe(true);
    });

  it("M: an outage longer than half of a short TTL holds the brake", async () => {
    world = new World();
    const inner = world.memory.attach();
    const p = inner.partitions[0]!;
    let away = false;
    const guard = <T extends object>(port: T): T =>
      new Proxy(port, {
        get: (t, k) => {
          const f = (t as any)[k];
          return typeof f !== "function"
            ? f
            : async (...a: unknown[]) => {
                if (away) throw storeUnavailable(new Error("away"));
                return f.apply(t, a);
              };
        },
      });
    const store: Store = {
      ...inner,
      partitions: [
        { partition: 0, log: guard(p.log), leases: guard(p.leases), blobs: guard(p.blobs), notes: guard(p.notes) },
      ],
    };
    const a = await world.replica(store);
    await world.clock.advance(5_000);
    const { lease } = await world.run(
      a.register(declare("s", ["one"], { retention: { kind: "leased", ttlMs: 10_000 } })),
    );
    away = true;
    await world.clock.advance(11_000); // longer than the whole TTL
    away = false;
    await world.clock.advance(3_000); // the registrant, renewing every 3.3 s with backoff, comes back now
    const [r] = await world.run(a.renew("", [{ leaseId: lease!.leaseId, setDigest: "" }]));
    expect(r!.state).toBe("ok");
  });

  it("G: snapshots kept for distinct filters are bounded in bytes", async () => {
    world = new World();
    const a = await world.replica();
    const brief = "x".repeat(500);
    const tools = Array.from({ length: 2000 }, (_, i) => ({
      name: `t${i}`,
      description: brief,
      inputSchema: { type: "object" },
    }));
    await world.run(a.register(declare("big", tools)));
    const before = heldBytes();
    const filters = 300;
    for (let i = 0; i < filters; i++) {
      const w = await watch(a, { serverIds: ["big", `x${i}`] });
      w.handle?.close();
    }
    // What a collection frees is counted when it has been swept, which goes on beside.
    await expect.poll(() => heldBytes() - before, { interval: 100 }).toBeLessThan(64e6);
  }, 60_000);
});
