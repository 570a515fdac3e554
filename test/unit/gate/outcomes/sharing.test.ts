import { describe, expect, it } from "vitest";
import { intentOf } from "../../../../src/gate/intent.js";
import type { Outcomes } from "../../../../src/gate/outcomes/outcomes.js";
import { DAY_MS, outcomesWorld, reporting, type World } from "../../../support/outcomes.js";

async function opened({ clock }: World, outcomes: Outcomes): Promise<Outcomes> {
  const opening = outcomes.open("default");
  await clock.settle();
  await opening;
  return outcomes;
}

function recalls(outcomes: Outcomes, { clock }: World, text: string): string[] {
  return [...outcomes.past("default").memory.recall(intentOf({ text }), clock.now()).tools.keys()];
}

describe("what is reported on one replica", () => {
  it("is known on another within seconds, both ways, and outlives them", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1));
    const b = await opened(world, world.replica(2));
    expect(a.report(reporting("erp/close", "empty my cart"))).toBe(true);
    b.report(reporting("erp/print", "print the invoice", { latencyMs: 120, preceding: ["erp/close"] }));
    expect([recalls(a, world, "empty the cart"), recalls(b, world, "empty the cart")]).toEqual([["erp/close"], []]);
    await world.clock.advance(6_000);
    for (const replica of [a, b]) {
      expect(recalls(replica, world, "empty the cart")).toEqual(["erp/close"]);
      expect(recalls(replica, world, "invoice to print")).toEqual(["erp/print"]);
      expect(replica.past("default").outcomesOf("erp/print")).toMatchObject([{ success: true, latencyMs: 120, after: ["erp/close"] }]);
      expect(replica.unsaved).toBe(0);
    }
    await Promise.all([a.stop(), b.stop()]);
    const c = await opened(world, world.replica(3));
    expect(recalls(c, world, "empty the cart")).toEqual(["erp/close"]);
    await c.stop();
  });

  it("is written at a stop, however soon", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1));
    a.report(reporting("erp/close", "empty my cart"));
    await a.stop();
    const b = await opened(world, world.replica(2));
    expect(recalls(b, world, "empty the cart")).toEqual(["erp/close"]);
    await b.stop();
  });

  it("is not lost where both write the same shard at once, and counts once", async () => {
    const world = outcomesWorld();
    const replicas = await Promise.all([1, 2, 3].map((seed) => opened(world, world.replica(seed))));
    for (const [i, replica] of replicas.entries())
      for (let n = 0; n < 4; n++) replica.report(reporting("erp/close", `case ${i} ${n}`, { caller: `caller-${i}` }));
    await world.clock.advance(10_000);
    const seen = replicas.map((replica) => replica.past("default").outcomesOf("erp/close"));
    expect(seen.map((outcomes) => outcomes.length)).toEqual([12, 12, 12]);
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
    await Promise.all(replicas.map((replica) => replica.stop()));
  });

  it("works in memory while the store is away, and is written when it is back", async () => {
    const world = outcomesWorld();
    world.notes.away = true;
    const a = await opened(world, world.replica(1));
    a.report(reporting("erp/close", "empty my cart"));
    await world.clock.advance(20_000);
    expect(recalls(a, world, "empty the cart")).toEqual(["erp/close"]);
    expect([a.unsaved, world.told.includes("failed")]).toEqual([1, true]);
    world.notes.away = false;
    await world.clock.advance(4_000);
    expect(a.unsaved).toBe(0);
    const b = await opened(world, world.replica(2));
    expect(recalls(b, world, "empty the cart")).toEqual(["erp/close"]);
    await Promise.all([a.stop(), b.stop()]);
  });

  it("is written again to a store that lost it, and hashed anew where the key is another", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1));
    a.report(reporting("erp/close", "empty my cart"));
    await world.clock.advance(4_000);
    world.notes.notes.clear();
    await world.clock.advance(4_000);
    const b = await opened(world, world.replica(2));
    expect(recalls(b, world, "empty the cart")).toEqual(["erp/close"]);
    world.notes.away = true;
    const c = await opened(world, world.replica(3));
    c.report(reporting("erp/print", "print the invoice"));
    expect(c.past("default").keyId).not.toBe(a.past("default").keyId);
    world.notes.away = false;
    await world.clock.advance(8_000);
    expect(c.past("default").keyId).toBe(a.past("default").keyId);
    for (const replica of [a, b, c]) {
      expect(recalls(replica, world, "print an invoice")).toEqual(["erp/print"]);
      expect(recalls(replica, world, "empty the cart")).toEqual(["erp/close"]);
    }
    await Promise.all([a.stop(), b.stop(), c.stop()]);
  });

  it("is forgotten after the retention, in memory and in the store", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1, { retentionMs: DAY_MS }));
    a.report(reporting("erp/close", "empty my cart"));
    await world.clock.advance(4_000);
    for (let hours = 0; hours < 27; hours++) {
      world.clock.sleepThrough(3_600_000);
      a.open("default");
      await world.clock.advance(4_000);
    }
    expect(recalls(a, world, "empty the cart")).toEqual([]);
    expect(a.past("default").outcomesOf("erp/close")).toEqual([]);
    await a.stop();
    const b = await opened(world, world.replica(2));
    expect(b.past("default").memory.size).toBe(0);
    await b.stop();
  });

  it("an idle replica looks once each time, and lets a namespace go that nobody asks about", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1));
    a.report(reporting("erp/close", "empty my cart"));
    await world.clock.advance(4_000);
    const { gets, puts } = world.notes;
    await world.clock.advance(20_000);
    expect(world.notes.gets - gets).toBeLessThanOrEqual(10);
    expect(world.notes.puts).toBe(puts);
    await world.clock.advance(40 * 60_000);
    expect(world.clock.sleeping).toBe(0);
    await opened(world, a);
    expect(recalls(a, world, "empty the cart")).toEqual(["erp/close"]);
    await a.stop();
  });

  it("never writes over what a newer replica wrote, nor trusts bytes that are none", async () => {
    const world = outcomesWorld();
    const a = await opened(world, world.replica(1));
    a.report(reporting("erp/close", "empty my cart"));
    await a.stop();
    const [key] = [...world.notes.notes.keys()].filter((name) => !name.endsWith("index"));
    const note = world.notes.notes.get(key as string) as { bytes: Uint8Array };
    const newer = Uint8Array.from(note.bytes);
    newer[0] = 9;
    note.bytes = newer;
    const b = await opened(world, world.replica(2));
    b.report(reporting("erp/close", "clear the basket"));
    await world.clock.advance(6_000);
    expect(note.bytes).toBe(newer);
    expect(recalls(b, world, "clear my basket")).toEqual(["erp/close"]);
    await b.stop();
    for (const damage of [newer.slice(0, 3), newer.slice(0, 20).fill(1, 0, 1), new Uint8Array(64).fill(255, 8)]) {
      note.bytes = damage;
      const c = await opened(world, world.replica(3));
      expect(c.past("default").memory.size).toBe(0);
      await c.stop();
    }
  });
});
