import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { leasePartition, makeLeaseId, renewAfterMs } from "../../../src/domain/lease.js";

const ID = "0123456789abcdef0123456789abcdef";

describe("lease ids", () => {
  it("name their partition", () => {
    expect(makeLeaseId(7, ID)).toBe(`l7-${ID}`);
    expect(leasePartition(`l7-${ID}`)).toBe(7);
    expect(leasePartition(makeLeaseId(0, ID))).toBe(0);
  });

  it.each(["", "l0-", `l-${ID}`, `l01-${ID}`, `l0-${ID}0`, `l0-${ID.toUpperCase()}`, `x0-${ID}`, `l0-${ID}\n`, `l-1-${ID}`])(
    "%j is none",
    (text) => {
      expect(leasePartition(text)).toBeUndefined();
    },
  );

  it("are never made from anything but an id", () => {
    expect(() => makeLeaseId(0, "short")).toThrow(/32 hex digits/);
    expect(() => makeLeaseId(-1, ID)).toThrow();
  });
});

it("renewals come after a third of the TTL, ± 10 %", () => {
  expect(renewAfterMs(30_000, 0.5)).toBe(10_000);
  fc.assert(
    fc.property(fc.integer({ min: 10_000, max: 3_600_000 }), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (ttl, r) => {
      const after = renewAfterMs(ttl, r);
      expect(after).toBeGreaterThanOrEqual(Math.round((ttl / 3) * 0.9));
      expect(after).toBeLessThanOrEqual(Math.round((ttl / 3) * 1.1));
    }),
  );
});
