import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Bucket, isFull, take } from "../../../src/domain/token-bucket.js";

const RULE = { perSecond: 10, burst: 20 };

function takeMany(times: readonly number[], rule = RULE) {
  let bucket: Bucket | undefined;
  return times.map((at) => {
    const taken = take(rule, bucket, at);
    bucket = taken.bucket;
    return taken;
  });
}

describe("a token bucket", () => {
  it("gives its burst at once and then its rate", () => {
    const at = (ms: number, n: number) => Array<number>(n).fill(ms);
    const kinds = takeMany([...at(0, 21), ...at(100, 2), ...at(10_000, 21)]).map((t) => t.kind);
    expect(kinds.slice(0, 21).filter((k) => k === "taken")).toHaveLength(20);
    expect(kinds.slice(21, 23)).toEqual(["taken", "empty"]);
    expect(kinds.slice(23).filter((k) => k === "taken")).toHaveLength(20);
  });

  it("calls those whom it refuses back one after the other, and nobody later than in 30 s", () => {
    const waits = takeMany(Array<number>(520).fill(0)).flatMap((t) => (t.kind === "empty" ? [t.waitMs] : []));
    expect(waits.slice(0, 3)).toEqual([100, 200, 300]);
    expect(waits.at(-1)).toBe(30_000);
  });

  it("lets everybody in who comes when told to, a thousand at once", () => {
    let bucket: Bucket | undefined;
    let waiting = Array.from({ length: 1_000 }, () => 0);
    let asked = 0;
    for (let round = 0; waiting.length > 0 && round < 50; round++) {
      const again: number[] = [];
      for (const at of waiting.sort((a, b) => a - b)) {
        asked++;
        const taken = take(RULE, bucket, at);
        bucket = taken.bucket;
        if (taken.kind === "empty") again.push(at + taken.waitMs);
      }
      waiting = again;
    }
    expect(waiting).toEqual([]);
    // Called back in a queue, not as a crowd: hardly anybody asks more than a few times.
    expect(asked).toBeLessThan(5_000);
  });

  it("for any times: never gives more than burst and rate allow, and a clock that stands still changes nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 300 }), { minLength: 1, maxLength: 200 }), (gaps) => {
        let now = 0;
        const times = gaps.map((gap) => (now += gap));
        const given = takeMany(times).filter((t) => t.kind === "taken").length;
        expect(given).toBeLessThanOrEqual(RULE.burst + (now * RULE.perSecond) / 1_000);
      }),
    );
  });

  it("is forgotten when it is full", () => {
    const [{ bucket }] = takeMany([0]) as [ReturnType<typeof take>];
    expect([isFull(RULE, bucket, 99), isFull(RULE, bucket, 100)]).toEqual([false, true]);
  });
});
