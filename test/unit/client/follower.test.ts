/** What a follower's catalogue holds, and what is told of it. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createFollower } from "../../../src/client/follower/follower.js";
import { EventType } from "../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { Bench, SECOND } from "../../support/follower-bench.js";
import { availabilityOf, gone, put, registered, stub } from "../../support/scripted-watch.js";

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
