/** The follower's state machine, over streams that the test speaks into and a clock that it moves. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createFollower, type Follower } from "../../../src/client/follower/follower.js";
import type { FollowerOptions } from "../../../src/client/follower/options.js";
import type { CatalogueChange, FollowerState } from "../../../src/client/follower/state.js";
import { parseTarget } from "../../../src/client/target.js";
import { EventType } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { availabilityOf, gone, put, registered, ScriptedSource, stub, timersOf } from "../../support/scripted-watch.js";

const SECOND = 1_000;

class Bench {
  readonly clock = new FakeClock();
  readonly source = new ScriptedSource();
  readonly follower: Follower;
  readonly states: string[] = [];
  readonly changes: CatalogueChange[] = [];
  readonly relists: string[] = [];

  constructor(options: FollowerOptions = {}) {
    const random = new SeededRandom(11);
    this.follower = createFollower({
      targets: ["a:1", "b:1"].map(parseTarget),
      timers: timersOf(this.clock),
      random: () => random.next(),
      source: this.source.open,
      ...options,
    });
    this.follower.on("state", (state) => this.states.push(nameOf(state)));
    this.follower.on("change", (change) => this.changes.push(change));
    this.follower.on("relist", ({ cause }) => this.relists.push(cause));
    onTestFinished(() => this.follower.stop());
  }

  get stream() {
    return this.source.last;
  }

  get ids(): string[] {
    return this.follower.stubs().map((s) => s.toolId);
  }

  /** `TYPE id` of all events so far. */
  get told(): string[] {
    return this.changes.flatMap((c) => c.events.map((e) => `${EventType[e.type]} ${e.toolId || e.serverId}`));
  }

  async start(): Promise<this> {
    this.follower.start();
    await this.clock.settle();
    return this;
  }

  /** Live with these tools at token t1. */
  async live(...toolIds: string[]): Promise<this> {
    await this.start();
    this.stream
      .snapshot(
        toolIds.map((id) => stub(id)),
        "t1",
      )
      .bookmark("t1");
    await this.clock.settle();
    expect(this.follower.state.kind).toBe("live");
    return this;
  }

  /** The next stream, after the pause before it. */
  async next() {
    const before = this.source.streams.length;
    await this.clock.advance(SECOND);
    expect(this.source.streams.length).toBe(before + 1);
    return this.stream;
  }
}

function nameOf(state: FollowerState): string {
  return state.kind === "stale" ? `stale ${state.why}` : state.kind;
}

describe("a first list", () => {
  it("is there once it is whole, and live once the registry says that it is current", async () => {
    const bench = await new Bench().start();
    const ready = bench.follower.ready();
    expect(bench.follower.state).toEqual({ kind: "connecting" });
    bench.stream.snapshot([stub("b/one"), stub("b/two")], "", "", false);
    await bench.clock.settle();
    expect([bench.follower.state.kind, bench.ids]).toEqual(["snapshot", []]);
    bench.stream.snapshot([stub("c-x/one"), stub("c/one")], "t1");
    await bench.clock.settle();
    expect([bench.follower.state.kind, bench.ids]).toEqual(["snapshot", ["b/one", "b/two", "c-x/one", "c/one"]]);
    bench.stream.bookmark("t1");
    expect(await ready).toEqual({ kind: "live", revision: "t1", at: 0 });
    expect(bench.states).toEqual(["connecting", "snapshot", "live"]);
    expect(bench.changes).toMatchObject([{ source: "snapshot", revision: "t1" }]);
    expect(bench.told).toEqual(["b/one", "b/two", "c-x/one", "c/one"].map((id) => `REGISTERED ${id}`));
    expect(bench.follower.resumeToken).toBe("t1");
  });

  it("is stale while the registry does not say so, and live when it does", async () => {
    const bench = await new Bench().start();
    const ready = bench.follower.ready();
    bench.stream.snapshot([stub("a/x")], "t1");
    await bench.clock.advance(2 * SECOND);
    expect(await ready).toMatchObject({ kind: "stale", why: "unconfirmed", revision: "t1", since: 0 });
    expect(bench.ids).toEqual(["a/x"]);
    bench.stream.bookmark("t1");
    await bench.clock.settle();
    expect(bench.follower.state).toMatchObject({ kind: "live", at: 2 * SECOND });
  });

  it("without a token comes from a broken history: stale at once, and read again after a loss", async () => {
    const bench = await new Bench().start();
    bench.stream.snapshot([stub("a/x")], "", "r0");
    await bench.clock.settle();
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "registry", revision: "r0" });
    bench.stream.fail("RELIST_REQUIRED", { metadata: { cause: "chain" } });
    const again = await bench.next();
    expect(again.resumeToken).toBe("");
    again.snapshot([stub("a/y")], "t1").bookmark("t1");
    await bench.clock.settle();
    expect([bench.follower.state.kind, bench.ids]).toEqual(["live", ["a/y"]]);
  });

  it("that breaks off leaves nothing behind", async () => {
    const bench = await new Bench().start();
    bench.stream.snapshot([stub("a/phantom")], "", "", false).fail("DRAINING");
    const again = await bench.next();
    expect(bench.ids).toEqual([]);
    again.snapshot([stub("a/x")], "t1").bookmark("t1");
    await bench.clock.settle();
    expect(bench.ids).toEqual(["a/x"]);
  });
});

describe("changes", () => {
  it("are applied whole: a part shows nothing, and is dropped with its stream", async () => {
    const bench = await new Bench().live("a/x");
    bench.stream.change([registered("a/y")], "", "2").change([gone("a/x")], "", "2");
    await bench.clock.settle();
    expect([bench.ids, bench.follower.resumeToken]).toEqual([["a/x"], "t1"]);
    bench.stream.end();
    const resumed = await bench.next();
    expect(resumed.resumeToken).toBe("t1");
    expect(bench.ids).toEqual(["a/x"]);
    resumed
      .change([registered("a/y")], "", "2")
      .change([gone("a/x")], "t2", "2")
      .bookmark("t2");
    await bench.clock.settle();
    expect([bench.ids, bench.follower.resumeToken]).toEqual([["a/y"], "t2"]);
    expect(bench.changes.at(-1)).toMatchObject({
      source: "registry",
      revision: "2",
      events: [{ toolId: "a/y" }, { toolId: "a/x" }],
    });
  });

  it("are in the catalogue, and the token beside them, before anybody hears of them", async () => {
    const bench = await new Bench().live();
    const seen: unknown[] = [];
    bench.follower.on("change", () => seen.push([...bench.ids, bench.follower.resumeToken]));
    bench.stream.change([registered("a/x")], "t2").change([registered("a/y")], "t3");
    await bench.clock.settle();
    expect(seen).toEqual([
      ["a/x", "t2"],
      ["a/x", "a/y", "t3"],
    ]);
    expect(bench.follower.state).toMatchObject({ kind: "live", revision: "t3" });
  });

  it("of a server's availability reach the labels of its tools, and no other's", async () => {
    const bench = await new Bench().live("a/x", "a/y", "ab/x");
    const before = bench.follower.stubs();
    bench.stream.change(
      [availabilityOf("a", Availability.UNAVAILABLE), availabilityOf("nobody", Availability.AVAILABLE)],
      "t2",
    );
    await bench.clock.settle();
    const { UNAVAILABLE, AVAILABLE } = Availability;
    expect(bench.follower.stubs().map((s) => s.availability)).toEqual([UNAVAILABLE, UNAVAILABLE, AVAILABLE]);
    expect(bench.follower.availability("a")).toBe(UNAVAILABLE);
    expect(bench.follower.servers()).toEqual([
      { serverId: "a", availability: UNAVAILABLE, tools: 2 },
      { serverId: "ab", availability: AVAILABLE, tools: 1 },
    ]);
    expect(before.map((s) => s.availability)).toEqual([AVAILABLE, AVAILABLE, AVAILABLE]);
  });

  it("of kinds that a newer registry may send are read by what they carry", async () => {
    const bench = await new Bench().live("a/x", "a/y");
    const later = 99 as EventType;
    bench.stream
      .unknown()
      .change(
        [
          gone("a/x", later),
          put(later, stub("a/z")),
          { type: later, serverId: "a" },
          gone("a/y", EventType.QUARANTINED),
        ],
        "t2",
      );
    await bench.clock.settle();
    expect(bench.ids).toEqual(["a/z"]);
    expect(bench.follower.stub("a/z")?.availability).toBe(Availability.AVAILABLE);
  });

  it("cannot be made by whoever reads the catalogue", async () => {
    const bench = await new Bench().live("a/x");
    const [first] = bench.follower.stubs();
    expect(() => Object.assign(first as object, { name: "other" })).toThrow(TypeError);
    expect(() => first?.tags.push("mine")).toThrow(TypeError);
    expect(() => (bench.follower.stubs() as unknown[]).pop()).toThrow(TypeError);
    expect(bench.follower.stub("a/x")?.name).toBe("x");
  });

  it.each([
    [
      "a change that ends in another",
      (b: Bench) => b.stream.change([registered("a/y")], "", "2").change([], "t3", "3"),
    ],
    ["a bookmark within a change", (b: Bench) => b.stream.change([registered("a/y")], "", "2").bookmark("t2")],
    ["a list within a change", (b: Bench) => b.stream.change([registered("a/y")], "", "2").snapshot([], "t2")],
    ["a change within a list", (b: Bench) => b.stream.snapshot([], "", "", false).change([], "t2")],
  ])("that contradict themselves change nothing: %s", async (_name, speak) => {
    const bench = await new Bench().live("a/x");
    speak(bench);
    const resumed = await bench.next();
    expect([resumed.resumeToken, bench.ids, bench.follower.state.kind]).toEqual(["t1", ["a/x"], "stale"]);
    expect(bench.follower.state).toMatchObject({ error: { message: expect.stringContaining("contradicts itself") } });
  });

  it("go on to the other listeners when one throws", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
    onTestFinished(() => warned.mockRestore());
    const bench = new Bench();
    const later: string[] = [];
    bench.follower.on("change", () => {
      throw new Error("a mistake");
    });
    bench.follower.on("change", ({ revision }) => later.push(revision));
    await bench.live("a/x");
    expect(later).toEqual(["t1"]);
    expect(warned).toHaveBeenCalledWith(expect.stringContaining("a mistake"), expect.anything());
  });
});

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

describe("stopping", () => {
  it("ends the stream, keeps the list, and starting again goes on from there", async () => {
    const bench = await new Bench().live("a/x");
    await bench.follower.stop();
    expect([bench.follower.state.kind, bench.stream.signal.aborted, bench.ids]).toEqual(["stopped", true, ["a/x"]]);
    expect(bench.clock.sleeping).toBe(0);
    await expect(bench.follower.ready()).rejects.toMatchObject({ code: "CANCELLED" });
    await bench.start();
    expect([bench.source.streams.length, bench.stream.resumeToken]).toEqual([2, "t1"]);
    expect(bench.follower.state).toMatchObject({ kind: "stale", why: "disconnected" });
  });

  it("in the pause between two streams leaves no timer", async () => {
    const bench = await new Bench().live();
    bench.stream.end();
    await bench.clock.settle();
    await bench.follower.stop();
    await bench.clock.advance(60 * SECOND);
    expect([bench.clock.sleeping, bench.source.streams.length]).toEqual([0, 1]);
  });

  it("follows an AbortSignal", async () => {
    const ending = new AbortController();
    const bench = await new Bench({ signal: ending.signal }).live();
    ending.abort();
    expect(bench.follower.state.kind).toBe("stopped");
    bench.follower.start();
    expect(bench.follower.state.kind).toBe("stopped");
  });

  it("may be decided by whoever hears of a change", async () => {
    const bench = new Bench();
    bench.follower.on("change", () => void bench.follower.stop());
    await bench.start();
    bench.stream.snapshot([stub("a/x")], "").bookmark("t1");
    await bench.clock.advance(60 * SECOND);
    expect([bench.follower.state.kind, bench.ids, bench.clock.sleeping]).toEqual(["stopped", ["a/x"], 0]);
  });

  it("may be decided by whoever hears of the start", async () => {
    const bench = new Bench();
    bench.follower.on("state", () => void bench.follower.stop());
    await bench.start();
    expect([bench.follower.state.kind, bench.source.streams.length]).toEqual(["stopped", 0]);
  });
});

describe("its targets", () => {
  it("must be addresses, and at least one", () => {
    expect(() => createFollower({ targets: [] })).toThrow("is empty");
    expect(() => createFollower({ targets: ["ftp://x"] })).toThrow("not a registry address");
    expect(createFollower({ targets: "x:1" }).target.address).toBe("x:1");
  });

  it("are chosen at random first, so that a fleet spreads over the replicas", () => {
    const targets = ["a:1", "b:1", "c:1"];
    const chosen = [0, 0.4, 0.99].map((r) => createFollower({ targets, random: () => r }).target.address);
    expect(chosen).toEqual(targets);
  });
});
