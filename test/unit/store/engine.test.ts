import { describe, expect, test } from "vitest";
import type { Blob } from "../../../src/catalogue/ports.js";
import { Fault } from "../../../src/domain/fault.js";
import { startOf } from "../../../src/domain/revision.js";
import type { Journal } from "../../../src/store/memory/engine.js";
import { PartitionEngine } from "../../../src/store/memory/engine.js";
import { enginePartition } from "../../../src/store/memory/partition.js";
import type { Row, Tables } from "../../../src/store/memory/tables.js";
import { applyRows, emptyTables } from "../../../src/store/memory/tables.js";
import * as v from "../../conformance/values.js";

/** A disk whose next writes fail, before or after they reached it. */
class FailingJournal implements Journal {
  private readonly disk = emptyTables();
  readonly batches: { rows: number; synced: boolean }[] = [];
  next: "keep" | "lose" | "keep-and-fail" = "keep";
  loadFails = false;

  async write(rows: readonly Row[], synced: boolean): Promise<void> {
    await new Promise(setImmediate);
    if (this.next !== "lose") applyRows(this.disk, rows);
    this.batches.push({ rows: rows.length, synced });
    if (this.next !== "keep") throw new Error("the disk failed");
  }

  async blob(): Promise<Blob | undefined> {
    return undefined;
  }

  async load(): Promise<Tables> {
    if (this.loadFails) throw new Fault("STORE_UNAVAILABLE", "still failing");
    const copy = emptyTables();
    for (const table of Object.keys(copy) as (keyof Tables)[])
      for (const [key, value] of this.disk[table]) (copy[table] as Map<string, unknown>).set(key, value);
    return copy;
  }
}

function partition(window = { revisions: 100, bytes: 1_000_000 }) {
  const journal = new FailingJournal();
  const parts = { partition: 0, journal, clock: new v.MovableClock(), random: v.random, logger: v.silent, window };
  const closed = new AbortController();
  return { journal, ...enginePartition(new PartitionEngine(parts, emptyTables()), closed.signal) };
}

const unavailable = (error: unknown) => error instanceof Fault && error.reason === "STORE_UNAVAILABLE";

describe("the state machine of a partition", () => {
  test("writes whatever waits as one batch, synced if anything in it must be", async () => {
    const { journal, log, leases } = partition();
    await Promise.all([...Array.from({ length: 50 }, (_, i) => v.fill(log, 1, i)), leases.renew(["a"])]);
    expect(journal.batches.length).toBeLessThanOrEqual(3);
    expect(journal.batches.every((b) => b.synced)).toBe(true);
    await v.commit(log, "s", { after: v.record("s", []), leases: [v.grant("l")] });
    await leases.renew(["l"]);
    expect(journal.batches.at(-1)).toEqual({ rows: 1, synced: false });
    const count = journal.batches.length;
    await leases.renew(["unknown"]);
    expect(journal.batches).toHaveLength(count);
  });

  test("shows nothing before the journal has it", async () => {
    const { log } = partition();
    const writing = v.fill(log, 1);
    expect(await log.head()).toEqual(startOf(0));
    expect((await log.snapshot()).records).toEqual([]);
    expect(await log.head()).not.toEqual(await writing);
    expect((await log.head()).revision).toBe(1);
  });

  test("a failed write refuses everybody in the batch and changes nothing", async () => {
    const { journal, log } = partition();
    const at = await v.fill(log, 2);
    journal.next = "lose";
    const results = await Promise.allSettled([v.fill(log, 1, 10), v.fill(log, 1, 11), v.fill(log, 1, 12)]);
    for (const r of results) expect(r.status === "rejected" && unavailable(r.reason)).toBe(true);
    expect(await log.head()).toEqual(at);
    journal.next = "keep";
    expect((await v.fill(log, 1, 10)).revision).toBe(3);
  });

  test("after a write that failed though it was kept, it goes on from what is really kept", async () => {
    const { journal, log } = partition();
    const at = await v.fill(log, 2);
    journal.next = "keep-and-fail";
    await expect(v.fill(log, 1, 10)).rejects.toSatisfy(unavailable);
    expect(await log.head()).toEqual(at);
    journal.next = "keep";
    journal.loadFails = true;
    await expect(v.fill(log, 1, 11)).rejects.toSatisfy(unavailable);
    journal.loadFails = false;
    const waiting = log.poll(at, 10, new AbortController().signal);
    expect(await v.resultOf(log, v.step("s10", { after: v.record("s10", []) }))).toBe("conflict");
    const seen = await waiting;
    expect(seen.kind === "entries" && seen.entries.map((e) => e.change.serverId)).toEqual(["s10"]);
    expect((await v.fill(log, 1, 11)).revision).toBe(4);
    const { entries } = await log.snapshot();
    entries.reduce((prev, e) => (expect(e.prev).toBe(prev), e.position.chain), "0");
  });

  test("one batch may hold more entries than the window", async () => {
    const { journal, log } = partition({ revisions: 3, bytes: 1_000_000 });
    await Promise.all(Array.from({ length: 20 }, (_, i) => v.fill(log, 1, i)));
    expect(journal.batches.length).toBeLessThan(5);
    expect((await log.snapshot()).entries.map((e) => e.position.revision)).toEqual([18, 19, 20]);
  });
});
