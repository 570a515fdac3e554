import { describe, expect, it } from "vitest";
import type { Listing } from "../../../src/catalogue/upstream-port.js";
import { LIMITS } from "../../../src/domain/limits.js";
import { createClaims } from "../../../src/probe/claims.js";
import { createKeeper } from "../../../src/probe/keeper.js";
import { createPanic } from "../../../src/probe/panic.js";
import { createSlots } from "../../../src/probe/slots.js";
import { PROBE_RULES } from "../../../src/domain/health/probing.js";
import { MemoryStore } from "../../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { definition, HandDirectory, HandUpstream, instanceOf, listingOf, NAMESPACE, recordOf, SILENT, toolOf } from "../../support/records.js";

const LISTING = listingOf([definition("alpha")], { listChanged: true });
const QUIET = listingOf([definition("alpha")]);
const name = (serverId: string) => ({ namespace: NAMESPACE, serverId });

function bench() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock, new SeededRandom(1));
  const records = new HandDirectory();
  const set = (serverId: string, facts: Parameters<typeof instanceOf>[0] = {}, pending = false) =>
    records.set(recordOf([toolOf("alpha")], { serverId, source: "introspected", pending, instances: [instanceOf({ introspect: true, ...facts })] }));
  const replica = (replicaId: string, seed: number) => {
    const random = new SeededRandom(seed);
    const upstream = new HandUpstream();
    const listedAt: number[] = [];
    const r = { answer: (): Listing | Error | Promise<Listing> => QUIET };
    const notes = store.partitions[0]?.notes;
    if (!notes) throw new Error("a store has a partition");
    const keeper = createKeeper({
      records,
      upstream,
      relist: async () => {
        listedAt.push(clock.monotonic());
        const answer = await r.answer();
        if (answer instanceof Error) throw answer;
        return answer;
      },
      claims: createClaims({ notesOf: () => notes, replicaId, clock, random, logger: SILENT }),
      writer: { health: () => undefined },
      panic: createPanic({ clock, logger: SILENT }),
      slots: createSlots(64),
      rules: PROBE_RULES,
      onLook: () => undefined,
      clock,
      random,
      logger: SILENT,
    });
    return Object.assign(r, { keeper, upstream, listedAt });
  };
  return { clock, records, set, replica };
}

describe("the keeper of a server", () => {
  it("lists it at once, then at the server's pace", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    a.answer = () => ({ ...QUIET, ttlMs: 60_000 });
    set("srv");
    a.keeper.servers([name("srv")]);
    await clock.advance(300_000);
    expect(a.listedAt[0]).toBe(0);
    expect(a.listedAt.length).toBeGreaterThanOrEqual(5);
    expect(a.listedAt.length).toBeLessThanOrEqual(6);
  });

  it("looks for a pending server within a second of its coming up at first", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    a.answer = () => new Error("refused");
    set("srv", {}, true);
    a.keeper.servers([name("srv")]);
    await clock.advance(1_000);
    expect(a.listedAt.length).toBeGreaterThanOrEqual(2);
    await clock.advance(3_600_000);
    expect(a.listedAt.length).toBeLessThan(100);
    a.answer = () => QUIET;
    await clock.advance(300_000);
    const before = a.listedAt.length;
    await clock.advance(LIMITS.relistDefaultMs * 0.85);
    expect(a.listedAt.length - before).toBeLessThanOrEqual(1);
  });

  it("probes a declared server and lists it rarely; one without an endpoint is left alone", async () => {
    const { clock, records, set, replica } = bench();
    const a = replica("a", 2);
    records.set(recordOf([toolOf("alpha")], { serverId: "declared" }));
    set("nowhere", { endpoint: "" });
    a.keeper.servers([name("declared"), name("nowhere")]);
    await clock.advance(60_000);
    expect(a.listedAt).toEqual([]);
    expect(a.keeper.counts()).toEqual({ kept: 1, held: 1 });
    expect(a.upstream.probed.length).toBeGreaterThanOrEqual(6);
    expect(a.upstream.probed.length).toBeLessThanOrEqual(8);
    await clock.advance(LIMITS.relistDefaultMs * 1.1);
    expect(a.listedAt).toHaveLength(1);
    await a.keeper.stop();
    expect(clock.sleeping).toBe(0);
  });

  it("lists a newer registration at once, and follows it to its endpoint", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    a.answer = () => LISTING;
    set("srv");
    a.keeper.servers([name("srv")]);
    await clock.advance(10_000);
    const before = a.listedAt.length;
    set("srv", { endpoint: "http://127.0.0.1:10/mcp", revision: 2 });
    a.keeper.servers([name("srv")]);
    await clock.advance(100);
    expect(a.listedAt.length).toBe(before + 1);
    expect(a.upstream.subscribed.map((s) => [s.endpoint, s.signal.aborted])).toEqual([
      ["http://127.0.0.1:9/mcp", true],
      ["http://127.0.0.1:10/mcp", false],
    ]);
  });

  it("stops everything about a server that is gone", async () => {
    const { clock, records, set, replica } = bench();
    const a = replica("a", 2);
    a.answer = () => LISTING;
    set("srv");
    a.keeper.servers([name("srv")]);
    await clock.advance(10_000);
    records.remove(NAMESPACE, "srv");
    a.keeper.reset([]);
    await clock.advance(0);
    expect(a.upstream.subscribed[0]?.signal.aborted).toBe(true);
    expect(clock.sleeping).toBe(0);
  });

  it("stops without waiting for a server that does not answer", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    a.answer = () => new Promise(() => {});
    set("srv");
    a.keeper.servers([name("srv")]);
    await clock.advance(1_000);
    await a.keeper.stop();
    expect(a.listedAt).toHaveLength(1);
    expect(clock.sleeping).toBe(0);
  });

  it("begins many servers apart from each other", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    const many = Array.from({ length: 500 }, (_, i) => `srv-${i}`);
    for (const id of many) set(id);
    a.keeper.reset(many.map(name));
    await clock.advance(500);
    expect(a.listedAt.length).toBeGreaterThan(10);
    expect(a.listedAt.length).toBeLessThan(200);
    await clock.advance(9_500);
    expect(a.listedAt.length).toBe(500);
    await a.keeper.stop();
    expect(clock.sleeping).toBe(0);
  });
});

describe("change notices", () => {
  async function subscribed() {
    const b = bench();
    const a = b.replica("a", 2);
    a.answer = () => LISTING;
    b.set("srv");
    a.keeper.servers([name("srv")]);
    await b.clock.advance(20_000);
    const notice = a.upstream.subscribed[0]?.notice;
    if (!notice) throw new Error("the keeper did not subscribe");
    a.listedAt.length = 0;
    return { ...b, a, notice };
  }

  it("are not asked for from a server that gives none", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    set("srv");
    a.keeper.servers([name("srv")]);
    await clock.advance(60_000);
    expect(a.upstream.subscribed).toEqual([]);
  });

  it("a burst of 1,000, before and during the listing, costs one listing and one follow-up", async () => {
    const { clock, a, notice } = await subscribed();
    let finish: (listing: Listing) => void = () => {};
    for (let i = 0; i < 500; i++) notice();
    a.answer = () => new Promise((resolve) => (finish = resolve));
    await clock.advance(1_000);
    expect(a.listedAt).toHaveLength(1);
    for (let i = 0; i < 500; i++) notice();
    a.answer = () => LISTING;
    finish(LISTING);
    await clock.advance(60_000);
    expect(a.listedAt).toHaveLength(2);
  });

  it("a single one is listed within a tenth of a second", async () => {
    const { clock, a, notice } = await subscribed();
    notice();
    await clock.advance(100);
    expect(a.listedAt).toHaveLength(1);
  });

  it("that come every 5 ms without end do not make the server be listed without end", async () => {
    const { clock, a, notice } = await subscribed();
    for (let i = 0; i < 12_000; i++) {
      notice();
      if (i % 20 === 0) await clock.advance(100);
    }
    expect(a.listedAt.length).toBeGreaterThan(5);
    expect(a.listedAt.length).toBeLessThan(30);
  });

  it("a stream that ends is tried again with backoff, and the server is listed at once and after each try", async () => {
    const { clock, a } = await subscribed();
    a.upstream.subscribed[0]?.end(new Error("stream ended"));
    await clock.advance(100);
    expect(a.listedAt).toHaveLength(1);
    await clock.advance(10_000);
    expect(a.upstream.subscribed).toHaveLength(2);
    expect(a.listedAt.length).toBeGreaterThanOrEqual(2);
  });
});

describe("two replicas", () => {
  it("one lists and subscribes; when it stops, the other lists first and goes on", async () => {
    const { clock, set, replica } = bench();
    const a = replica("a", 2);
    const b = replica("b", 3);
    a.answer = b.answer = () => LISTING;
    set("srv");
    for (const r of [a, b]) r.keeper.servers([name("srv")]);
    await clock.advance(60_000);
    expect([a.keeper.counts().held, b.keeper.counts().held]).toEqual([1, 0]);
    expect([a.upstream.subscribed.length, b.upstream.subscribed.length]).toEqual([1, 0]);
    expect(b.listedAt).toEqual([]);
    const stopped = a.keeper.stop();
    await clock.settle();
    await stopped;
    const listedByA = a.listedAt.length;
    await clock.advance(5_000);
    expect(b.listedAt.length).toBeGreaterThanOrEqual(1);
    expect(b.upstream.subscribed).toHaveLength(1);
    expect(a.upstream.subscribed[0]?.signal.aborted).toBe(true);
    await clock.advance(3_600_000);
    expect(a.listedAt.length).toBe(listedByA);
    await b.keeper.stop();
    expect(clock.sleeping).toBe(0);
  });
});
