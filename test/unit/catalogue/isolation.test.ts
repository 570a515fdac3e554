/** Operators and one server: out at once, through whatever happens to it, and back. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import { UpstreamError } from "../../../src/catalogue/upstream-port.js";
import { Fault } from "../../../src/domain/fault.js";
import { DEFAULT_PROBING } from "../../../src/domain/health/probing.js";
import type { Principal } from "../../../src/domain/identity.js";
import type { PublishedBreaker, ServerRecord } from "../../../src/domain/server.js";
import { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { Flushable } from "../../support/flushable.js";
import { declare, introspect, listingOf, stubsOf, tool, watch, World } from "../../support/replica.js";

let world: World;
let a: Registry;
let b: Registry;
beforeEach(async () => {
  world = new World();
  a = await world.replica();
  b = await world.replica();
});
afterEach(() => world.stop());

const who = (id: string): Principal => ({ id, grants: [{ role: "operator", namespaces: ["*"] }] });
const ann = who("ann");
const ben = who("ben");
const S = { namespace: "", serverId: "s" };
const out = (why = "drops rows") => ({ ...S, why });
const header = async (registry: Registry, serverId = "s") =>
  (await registry.server({ namespace: "", serverId, minRevision: "" })).server.header;
/** Every replica has folded what was committed. */
const settle = () => world.clock.advance(100);

describe("isolating a server", () => {
  it("takes it out at once on every replica, and watchers hear of it once", async () => {
    await world.run(a.register(declare("s", ["one", "two"])));
    await settle();
    const watchers = [await watch(a), await watch(b), await watch(b, { availability: "available" })];
    const sinceMs = world.clock.now();
    const { server, position } = await world.run(a.isolate(out(), ann));
    await settle();
    expect(server.header).toMatchObject({
      availability: "unavailable",
      breaker: { kind: "isolated", by: "ann", why: "drops rows" },
    });
    expect(server.revision).toBe(position.revision);
    for (const registry of [a, b]) {
      const { breaker, availability } = await header(registry);
      expect({ breaker, availability }).toEqual({ breaker: server.header.breaker, availability: "unavailable" });
      expect((await stubsOf(registry)).map((s) => s.availability)).toEqual(Array(2).fill(Availability.UNAVAILABLE));
    }
    expect(breakerOf(server)).toMatchObject({ sinceMs });
    expect(watchers.map((w) => w.told)).toEqual([
      ["AVAILABILITY_CHANGED s"],
      ["AVAILABILITY_CHANGED s"],
      ["DEREGISTERED s/one", "DEREGISTERED s/two"],
    ]);
  });

  it("again changes by whom and why and keeps since when; the same again is no revision", async () => {
    await world.run(a.register(declare("s", ["one"])));
    const first = await world.run(a.isolate(out(), ann));
    await settle();
    const watcher = await watch(b);
    await world.clock.advance(5_000);
    const same = await world.run(b.isolate(out(), ann));
    expect(same).toEqual(first);
    const other = await world.run(b.isolate(out("still drops rows"), ben));
    await settle();
    expect(other.position.revision).toBe(first.position.revision + 1);
    expect(breakerOf(other.server)).toEqual({ ...breakerOf(first.server), by: "ben", why: "still drops rows" });
    expect(watcher.told).toEqual([]);
  });

  it("by two operators at two replicas at once leaves one of their reasons, whole", async () => {
    await world.run(a.register(declare("s", ["one"])));
    await settle();
    const watcher = await watch(b);
    await world.run(Promise.all([a.isolate(out("first"), ann), b.isolate(out("second"), ben)]));
    await settle();
    const breakers = [await header(a), await header(b)].map((h) => h.breaker);
    expect(breakers[0]).toEqual(breakers[1]);
    expect([
      ["ann", "first"],
      ["ben", "second"],
    ]).toContainEqual(breakers.map((k) => (k.kind === "isolated" ? [k.by, k.why] : []))[0]);
    expect(watcher.told).toEqual(["AVAILABILITY_CHANGED s"]);
  });

  it("names what is wrong with the call, all at once, and changes nothing", async () => {
    await world.run(a.register(declare("s", ["one"])));
    const before = await a.server({ ...S, minRevision: "" });
    const fields = (error: unknown) => (error as Fault).violations.map((v) => v.field);
    const bad = { namespace: "No", serverId: "Not/Valid", why: " \n" };
    expect(fields(await a.isolate(bad, ann).catch((e: unknown) => e))).toEqual(["namespace", "server_id", "why"]);
    for (const why of ["", "x".repeat(601), "see \u202Eevil"]) {
      await expect(a.isolate(out(why), ann)).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
    }
    await expect(a.isolate(out("x".repeat(601)), ann)).rejects.toThrow(/601.*600/);
    expect(fields(await a.resume({ ...bad }, ann).catch((e: unknown) => e))).toEqual(["namespace", "server_id"]);
    expect(fields(await a.refresh({ ...bad }, ann).catch((e: unknown) => e))).toEqual(["namespace", "server_id"]);
    for (const call of [
      () => a.isolate({ ...out(), serverId: "nobody" }, ann),
      () => a.isolate({ ...out(), namespace: "elsewhere" }, ann),
      () => a.resume({ namespace: "", serverId: "nobody" }, ann),
    ]) {
      await expect(world.run(call())).rejects.toMatchObject({ reason: "NOT_FOUND" });
    }
    expect(await a.server({ ...S, minRevision: "" })).toEqual(before);
  });
});

describe("an isolated server", () => {
  it("stays so when it registers anew, whatever changes in it, and while both happen at once", async () => {
    await world.run(a.register(declare("s", ["one"])));
    await settle();
    const both = [a.isolate(out(), ann), b.register(declare("s", ["one", "two"]))];
    await world.run(Promise.all(both));
    await settle();
    await world.run(b.register(declare("s", ["one", "three"], { instanceId: "instance-2" })));
    await settle();
    for (const registry of [a, b])
      expect(await header(registry)).toMatchObject({ availability: "unavailable", breaker: { kind: "isolated", by: "ann" } });
    expect((await stubsOf(a)).map((s) => [s.name, s.availability])).toEqual([
      ["one", Availability.UNAVAILABLE],
      ["three", Availability.UNAVAILABLE],
    ]);
  });

  it("stays so when an instance of it goes; another server of its name begins anew", async () => {
    const first = await world.run(a.register(declare("s", ["one"])));
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-2" })));
    await world.run(a.isolate(out(), ann));
    await world.run(a.deregister("", { kind: "lease", leaseId: first.lease!.leaseId }));
    expect((await header(a)).breaker.kind).toBe("isolated");
    await world.run(a.deregister("", { kind: "server", serverId: "s" }));
    await world.run(a.register(declare("s", ["one"])));
    expect(await header(a)).toMatchObject({ availability: "available", breaker: { kind: "closed" } });
  });
});

describe("an isolated server that is listed all the same", () => {
  it("takes the list over and stays out", async () => {
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one")]);
    await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    const { server } = await world.run(a.isolate(out(), ann));
    const listing = listingOf([tool("one"), tool("two")]);
    expect(await world.run(a.listings.commitListing("default", "s", listing, server.revision))).toBe("committed");
    expect((await stubsOf(a)).map((s) => s.name)).toEqual(["one", "two"]);
    expect(await header(a)).toMatchObject({ availability: "unavailable", breaker: server.header.breaker });
  });
});

describe("an isolated server that the store lost", () => {
  it("comes back isolated, healed or registered anew; until then it is not said to be absent", async () => {
    const flushable = new Flushable(world);
    const c = await world.replica(flushable.attach().store);
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one")]);
    await world.run(c.register(introspect("standing", "http://127.0.0.1:1/mcp")));
    await world.run(c.register(declare("s", ["one"])));
    for (const serverId of ["standing", "s"]) await world.run(c.isolate({ ...out(), serverId }, ann));
    flushable.flush();
    await world.clock.advance(2_000);
    expect((await header(c, "standing")).breaker).toMatchObject({ kind: "isolated", by: "ann", why: "drops rows" });
    for (const call of [() => c.isolate(out("other"), ben), () => c.resume(S, ben)]) {
      await expect(world.run(call())).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", metadata: { server: "s" } });
    }
    await world.run(c.register(declare("s", ["one"])));
    expect(await header(c)).toMatchObject({ availability: "unavailable", breaker: { kind: "isolated", by: "ann" } });
  });
});

describe("resuming a server", () => {
  it("leaves its return to the first trial", async () => {
    await world.run(a.register(declare("s", ["one"])));
    await world.run(a.isolate(out(), ann));
    await world.clock.advance(5_000);
    const watcher = await watch(b);
    const nowMs = world.clock.now();
    const output = await world.run(b.resume(S, ben));
    await settle();
    expect(output.resumed).toBe(true);
    expect(output.server.header).toMatchObject({
      availability: "unavailable",
      breaker: { kind: "open", attempt: 1 },
    });
    const { breaker } = output.server.header;
    expect(breaker.kind === "open" && breaker.sinceMs >= nowMs && breaker.untilMs === breaker.sinceMs).toBe(true);
    expect(await header(a)).toEqual(output.server.header);
    expect(watcher.told).toEqual([]);
  });

  it.each([
    ["is never dialled", { endpoint: "" }],
    ["is never probed", { probing: { ...DEFAULT_PROBING, off: true } }],
  ])("that %s makes it available at once", async (_what, more) => {
    await world.run(a.register(declare("s", [tool("one")], more)));
    await world.run(a.isolate(out(), ann));
    await settle();
    const watcher = await watch(b);
    const { server } = await world.run(a.resume(S, ann));
    await settle();
    expect(server.header).toMatchObject({ availability: "available", breaker: { kind: "closed" } });
    expect(watcher.told).toEqual(["AVAILABILITY_CHANGED s"]);
  });

  it("that was not isolated is no revision, whoever is first", async () => {
    await world.run(a.register(declare("s", ["one"])));
    const before = await header(a);
    expect(await world.run(a.resume(S, ann))).toMatchObject({ resumed: false, server: { header: before } });
    await world.run(a.isolate(out(), ann));
    await settle();
    const both = await world.run(Promise.all([a.resume(S, ann), b.resume(S, ben)]));
    expect(both.map((o) => o.resumed).sort()).toEqual([false, true]);
  });
});

describe("refreshing a server", () => {
  const listing = listingOf([tool("one"), tool("two")]);

  it("tells what the listing found, and whether the catalogue changed", async () => {
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one")]);
    await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    const basedOn = (await a.server({ ...S, minRevision: "" })).server.revision;
    a.useRefresher(async (namespace, serverId) => {
      await a.listings.commitListing(namespace, serverId, listing, basedOn);
      return { ...listing, rejected: [{ name: "bad", reasons: ["x"] }] };
    });
    const changed = await world.run(a.refresh(S, ann));
    expect(changed).toMatchObject({ listed: 3, changed: true });
    expect(changed.server.tools.map((t) => t.name)).toEqual(["one", "two"]);
    expect(changed.position.revision).toBe(changed.server.revision);
    a.useRefresher(async () => listing);
    expect(await world.run(a.refresh(S, ann))).toMatchObject({ listed: 2, changed: false, server: changed.server });
  });

  it("does not dial one that is isolated, never dialled or absent, and says why one does not answer", async () => {
    let dialled = 0;
    const refuse = (error: unknown) => async () => {
      dialled++;
      throw error;
    };
    a.useRefresher(refuse(new UpstreamError("connect", "nobody listens there")));
    await world.run(a.register(declare("s", ["one"])));
    await expect(world.run(a.refresh(S, ann))).rejects.toMatchObject({
      reason: "LOAD_FAILED",
      message: "server s could not be listed: nobody listens there",
      metadata: { server: "s", kind: "connect" },
    });
    expect(dialled).toBe(1);
    a.useRefresher(refuse(new Fault("DRAINING", "stopping")));
    await expect(world.run(a.refresh(S, ann))).rejects.toMatchObject({ reason: "DRAINING" });
    await world.run(a.register(declare("silent", [tool("one")], { endpoint: "" })));
    await expect(world.run(a.refresh({ namespace: "", serverId: "silent" }, ann))).rejects.toMatchObject({
      reason: "LOAD_FAILED",
      metadata: { server: "silent" },
    });
    await expect(world.run(a.refresh({ namespace: "", serverId: "x" }, ann))).rejects.toMatchObject({ reason: "NOT_FOUND" });
    await world.run(a.isolate(out(), ben));
    await expect(world.run(a.refresh(S, ann))).rejects.toMatchObject({
      reason: "SERVER_ISOLATED",
      message: expect.stringMatching(/by ben .*: drops rows$/),
      metadata: { server: "s", isolated_by: "ben" },
      retryAfterMs: undefined,
    });
    expect(dialled).toBe(2);
    await expect(b.refresh(S, ann)).rejects.toMatchObject({ reason: "NOT_READY" });
  });
});

function breakerOf({ header: { breaker } }: ServerRecord): PublishedBreaker {
  return breaker;
}
