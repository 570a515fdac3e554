/** What holds of toolsets whatever store they are kept in: two replicas over one store, and time that a test lets pass. */
import { expect, it } from "vitest";
import type { PartitionStore, Store } from "../../src/catalogue/ports.js";
import type { Toolset } from "../../src/catalogue/toolsets/api.js";
import { Toolsets, type ToolsetHappening } from "../../src/catalogue/toolsets/toolsets.js";
import type { Fault } from "../../src/domain/fault.js";
import { EVERYBODY, type Principal } from "../../src/domain/identity.js";
import type { ToolsetQuotas } from "../../src/domain/quotas.js";
import type { Harness } from "./check.js";
import type { OpenHarness } from "./store.suite.js";
import { MovableClock, random, silent } from "./values.js";

export const alice: Principal = { id: "alice", grants: [{ role: "reader", namespaces: ["*"] }] };
export const bob: Principal = { id: "bob", grants: [{ role: "reader", namespaces: ["*"] }] };

const SECOND = 1_000;
const NONE = new Map<string, string>();

/** Two replicas. */
export class Bench {
  readonly clock = new MovableClock();
  readonly happened: ToolsetHappening[] = [];
  readonly one: Toolsets;
  readonly two: Toolsets;

  constructor(
    readonly harness: Harness,
    quotas?: ToolsetQuotas,
  ) {
    this.one = this.replica(harness.store, quotas);
    this.two = this.replica(harness.other, quotas);
  }

  replica(store: Store, quotas?: ToolsetQuotas): Toolsets {
    const { notes } = store.partitions[0] as PartitionStore;
    const onHappening = (what: ToolsetHappening) => void this.happened.push(what);
    return new Toolsets({ notesOf: () => notes, clock: this.clock, random, logger: silent, onHappening, ...(quotas && { quotas }) });
  }

  async elapse(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.harness.elapse(ms);
  }

  create(caller: Principal = alice, idleMs = 60 * SECOND, on = this.one): Promise<Toolset> {
    return on.create({ namespace: "", toolIds: ["s/a"], facts: NONE, idleMs }, caller);
  }

  get(handle: string, caller: Principal = alice, touch = false): Promise<Toolset> {
    return this.two.get({ namespace: "", handle, touch }, caller);
  }

  set(on: Toolsets, handle: string, toolIds: readonly string[], etag = ""): Promise<Toolset> {
    return on.update({ namespace: "", handle, etag, toolIds, setFacts: NONE, removeFacts: [], idleMs: undefined }, alice);
  }
}

export async function failure(call: Promise<unknown>): Promise<Fault> {
  return call.then(
    () => expect.fail("it should have failed"),
    (thrown) => thrown as Fault,
  );
}

export async function reasonOf(call: Promise<unknown>): Promise<string> {
  return (await failure(call)).reason;
}

export function toolsetSuite(open: OpenHarness): void {
  const on = async (work: (bench: Bench) => Promise<void>, quotas?: ToolsetQuotas): Promise<void> => {
    const harness = await open(undefined);
    try {
      await work(new Bench(harness, quotas));
    } finally {
      await harness.close();
    }
  };

  it("what one replica keeps the other finds, changes and removes", () =>
    on(async (bench) => {
      const facts = new Map([["mcp.client", '{"name":"查"}'], ["mode", "dynamic"]]);
      const made = await bench.one.create({ namespace: "", toolIds: ["s/b", "s/a"], facts, idleMs: 60 * SECOND }, alice);
      expect(made.handle).toMatch(/^ts-[0-9a-f]{8}-[0-9a-f]{32}$/);
      expect(await bench.get(made.handle)).toEqual(made);
      const update = { namespace: "", handle: made.handle, etag: made.etag, toolIds: ["s/c"], setFacts: new Map([["mode", "stable"]]), removeFacts: ["mcp.client", "none"], idleMs: 120 * SECOND };
      const changed = await bench.two.update(update, alice);
      expect(changed).toMatchObject({ toolIds: ["s/c"], facts: new Map([["mode", "stable"]]), idleMs: 120 * SECOND, createdAtMs: made.createdAtMs });
      expect(changed.etag).not.toBe(made.etag);
      expect(await bench.one.get({ namespace: "", handle: made.handle, touch: false }, alice)).toEqual(changed);
      expect(await bench.two.remove({ namespace: "", handle: made.handle, etag: changed.etag }, alice)).toBe(true);
      expect(await bench.one.remove({ namespace: "", handle: made.handle, etag: "" }, alice)).toBe(false);
      expect(await reasonOf(bench.get(made.handle))).toBe("NOT_FOUND");
      expect(bench.happened).toEqual(["created", "updated", "deleted", "absent"]);
    }));

  it("goes when nobody used it for its idle time, and not before", () =>
    on(async (bench) => {
      const [used, looked, left] = [await bench.create(), await bench.create(), await bench.create()];
      for (let i = 0; i < 4; i++) {
        await bench.elapse(40 * SECOND);
        const { expiresAtMs } = await bench.get(used.handle, alice, true);
        expect(expiresAtMs - bench.clock.now()).toBeGreaterThan(53 * SECOND);
        if (i === 0) await bench.get(looked.handle);
      }
      expect(await reasonOf(bench.get(looked.handle, alice, true))).toBe("NOT_FOUND");
      expect(await reasonOf(bench.set(bench.one, left.handle, []))).toBe("NOT_FOUND");
      const { expiresAtMs, etag } = await bench.set(bench.one, used.handle, []);
      expect(expiresAtMs - bench.clock.now()).toBeGreaterThan(55 * SECOND);
      expect(etag).toBe("2");
    }));

  it("of changes with one etag exactly one is made, on whichever replica", () =>
    on(async (bench) => {
      const { handle, etag } = await bench.create();
      const calls = Array.from({ length: 12 }, (_, i) => bench.set(i % 2 ? bench.one : bench.two, handle, [`s/t${i}`], etag));
      const results = await Promise.allSettled(calls);
      const made = results.flatMap((r) => (r.status === "fulfilled" ? [r.value] : []));
      expect(made).toHaveLength(1);
      const refused = results.flatMap((r) => (r.status === "rejected" ? [r.reason as Fault] : []));
      for (const fault of refused) expect([fault.reason, fault.status, fault.metadata["etag"]]).toEqual(["ETAG_MISMATCH", "ABORTED", "2"]);
      expect((await bench.get(handle)).toolIds).toEqual(made[0]?.toolIds);
    }));

  it("changes of different facts at once are all made, and uses beside them break none", () =>
    on(async (bench) => {
      const { handle } = await bench.create();
      await bench.elapse(30 * SECOND);
      const one = (i: number) => ({ namespace: "", handle, etag: "", toolIds: undefined, setFacts: new Map([[`f${i}`, "x"]]), removeFacts: [], idleMs: undefined });
      const calls = Array.from({ length: 8 }, (_, i) => (i % 2 ? bench.one : bench.two).update(one(i), alice));
      const uses = Array.from({ length: 8 }, () => bench.get(handle, alice, true));
      await Promise.all([...calls, ...uses]);
      const { facts, etag } = await bench.get(handle);
      expect([...facts.keys()].sort()).toEqual(Array.from({ length: 8 }, (_, i) => `f${i}`));
      expect(etag).toBe("9");
    }));

  it("a use does not change the etag, so it does not refuse the change of another", () =>
    on(async (bench) => {
      const { handle, etag } = await bench.create();
      await bench.elapse(30 * SECOND);
      await bench.get(handle, alice, true);
      expect((await bench.set(bench.one, handle, ["s/z"], etag)).toolIds).toEqual(["s/z"]);
      expect(bench.happened).toEqual(["created", "touched", "updated"]);
    }));

  it("P9: to another principal, in another namespace and with a guessed handle it is not there, in one text", () =>
    on(async (bench) => {
      const { handle } = await bench.create();
      const guess = `${handle.slice(0, -1)}${handle.endsWith("0") ? "1" : "0"}`;
      const away = [
        () => bench.get(handle, bob, true),
        () => bench.get(handle, EVERYBODY),
        () => bench.one.get({ namespace: "other", handle, touch: false }, alice),
        () => bench.get(guess),
        () => bench.get("ts-"),
        () => bench.get("x".repeat(512)),
        () => bench.one.update({ namespace: "", handle, etag: "", toolIds: [], setFacts: NONE, removeFacts: [], idleMs: undefined }, bob),
        () => bench.one.update({ namespace: "", handle, etag: "9", toolIds: [], setFacts: NONE, removeFacts: [], idleMs: undefined }, bob),
      ];
      const told = new Set<string>();
      for (const call of away) {
        const { reason, message, metadata } = await failure(call());
        told.add(JSON.stringify([reason, message, metadata]));
      }
      expect(told.size).toBe(1);
      expect([...told][0]).toContain("NOT_FOUND");
      expect([...told][0]).not.toContain(handle);
      expect(await bench.one.remove({ namespace: "", handle, etag: "" }, bob)).toBe(false);
      expect(await bench.one.remove({ namespace: "other", handle, etag: "" }, alice)).toBe(false);
      expect((await bench.get(handle)).toolIds).toEqual(["s/a"]);
    }));

  it("a principal has exactly as many as it may, on all replicas together; what goes makes room", () =>
    on(
      async (bench) => {
        const replicas = [bench.one, bench.two];
        const tries = Array.from({ length: 12 }, (_, i) => bench.create(alice, 60 * SECOND, replicas[i % 2]));
        const results = await Promise.allSettled(tries);
        const made = results.flatMap((r) => (r.status === "fulfilled" ? [r.value] : []));
        expect(made).toHaveLength(5);
        const full = results.flatMap((r) => (r.status === "rejected" ? [r.reason as Fault] : []));
        for (const fault of full) {
          expect([fault.reason, fault.metadata["quota"], fault.metadata["limit"]]).toEqual(["QUOTA_EXCEEDED", "toolsets per principal", "5"]);
          expect(fault.message).toContain("--max-toolsets-per-principal");
        }
        expect(await bench.create(bob)).toBeDefined();
        await bench.one.remove({ namespace: "", handle: made[0]?.handle ?? "", etag: "" }, alice);
        await bench.create();
        expect(await reasonOf(bench.create())).toBe("QUOTA_EXCEEDED");
        // A new replica over the same store counts what others made.
        expect(await reasonOf(bench.create(alice, SECOND, bench.replica(bench.harness.other, { perPrincipal: 5, perNamespace: 9 })))).toBe("QUOTA_EXCEEDED");
        await bench.elapse(90 * SECOND);
        for (let i = 0; i < 5; i++) await bench.create();
        expect(await reasonOf(bench.create())).toBe("QUOTA_EXCEEDED");
      },
      { perPrincipal: 5, perNamespace: 9 },
    ));

  it("a namespace has exactly as many as it may, and who is refused for it has lost nothing of their own", () =>
    on(
      async (bench) => {
        await Promise.all([bench.create(), bench.create(bob), bench.create(EVERYBODY)]);
        const fault = await failure(bench.create());
        expect([fault.reason, fault.metadata["quota"], fault.metadata["limit"]]).toEqual(["QUOTA_EXCEEDED", "toolsets", "3"]);
        const { handle } = await bench.two.create({ namespace: "other", toolIds: [], facts: NONE, idleMs: undefined }, alice);
        expect(handle).toBeDefined();
        await bench.elapse(90 * SECOND);
        await Promise.all([bench.create(), bench.create()]);
        expect((await failure(bench.create())).metadata["quota"]).toBe("toolsets per principal");
      },
      { perPrincipal: 2, perNamespace: 3 },
    ));

  it("one that is used for long stays counted", () =>
    on(
      async (bench) => {
        const { handle } = await bench.create();
        for (let i = 0; i < 10; i++) {
          await bench.elapse(45 * SECOND);
          await bench.get(handle, alice, true);
          expect(await reasonOf(bench.create())).toBe("QUOTA_EXCEEDED");
        }
      },
      { perPrincipal: 1, perNamespace: 5 },
    ));
}
