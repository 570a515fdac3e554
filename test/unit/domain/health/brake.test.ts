import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SweepFacts } from "../../../../src/domain/health/brake.js";
import { brakedAllowance, decideSweep } from "../../../../src/domain/health/brake.js";

const calm = { clocksAgree: true, storeAwayLongerThanHalfTtl: false, chainJustBroken: false, justOpened: false };
const due = (n: number, braked: boolean, from = 0) => Array.from({ length: n }, (_, i) => ({ leaseId: `l${from + i}`, braked }));

function sweep(total: number, leases: SweepFacts["due"], more: Partial<SweepFacts> = {}) {
  return decideSweep({ total, due: leases, dueTotal: leases.length, ...calm, ...more });
}

describe("the brake", () => {
  it("stays off for a few ends", () => {
    expect(sweep(100, due(15, false))).toMatchObject({ brake: "off", extend: [], expire: { length: 15 } });
    expect(sweep(4, due(4, false))).toMatchObject({ brake: "off", expire: { length: 4 } });
    expect(sweep(10, [])).toEqual({ brake: "off", expire: [], extend: [] });
  });

  it("gives each lease of a mass expiry one second term", () => {
    expect(sweep(100, due(16, false))).toMatchObject({ brake: "on", reason: "mass-due", expire: [], extend: { length: 16 } });
    expect(sweep(5, due(5, false))).toMatchObject({ brake: "on", expire: [], extend: { length: 5 } });
  });

  it("counts all due leases, though it sees only some", () => {
    expect(sweep(100, due(3, false), { dueTotal: 40 })).toMatchObject({ brake: "on", extend: { length: 3 } });
  });

  it("then lets go at most 5 % a sweep, longest overdue first", () => {
    const decision = sweep(100, [...due(50, true), ...due(2, false, 50)]);
    expect(decision).toMatchObject({ brake: "on", reason: "mass-due", extend: ["l50", "l51"] });
    expect(decision.expire).toEqual(["l0", "l1", "l2", "l3", "l4"]);
    expect(sweep(6, due(6, true)).expire).toHaveLength(1);
  });

  it("goes on slowly when the mass is past, while fresh ends are ordinary again", () => {
    const decision = sweep(100, [...due(9, true), ...due(3, false, 9)]);
    expect(decision).toMatchObject({ brake: "on", reason: "draining", extend: [], expire: { length: 8 } });
  });

  it.each([
    ["chain-broken", { chainJustBroken: true }],
    ["just-opened", { justOpened: true }],
    ["store-away", { storeAwayLongerThanHalfTtl: true }],
  ])("is on for %s, even for one lease", (reason, more) => {
    expect(sweep(100, due(1, false), more)).toEqual({ brake: "on", reason, expire: [], extend: ["l0"] });
  });

  it("does nothing at all while the clocks disagree", () => {
    const all = { clocksAgree: false, justOpened: true };
    expect(sweep(10, [...due(5, true), ...due(5, false, 5)], all)).toEqual({ brake: "on", reason: "clocks-disagree", expire: [], extend: [] });
  });

  const facts = fc
    .record({
      leases: fc.array(fc.boolean(), { maxLength: 60 }),
      alive: fc.nat(300),
      unseen: fc.nat(50),
      clocksAgree: fc.boolean(),
      storeAwayLongerThanHalfTtl: fc.boolean(),
      chainJustBroken: fc.boolean(),
      justOpened: fc.boolean(),
    })
    .map(({ leases, alive, unseen, ...flags }): SweepFacts => ({
      ...flags,
      total: leases.length + unseen + alive,
      dueTotal: leases.length + unseen,
      due: leases.map((braked, i) => ({ leaseId: `l${i}`, braked })),
    }));

  it("never lets more expire than allowed, and never extends a lease twice", () => {
    fc.assert(
      fc.property(facts, (f) => {
        const decision = decideSweep(f);
        const braked = new Set(f.due.filter((l) => l.braked).map((l) => l.leaseId));
        const fresh = decision.expire.filter((id) => !braked.has(id)).length;
        expect(decision.expire.length - fresh).toBeLessThanOrEqual(brakedAllowance(f.total));
        expect(decision.extend.some((id) => braked.has(id))).toBe(false);
        expect(decision.extend.some((id) => decision.expire.includes(id))).toBe(false);
        if (!f.clocksAgree) expect(decision.expire.length + decision.extend.length).toBe(0);
        const calmly = f.clocksAgree && !f.chainJustBroken && !f.justOpened && !f.storeAwayLongerThanHalfTtl;
        if (fresh > 0) expect(calmly && (f.dueTotal < 5 || f.dueTotal <= f.total * 0.15)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it("ends every dead lease in the end", () => {
    let leases = due(40, false);
    let sweeps = 0;
    while (leases.length > 0 && sweeps < 100) {
      const decision = sweep(leases.length, leases);
      leases = leases
        .filter((l) => !decision.expire.includes(l.leaseId))
        .map((l) => ({ ...l, braked: l.braked || decision.extend.includes(l.leaseId) }));
      sweeps++;
    }
    expect(leases).toEqual([]);
  });
});
