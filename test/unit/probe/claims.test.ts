import { describe, expect, it } from "vitest";
import { CLAIM_TTL_MS, createClaims } from "../../../src/probe/claims.js";
import { MemoryStore } from "../../../src/store/memory/memory-store.js";
import { FakeClock, SeededRandom } from "../../support/fake-clock.js";
import { FailingNotes, NAMESPACE, SILENT } from "../../support/records.js";

function bench() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock, new SeededRandom(1));
  const shared = store.partitions[0]?.notes;
  if (!shared) throw new Error("a store has a partition");
  const replica = (replicaId: string, seed: number) => {
    const notes = new FailingNotes(shared);
    const claims = createClaims({ notesOf: () => notes, replicaId, clock, random: new SeededRandom(seed), logger: SILENT });
    const stop = new AbortController();
    const seen = { holds: false, times: 0, stopped: false };
    void claims
      .whileHeld(NAMESPACE, "claim/x", stop.signal, async (held) => {
        seen.holds = true;
        seen.times++;
        await clock.sleep(2 ** 31, held);
        seen.holds = false;
      })
      .then(() => (seen.stopped = true));
    return { notes, stop, seen };
  };
  return { clock, shared, replica };
}

describe("a claim", () => {
  it("is held by one replica, for as long as it renews", async () => {
    const { clock, replica } = bench();
    const a = replica("a", 2);
    const b = replica("b", 3);
    for (let i = 0; i < 60; i++) {
      await clock.advance(1_000);
      expect([a.seen.holds, b.seen.holds]).toEqual([true, false]);
    }
    expect(a.seen.times).toBe(1);
  });

  it("released on stop, goes to the other within a third of its length", async () => {
    const { clock, replica, shared } = bench();
    const a = replica("a", 2);
    const b = replica("b", 3);
    await clock.advance(20_000);
    a.stop.abort();
    await clock.settle();
    expect(a.seen).toMatchObject({ holds: false, stopped: true });
    expect(await shared.get("claim/x")).toBeUndefined();
    await clock.advance(CLAIM_TTL_MS / 3);
    expect(b.seen.holds).toBe(true);
  });

  it("of a replica whose store is away is not held; the other takes it when it has run out, and keeps it", async () => {
    const { clock, replica } = bench();
    const a = replica("a", 2);
    const b = replica("b", 3);
    await clock.advance(1_000);
    a.notes.away = true;
    await clock.advance(CLAIM_TTL_MS / 3);
    expect([a.seen.holds, b.seen.holds]).toEqual([false, false]);
    await clock.advance(CLAIM_TTL_MS);
    expect(b.seen.holds).toBe(true);
    a.notes.away = false;
    await clock.advance(60_000);
    expect([a.seen.holds, b.seen.holds]).toEqual([false, true]);
  });

  it("is taken again by its own replica after a short outage", async () => {
    const { clock, replica } = bench();
    const a = replica("a", 2);
    await clock.advance(1_000);
    a.notes.away = true;
    await clock.advance(5_000);
    a.notes.away = false;
    await clock.advance(5_000);
    expect(a.seen).toMatchObject({ holds: true, times: 2 });
  });
});
