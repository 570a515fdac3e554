import { describe, expect, it } from "vitest";
import { LIMITS } from "../../../src/domain/limits.js";
import { afterFailure, afterListing, afterNotice } from "../../../src/probe/pace.js";

const half = () => 0.5;
const most = () => 0.999999;

describe("the pace of listings", () => {
  it("is the server's own within our bounds, ours when it names none, ±10 %", () => {
    expect(afterListing(undefined, half)).toBe(LIMITS.relistDefaultMs);
    expect(afterListing(0, half)).toBe(LIMITS.relistMinMs);
    expect(afterListing(60_000, half)).toBe(60_000);
    expect(afterListing(10 ** 12, half)).toBe(LIMITS.relistMaxMs);
    expect(afterListing(100_000, () => 0)).toBe(90_000);
    expect(afterListing(100_000, most)).toBe(110_000);
  });

  it("after failures doubles from 2 s to 5 min, full jitter; a pending server from 1 s", () => {
    expect([1, 2, 3, 4].map((n) => afterFailure(n, false, most))).toEqual([2_000, 4_000, 8_000, 16_000]);
    expect(afterFailure(1, true, most)).toBe(1_000);
    expect(afterFailure(1_000_000, false, most)).toBe(300_000);
    expect(afterFailure(3, false, half)).toBe(4_000);
    expect(afterFailure(3, false, () => 0)).toBeGreaterThan(0);
  });

  it("after notices that never cease moves apart up to 5 s", () => {
    expect([0, 1, 2, 100].map(afterNotice)).toEqual([50, 100, 200, 5_000]);
  });
});
