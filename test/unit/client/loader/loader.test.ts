import { describe, expect, it } from "vitest";
import type { Load } from "../../../../src/client/loader/load.js";
import { RegistryError } from "../../../../src/client/registry-error.js";
import { Freshness } from "../../../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability } from "../../../../src/gen/toolcrib/v1/stub_pb.js";
import { definition, loaderBench } from "../../../support/loader-bench.js";
import { stub } from "../../../support/scripted-watch.js";

const AWAY = new RegistryError("the registry at 127.0.0.1:1 cannot be reached", { code: "UNAVAILABLE" });

function brief({ tools, missing }: Load): string[] {
  return [
    ...tools.map((t) => `${t.toolId} ${t.freshness} ${t.from}`),
    ...missing.map((m) => `${m.toolId} ${m.why}${m.instead ? ` instead ${m.instead.toolId}` : ""}`),
  ];
}

/** The answer of a load, moving time on until it is there. */
async function moved(bench: ReturnType<typeof loaderBench>, load: Promise<Load>, ms: number): Promise<string[]> {
  let done: Load | undefined;
  void load.then((answer) => (done = answer));
  await bench.clock.advance(ms);
  if (!done) throw new Error(`nothing after ${ms} ms`);
  return brief(done);
}

describe("a turn's definitions", () => {
  it("come in one batch, side by side, then from memory, byte for byte and in the order asked", async () => {
    const bench = loaderBench();
    for (const id of ["a/x", "b/y", "c/z"]) bench.put(id, definition(id.slice(2)));
    expect(brief(await bench.loader.load(["c/z", "a/x", "c/z", "b/y"]))).toEqual(["c/z cached registry", "a/x cached registry", "b/y cached registry"]);
    expect(bench.asked.map((a) => a.toolIds)).toEqual([["c/z", "a/x", "b/y"]]);
    expect(bench.asked[0]).toMatchObject({ timeoutMs: 200, minRevision: "r1" });
    const again = await bench.loader.load(["a/x", "b/y"]);
    expect(brief(again)).toEqual(["a/x cached memory", "b/y cached memory"]);
    expect(Buffer.from(again.tools[0]?.bytes ?? []).equals(definition("x").bytes)).toBe(true);
    expect(bench.asked).toHaveLength(1);
  });

  it("are asked for once by turns that run at the same time", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    bench.registry.delayMs = 20;
    const turns = [bench.loader.load(["a/x"]), bench.loader.load(["a/x"])];
    await bench.clock.advance(20);
    for (const turn of turns) expect(brief(await turn)).toEqual(["a/x cached registry"]);
    expect(bench.asked).toHaveLength(1);
  });

  it("more than one batch holds are asked for in several at once", async () => {
    const bench = loaderBench();
    const ids = Array.from({ length: 250 }, (_, i) => `a/t${i}`);
    for (const id of ids) bench.put(id, definition(id.slice(2)));
    expect((await bench.loader.load(ids)).tools.map((t) => t.toolId)).toEqual(ids);
    expect(bench.asked.map((a) => a.toolIds.length)).toEqual([100, 100, 50]);
  });

  it("that did not fit into an answer are asked for again, within the same deadline", async () => {
    const bench = loaderBench();
    for (const id of ["a/x", "a/y"]) bench.put(id, definition(id.slice(2)));
    bench.registry.tools.set("a/y", { kind: "error", reason: "QUOTA_EXCEEDED" });
    bench.registry.delayMs = 10;
    const load = bench.loader.load(["a/x", "a/y"]);
    await bench.clock.settle();
    bench.put("a/y", definition("y"));
    expect(await moved(bench, load, 30)).toEqual(["a/x cached registry", "a/y cached registry"]);
    expect(bench.asked.map((a) => a.toolIds)).toEqual([["a/x", "a/y"], ["a/y"]]);
    expect(bench.asked[1]?.timeoutMs).toBe(190);
  });

  it("a batch that brings nothing because it does not fit ends", async () => {
    const bench = loaderBench();
    bench.registry.tools.set("a/y", { kind: "error", reason: "QUOTA_EXCEEDED" });
    expect(brief(await bench.loader.load(["a/y"]))).toEqual(["a/y failed"]);
    expect(bench.asked).toHaveLength(1);
  });

  it("whose bytes do not have their digest are refused, and kept nowhere", async () => {
    const bench = loaderBench();
    bench.registry.tools.set("a/x", { kind: "definition", tool: { ...definition("x"), digest: definition("y").digest } });
    const { missing } = await bench.loader.load(["a/x"]);
    expect(missing[0]).toMatchObject({ why: "failed", message: expect.stringContaining("does not have the digest") });
    expect(bench.loader.held).toEqual({ definitions: 0, bytes: 0 });
  });

  it("a tool whose definition nobody saw yet is asked for by its id", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"), { digest: "" });
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x cached registry"]);
  });
});

describe("what is late", () => {
  it("is left out at the deadline and named, while the others are there; the next turn has it", async () => {
    const bench = loaderBench();
    for (const id of ["a/x", "b/slow"]) bench.put(id, definition(id.slice(2)));
    bench.registry.slow.set("b/slow", 3_000);
    const load = bench.loader.load(["a/x", "b/slow"]);
    expect(await moved(bench, load, 200)).toEqual(["a/x cached registry", "b/slow late"]);
    // It goes on with more patience.
    expect(bench.asked.map((a) => [a.toolIds, a.timeoutMs])).toEqual([[["a/x", "b/slow"], 200], [["b/slow"], 10_000]]);
    await bench.clock.advance(3_000);
    expect(brief(await bench.loader.load(["b/slow"]))).toEqual(["b/slow cached memory"]);
    expect(bench.asked).toHaveLength(2);
  });

  it("because the registry is far away comes for a later turn all the same", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    bench.registry.delayMs = 500;
    expect(await moved(bench, bench.loader.load(["a/x"]), 200)).toEqual(["a/x late"]);
    await bench.clock.advance(600);
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x cached memory"]);
  });

  it("is caught up with once, however many turns want it", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    bench.registry.slow.set("a/x", 60_000);
    for (let turn = 0; turn < 5; turn++) await moved(bench, bench.loader.load(["a/x"]), 200);
    expect(bench.asked.map((a) => a.timeoutMs)).toEqual([200, 10_000]);
  });

  it("is replaced by its substitute, else by the next best candidate, each offered once and callable", async () => {
    const bench = loaderBench();
    bench.put("a/slow1", definition("slow1"), { substitutes: ["other", "b/down"] });
    bench.put("a/slow2", definition("slow2"), { substitutes: ["other"] });
    bench.put("a/slow3", definition("slow3"), { substitutes: ["b/down"] });
    bench.put("a/other", definition("other"));
    bench.put("b/down", definition("down"), { availability: Availability.UNAVAILABLE });
    bench.put("c/next", definition("next"));
    for (const id of ["a/slow1", "a/slow2", "a/slow3"]) bench.registry.slow.set(id, 1_000);
    const load = bench.loader.load(["a/slow1", "a/slow2", "a/slow3"], { next: ["c/next"] });
    expect(await moved(bench, load, 200)).toEqual(["a/slow1 late instead a/other", "a/slow2 late instead c/next", "a/slow3 late"]);
  });

  it("takes the substitutes that the registry names", async () => {
    const bench = loaderBench();
    bench.put("b/y", definition("y"));
    await bench.loader.load(["b/y"]);
    bench.registry.tools.set("a/x", { kind: "error", reason: "LOAD_FAILED", substitutes: ["b/y"], retryAfterMs: 700 });
    const { missing } = await bench.loader.load(["a/x"]);
    expect(missing[0]).toMatchObject({ why: "failed", message: "a/x: LOAD_FAILED", retryAfterMs: 700, instead: { toolId: "b/y" } });
  });

  it("does not wait for a slow reserve when nothing is missing", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    bench.put("c/slow", definition("slow"));
    bench.registry.slow.set("c/slow", 1_000);
    expect(brief(await bench.loader.load(["a/x"], { next: ["c/slow"] }))).toEqual(["a/x cached registry"]);
  });
});

describe("an invalidated definition", () => {
  it("is dropped before the next use", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x", "old"));
    await bench.loader.load(["a/x"]);
    bench.put("a/x", definition("x", "new"));
    expect(bench.loader.held.definitions).toBe(0);
    const { tools } = await bench.loader.load(["a/x"]);
    expect(tools[0]?.digest).toBe(definition("x", "new").digest);
  });

  it("is not used when it was on its way at that moment", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x", "old"));
    bench.registry.delayMs = 50;
    const load = bench.loader.load(["a/x"]);
    await bench.clock.advance(10);
    bench.put("a/x", definition("x", "new"));
    expect(await moved(bench, load, 200)).toEqual(["a/x late"]);
    expect((await bench.loader.load(["a/x"])).tools[0]?.digest).toBe(definition("x", "new").digest);
  });

  it("is used again where the tool went back to it", async () => {
    const bench = loaderBench();
    for (const text of ["old", "new", "old"]) bench.put("a/x", definition("x", text));
    expect((await bench.loader.load(["a/x"])).tools[0]?.digest).toBe(definition("x", "old").digest);
  });

  it("comes again at once where every turn needs it", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x", "old"));
    expect(brief(await bench.loader.warm(["a/x"]))).toEqual(["a/x cached registry"]);
    bench.put("a/x", definition("x", "new"));
    await bench.clock.settle();
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x cached memory"]);
    bench.registry.error = AWAY;
    bench.put("a/x", definition("x", "newer"));
    await bench.clock.settle();
    expect(bench.troubles.map((t) => t.what)).toEqual(["warm-failed"]);
  });

  it("a tool that is gone is gone, and never served from memory while the registry is away", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    await bench.loader.load(["a/x"]);
    bench.labels.remove("a/x");
    bench.registry.tools.delete("a/x");
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x gone"]);
    bench.registry.error = AWAY;
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x unreachable"]);
  });
});

describe("while the registry is away", () => {
  it("known digests go on working, marked stale, without waiting for the deadline each time", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    await bench.loader.load(["a/x"]);
    bench.labels.state = { kind: "stale", since: 0, why: "disconnected", revision: "r1" };
    bench.registry.error = AWAY;
    expect(brief(await bench.loader.load(["a/x", "b/never"]))).toEqual(["a/x stale memory", "b/never unreachable"]);
    const asked = bench.asked.length;
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x stale memory"]);
    expect(bench.asked).toHaveLength(asked);
    // It is asked again a second later.
    bench.registry.error = undefined;
    await bench.clock.advance(1_001);
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x cached registry"]);
  });

  it("a registry that says nothing costs one deadline, and what is known is there after it", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    await bench.loader.load(["a/x"]);
    bench.labels.state = { kind: "stale", since: 0, why: "silent", revision: "r1" };
    bench.registry.delayMs = 1_000_000;
    expect(await moved(bench, bench.loader.load(["a/x"]), 200)).toEqual(["a/x stale memory"]);
  });

  it("agents that follow nothing go by the last answer", async () => {
    const bench = loaderBench();
    bench.labels.state = { kind: "stopped" };
    bench.registry.tools.set("a/x", { kind: "definition", tool: definition("x"), freshness: Freshness.LIVE });
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x live registry"]);
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x live registry"]);
    bench.registry.error = AWAY;
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x stale memory"]);
  });

  it("tools of a server that is away are stale, whoever has them", async () => {
    const bench = loaderBench();
    bench.put("a/x", definition("x"));
    await bench.loader.load(["a/x"]);
    bench.labels.put(stub("a/x", { digest: definition("x").digest, availability: Availability.UNAVAILABLE }));
    expect(brief(await bench.loader.load(["a/x"]))).toEqual(["a/x stale memory"]);
  });
});

describe("memory", () => {
  it("is bounded in bytes: the least recently used leaves first, what every turn needs last", async () => {
    const size = definition("t0").bytes.byteLength;
    const bench = loaderBench({ memoryBytes: size * 3 });
    for (let i = 0; i < 5; i++) bench.put(`a/t${i}`, definition(`t${i}`));
    await bench.loader.warm(["a/t0"]);
    for (let i = 1; i < 5; i++) await bench.loader.load([`a/t${i}`]);
    expect(bench.loader.held).toEqual({ definitions: 3, bytes: size * 3 });
    expect(brief(await bench.loader.load(["a/t0", "a/t3", "a/t4", "a/t1"]))).toEqual([
      "a/t0 cached memory",
      "a/t3 cached memory",
      "a/t4 cached memory",
      "a/t1 cached registry",
    ]);
  });
});
