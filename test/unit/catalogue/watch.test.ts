import { afterEach, describe, expect, it } from "vitest";
import { createHash } from "node:crypto";
import { formatResumeToken } from "../../../src/domain/revision.js";
import { declare, introspect, listingOf, Recorder, seen, stubsOf, tool, watch, World } from "../../support/replica.js";
import { everything, filterHash } from "../../../src/domain/filter.js";

let world: World;
afterEach(() => world.stop());

const many = (n: number, prefix = "tool") =>
  Array.from({ length: n }, (_, i) => `${prefix}-${String(i).padStart(4, "0")}`);

describe("Watch", () => {
  it("opens with a snapshot in chunks of at most 32 KiB, then follows", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("big", many(1_000))));
    const w = await watch(a);
    expect(w.snapshotEnded).toBe(true);
    expect(w.stubs.map((s) => s.toolId)).toEqual((await stubsOf(a)).map((s) => s.toolId));
    expect(Math.max(...w.bytes)).toBeLessThanOrEqual(32 * 1024);
    expect(w.bytes.length).toBeGreaterThan(2);
    await world.run(a.register(declare("s", ["one"])));
    expect(w.told).toEqual(["REGISTERED s/one"]);
  });

  it("splits a change over 32 KiB; only its last part carries the token", async () => {
    world = new World();
    const a = await world.replica();
    const w = await watch(a);
    await world.run(a.register(declare("big", many(1_000))));
    expect(w.events.length).toBe(1_000);
    expect(Math.max(...w.bytes)).toBeLessThanOrEqual(32 * 1024);
    // One token closed the (empty) snapshot, one is its bookmark's, one came with the whole change.
    expect(w.tokens.length).toBe(3);
    expect(new Set(w.events.map((e) => e.revision)).size).toBe(1);
  });

  it("P4: a token resumes on every replica, even one that started after the events", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one"])));
    const w = await watch(a);
    w.handle?.close();
    await world.run(a.register(declare("s", ["two"])));
    await world.run(a.register(declare("t", [tool("x")])));
    const fresh = await world.replica();
    const resumed = await watch(fresh, {}, w.lastToken);
    expect(resumed.stubs).toEqual([]);
    expect(resumed.told).toEqual(["DEREGISTERED s/one", "REGISTERED s/two", "REGISTERED t/x"]);
    expect(resumed.bookmarks).toBe(1);
  });

  it("refuses tokens with their cause: noise, another filter, foreign partition, future, broken chain, compacted", async () => {
    world = new World();
    const ring = { revisions: 3, bytes: 1 << 20 };
    const a = await world.replica(undefined, ring);
    const w = await watch(a);
    const early = w.lastToken;
    for (const name of many(6)) await world.run(a.register(declare("s", [name])));
    const head = a.partitions[0]?.live().history.head;
    if (!head) throw new Error("not ready");
    const hash = filterHash(everything("default"));
    const refused = (token: string, filter = {}) =>
      watch(a, filter, token).then(
        () => "opened",
        (e) => [e.reason, e.metadata["cause"]].join(" "),
      );
    expect(await refused("noise!")).toBe("INVALID_TOKEN ");
    expect(await refused(createHash("sha256").update("x").digest("base64url"))).toBe("INVALID_TOKEN ");
    expect(await refused(formatResumeToken(head, hash), { namePrefix: "x" })).toBe("INVALID_TOKEN ");
    expect(await refused(formatResumeToken({ ...head, partition: 9 }, hash))).toBe("INVALID_TOKEN ");
    const future = world.run(refused(formatResumeToken({ ...head, revision: head.revision + 5 }, hash)));
    expect(await future).toBe("RELIST_REQUIRED ahead");
    expect(await refused(formatResumeToken({ ...head, chain: "0123456789abcdef" }, hash))).toBe(
      "RELIST_REQUIRED chain",
    );
    expect(await refused(early)).toBe("RELIST_REQUIRED compacted");
    expect(await refused(formatResumeToken(head, hash))).toBe("opened");
  });

  it("a watcher that stops reading never holds a commit; it reads on from the ring, or is told WATCHER_TOO_SLOW with its token", async () => {
    world = new World();
    const a = await world.replica(undefined, { revisions: 5, bytes: 1 << 20 });
    const w = await watch(a);
    const other = await watch(a);
    w.full = true;
    await world.run(a.register(declare("s", ["t0"])));
    for (const n of ["t1", "t2", "t3"]) await world.run(a.register(declare("s", [n])));
    expect(w.told).toEqual(["REGISTERED s/t0"]);
    expect(a.watchers).toEqual({ active: 1, lagging: 1 });
    w.full = false;
    w.handle?.drained();
    expect(w.told).toEqual(other.told);
    w.full = true;
    for (const n of many(8)) await world.run(a.register(declare("s", [n])));
    expect(w.fault?.reason).toBe("WATCHER_TOO_SLOW");
    expect(w.fault?.metadata["resume_token"]).toBe(w.lastToken);
    expect(other.fault).toBeUndefined();
    expect(a.watchers).toEqual({ active: 1, lagging: 0 });
  });

  it("a filtered watcher hears only what concerns it, and leaving the filter is DEREGISTERED", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one", "two"], { tags: ["red"] })));
    const red = await watch(a, { tagsAny: ["red"] });
    const prefix = await watch(a, { namePrefix: "tw" });
    const other = await watch(a, { serverIds: ["other"] });
    expect(red.stubs.length).toBe(2);
    expect(prefix.stubs.map((s) => s.name)).toEqual(["two"]);
    await world.run(a.register(declare("s", ["one", "two"], { tags: ["blue"] })));
    expect(red.told).toEqual(["DEREGISTERED s/one", "DEREGISTERED s/two"]);
    expect(prefix.told).toEqual(["UPDATED s/two"]);
    await world.run(a.register(declare("s", ["one", "two"], { tags: ["red"] })));
    expect(red.told.slice(2)).toEqual(["REGISTERED s/one", "REGISTERED s/two"]);
    expect(other.told).toEqual([]);
  });

  it("a change of availability names the server; for a watcher of available tools its tools leave and enter, live and resumed", async () => {
    world = new World();
    const a = await world.replica();
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one"), tool("two")]);
    await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    await world.run(a.register(declare("other", ["x"])));
    const all = await watch(a);
    const prefixed = await watch(a, { namePrefix: "zzz" });
    const available = await watch(a, { availability: "available" });
    const token = available.lastToken;
    a.listings.health("default", "s", seen("unavailable"));
    await world.clock.advance(20);
    expect(all.told).toEqual(["AVAILABILITY_CHANGED s"]);
    expect(prefixed.told).toEqual([]);
    expect(available.told).toEqual(["DEREGISTERED s/one", "DEREGISTERED s/two"]);
    expect((await stubsOf(a, { availability: "available" })).map((s) => s.toolId)).toEqual(["other/x"]);
    const record = a.partitions[0]?.live().history.server("default", "s")?.record;
    await world.run(
      a.listings.commitListing("default", "s", listingOf([tool("one"), tool("three")]), record?.revision ?? 0),
    );
    expect(all.told.slice(1)).toEqual(["REGISTERED s/three", "DEREGISTERED s/two"]);
    expect(available.told.slice(2)).toEqual([]);
    a.listings.health("default", "s", seen("available"));
    await world.clock.advance(10_000);
    expect(all.told.slice(3)).toEqual(["AVAILABILITY_CHANGED s"]);
    expect(available.told.slice(2)).toEqual(["REGISTERED s/one", "REGISTERED s/three"]);
    const resumed = await watch(await world.replica(), { availability: "available" }, token);
    expect(resumed.told).toEqual(available.told);
  });

  it("a flapping server yields few revisions", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one"])));
    const w = await watch(a);
    for (let i = 0; i < 100; i++) {
      a.listings.health("default", "s", seen(i % 2 === 1 ? "available" : "unavailable", `R${i}`));
      await world.clock.advance(100);
    }
    await world.clock.advance(15_000);
    expect(w.told.length).toBeLessThanOrEqual(3);
    expect(w.told.filter((t) => t !== "AVAILABILITY_CHANGED s")).toEqual([]);
  });

  it("a server whose looks said nothing new for long is called down at once", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one"])));
    const w = await watch(a);
    for (let i = 0; i < 23; i++) {
      a.listings.health("default", "s", seen("available"));
      await world.clock.advance(1_000);
    }
    a.listings.health("default", "s", seen("unavailable"));
    await world.clock.advance(20);
    expect(w.told).toEqual(["AVAILABILITY_CHANGED s"]);
  });

  it("what a look saw is not published once it is no longer true, or older than the process was awake", async () => {
    world = new World();
    const a = await world.replica();
    await world.run(a.register(declare("s", ["one"], { retention: { kind: "leased", ttlMs: 600_000 } })));
    a.listings.health("default", "s", seen("available"));
    await world.clock.advance(1_000);
    const w = await watch(a);
    let held = true;
    a.listings.health("default", "s", { ...seen("unavailable"), stillTrue: () => held });
    held = false;
    await world.clock.advance(20_000);
    expect(w.told).toEqual([]);
    a.listings.listed("default", "s", { type: "Listed", status: "true", reason: "LISTED", message: "" });
    await world.clock.advance(1_000);
    a.listings.health("default", "s", seen("unavailable"));
    world.clock.sleepThrough(30_000);
    await world.clock.advance(30_000);
    expect(w.told).toEqual([]);
  });

  it("P3: bookmarks come at least every 10 s and carry a token that resumes", async () => {
    world = new World();
    const a = await world.replica();
    const w = await watch(a, { namePrefix: "nothing" });
    await world.run(a.register(declare("s", ["one"])));
    await world.clock.advance(31_000);
    expect(w.bookmarks).toBeGreaterThanOrEqual(3);
    const resumed = await watch(a, { namePrefix: "nothing" }, w.lastToken);
    expect(resumed.fault).toBeUndefined();
  });

  it("has a limit of watchers that says so", async () => {
    world = new World();
    const a = await world.replica();
    const open: Recorder[] = [];
    for (let i = 0; i < 100; i++) open.push(await watch(a));
    await expect(watch(a)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
    open[0]?.handle?.close();
    await watch(a);
    a.drain();
    expect(open[1]?.fault?.reason).toBe("DRAINING");
    await expect(watch(a)).rejects.toMatchObject({ reason: "DRAINING" });
  });
});

describe("a server that comes back with the list it had", () => {
  it("is no revision by its listing: its availability is published at the pace of conditions", async () => {
    world = new World();
    const a = await world.replica();
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one")]);
    await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    a.listings.health("default", "s", seen("unavailable"));
    await world.clock.advance(20);
    const w = await watch(a);
    const revision = a.partitions[0]?.live().history.server("default", "s")?.record.revision ?? 0;
    expect(await world.run(a.listings.commitListing("default", "s", listingOf([tool("one")]), revision))).toBe(
      "unchanged",
    );
    a.listings.health("default", "s", seen("available"));
    await world.clock.advance(5_000);
    expect(w.told).toEqual([]);
    await world.clock.advance(6_000);
    expect(w.told).toEqual(["AVAILABILITY_CHANGED s"]);
  });
});
