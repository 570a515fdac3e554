/** What a follower does about losses of every kind: of a stream, of the registry's word, of the history, of its rights. */
import { describe, expect, it } from "vitest";
import { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { Bench, SECOND } from "../../support/follower-bench.js";
import { registered, stub } from "../../support/scripted-watch.js";

describe("a lost stream", () => {
  it("is resumed on the next replica with the token of the last whole change; live when that one says so", async () => {
    const bench = await new Bench().live("a/x");
    const first = bench.stream.target.address;
    bench.stream.change([registered("a/y")], "t2").fail("DRAINING");
    await bench.clock.settle();
    expect(bench.follower.state).toMatchObject({
      kind: "stale",
      why: "disconnected",
      revision: "t2",
      error: { reason: "DRAINING" },
    });
    const resumed = await bench.next();
    expect([resumed.resumeToken, resumed.target.address === first]).toEqual(["t2", false]);
    resumed.change([registered("a/z")], "t3");
    await bench.clock.settle();
    // Caught up with something, but perhaps not with all.
    expect(bench.follower.state).toMatchObject({ kind: "stale", revision: "t3" });
    resumed.bookmark("t3");
    await bench.clock.settle();
    expect(bench.follower.state.kind).toBe("live");
    expect(bench.ids).toEqual(["a/x", "a/y", "a/z"]);
    expect(bench.relists).toEqual([]);
    resumed.end();
    expect((await bench.next()).target.address).toBe(first);
  });

  it("goes on from what was read after WATCHER_TOO_SLOW, and never from later", async () => {
    const bench = await new Bench().live("a/x");
    const { address } = bench.stream.target;
    bench.stream.change([registered("a/y")], "t2").fail("WATCHER_TOO_SLOW", { metadata: { resume_token: "t9" } });
    await bench.clock.settle();
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "too-slow" });
    const resumed = await bench.next();
    expect([resumed.resumeToken, resumed.target.address]).toEqual(["t2", address]);
  });

  it("is tried again with growing, jittered pauses over all replicas, and at once again after a good while", async () => {
    const bench = await new Bench().live("a/x");
    const pauses: number[] = [];
    for (let i = 0; i < 24; i++) {
      const since = bench.clock.monotonic();
      const count = bench.source.streams.length;
      bench.stream.fail("NOT_READY");
      while (bench.source.streams.length === count) await bench.clock.advance(10);
      pauses.push(bench.clock.monotonic() - since);
    }
    expect(Math.max(...pauses.slice(0, 2))).toBeLessThanOrEqual(210);
    expect(Math.max(...pauses)).toBeGreaterThan(2_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(10_010);
    expect(new Set(bench.source.streams.slice(-2).map((s) => s.target.address)).size).toBe(2);
    bench.stream.bookmark("t1");
    await bench.clock.settle();
    bench.stream.end();
    await bench.clock.advance(210);
    expect(bench.source.streams.length).toBe(26);
  });

  it("waits as long as a registry asks, once every replica was asked", async () => {
    const bench = await new Bench().start();
    bench.stream.fail("NOT_READY", { retryAfterMs: 60 * SECOND });
    (await bench.next()).fail("NOT_READY", { retryAfterMs: 60 * SECOND });
    await bench.clock.advance(59 * SECOND);
    expect(bench.source.streams.length).toBe(2);
    await bench.clock.advance(2 * SECOND);
    expect(bench.source.streams.length).toBe(3);
  });
});

describe("silence", () => {
  it("of more than 25 s is stale; the stream is given up and the next replica asked", async () => {
    const bench = await new Bench().live("a/x");
    for (let i = 0; i < 5; i++) {
      await bench.clock.advance(10 * SECOND);
      bench.stream.bookmark(`t${i}`);
    }
    await bench.clock.advance(24 * SECOND);
    expect(bench.follower.state.kind).toBe("live");
    const silent = bench.stream;
    await bench.clock.advance(1.5 * SECOND);
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "silent", since: 75 * SECOND });
    expect(silent.signal.aborted).toBe(true);
    expect(bench.source.streams.length).toBe(2);
    expect([bench.stream.resumeToken, bench.stream.target.address === silent.target.address]).toEqual(["t4", false]);
  });

  it("has a length that can be set", async () => {
    const bench = await new Bench({ silenceMs: 3 * SECOND }).live();
    await bench.clock.advance(2.9 * SECOND);
    expect(bench.follower.state.kind).toBe("live");
    await bench.clock.advance(0.2 * SECOND);
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "silent" });
  });

  it("of a registry that never takes the stream up is given up after 10 s", async () => {
    const bench = await new Bench().start();
    await bench.clock.advance(9.9 * SECOND);
    expect(bench.source.streams.length).toBe(1);
    await bench.clock.advance(SECOND);
    expect(bench.source.streams.length).toBe(2);
    expect(bench.follower.state).toMatchObject({ kind: "connecting", error: { code: "DEADLINE_EXCEEDED" } });
    bench.stream.admit();
    await bench.clock.advance(20 * SECOND);
    expect(bench.source.streams.length).toBe(2);
  });

  it("about being current, while changes come, is stale but no reason to leave", async () => {
    const bench = await new Bench().live();
    for (let i = 2; i < 6; i++) {
      await bench.clock.advance(9 * SECOND);
      bench.stream.change([registered(`a/t${i}`)], `t${i}`);
    }
    await bench.clock.settle();
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "behind", revision: "t5" });
    expect(bench.source.streams.length).toBe(1);
    bench.stream.bookmark("t5");
    await bench.clock.settle();
    expect(bench.follower.state.kind).toBe("live");
  });
});

describe("a history that cannot be continued", () => {
  it.each(["chain", "compacted", "ahead"] as const)(
    "is told with its cause (%s); the old list is read until the new one is whole",
    async (cause) => {
      const bench = await new Bench().live("a/x", "a/y", "b/x");
      bench.stream.fail("RELIST_REQUIRED", { metadata: { cause } });
      await bench.clock.settle();
      expect(bench.relists).toEqual([cause]);
      expect(bench.follower.state).toMatchObject({
        kind: "stale",
        why: "relist",
        error: { reason: "RELIST_REQUIRED" },
      });
      const again = await bench.next();
      // The same history: a replica that lags must not answer with an older list.
      expect(again.request).toMatchObject({ resumeToken: "", minRevision: cause === "compacted" ? "t1" : "" });
      again.snapshot([stub("a/x"), stub("a/y", { digest: `sha256:${"1".repeat(64)}` })], "", "", false);
      await bench.clock.settle();
      expect([bench.ids, bench.follower.state.kind]).toEqual([["a/x", "a/y", "b/x"], "stale"]);
      bench.changes.length = 0;
      again.snapshot([stub("c/new")], "t9");
      await bench.clock.settle();
      expect(bench.ids).toEqual(["a/x", "a/y", "c/new"]);
      expect(bench.changes).toMatchObject([{ source: "relist", revision: "t9" }]);
      expect(bench.told).toEqual(["SCHEMA_INVALIDATED a/y", "DEREGISTERED b/x", "REGISTERED c/new"]);
      again.bookmark("t9");
      await bench.clock.settle();
      expect(bench.follower.state).toMatchObject({ kind: "live", revision: "t9" });
    },
  );

  it("tells availabilities of servers, labels and removals that came between", async () => {
    const bench = await new Bench().live("a/x", "a/y", "b/x");
    bench.stream.fail("RELIST_REQUIRED", { metadata: { cause: "chain" } });
    bench.changes.length = 0;
    const away = { availability: Availability.UNAVAILABLE };
    (await bench.next())
      .snapshot([stub("a/x", away), stub("a/y", { ...away, title: "Other" }), stub("b/x")], "t9")
      .bookmark("t9");
    await bench.clock.settle();
    expect(bench.told).toEqual(["AVAILABILITY_CHANGED a", "UPDATED a/y"]);
  });

  it("begins with a list when the token cannot be read any more", async () => {
    const bench = await new Bench().live("a/x");
    bench.stream.end();
    (await bench.next()).fail("INVALID_TOKEN");
    expect((await bench.next()).resumeToken).toBe("");
    expect(bench.relists).toEqual(["token"]);
  });

  it("is not asked for in a tight circle", async () => {
    const bench = await new Bench().live();
    for (let i = 0; i < 40; i++) {
      bench.stream.snapshot([], "t1").fail("RELIST_REQUIRED");
      await bench.clock.advance(SECOND);
    }
    expect(bench.source.streams.length).toBeLessThan(30);
  });
});

describe("a refusal", () => {
  it.each(["FORBIDDEN", "INVALID_REQUEST", "INVALID_TOKEN", "CATEGORY_UNSUPPORTED"] as const)(
    "ends it with the error: %s",
    async (reason) => {
      const bench = await new Bench().start();
      const ready = bench.follower.ready();
      bench.stream.fail(reason);
      await expect(ready).rejects.toMatchObject({ reason });
      await bench.clock.advance(600 * SECOND);
      expect(bench.follower.state).toMatchObject({ kind: "refused", error: { reason } });
      expect(bench.follower.state).not.toHaveProperty("retryMs");
      expect(bench.source.streams.length).toBe(1);
      await bench.start();
      expect(bench.source.streams.length).toBe(2);
    },
  );

  it("for want of a good credential is tried again slowly where the credential may change", async () => {
    const bench = await new Bench({ token: () => "token" }).start();
    bench.stream.fail("UNAUTHENTICATED");
    await bench.clock.advance(14 * SECOND);
    expect(bench.follower.state).toMatchObject({ kind: "refused", retryMs: expect.any(Number) });
    expect(bench.source.streams.length).toBe(1);
    await bench.clock.advance(17 * SECOND);
    expect(bench.source.streams.length).toBe(2);
    expect(bench.stream.target.access?.token?.()).toBe("token");
    bench.stream.snapshot([stub("a/x")], "t1").bookmark("t1");
    await bench.clock.settle();
    expect([bench.follower.state.kind, bench.ids]).toEqual(["live", ["a/x"]]);
  });

  it("without any credential is the end", async () => {
    const bench = await new Bench().start();
    bench.stream.fail("UNAUTHENTICATED");
    await bench.clock.advance(600 * SECOND);
    expect(bench.source.streams.length).toBe(1);
    expect(bench.follower.state.kind).toBe("refused");
  });

  it("in the midst of a good stream may be a credential that was replaced: asked again at once, the list kept", async () => {
    const bench = await new Bench({ token: "token" }).live("a/x");
    bench.stream.fail("UNAUTHENTICATED");
    const resumed = await bench.next();
    expect([resumed.resumeToken, bench.follower.state.kind]).toEqual(["t1", "stale"]);
    resumed.fail("UNAUTHENTICATED");
    await bench.clock.settle();
    expect([bench.follower.state.kind, bench.ids]).toEqual(["refused", ["a/x"]]);
  });
});
