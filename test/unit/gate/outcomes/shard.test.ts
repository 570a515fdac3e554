import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { intentOf } from "../../../../src/gate/intent.js";
import { decodeIndex, encodeIndex } from "../../../../src/gate/outcomes/past-index.js";
import { decodeShard, encodeShard, SHARD_LIMITS, SHARDS, shardOf, type ToolPast, withinLimits } from "../../../../src/gate/outcomes/shard.js";
import { Hasher, MEMORY_LIMITS, useOf } from "../../../../src/gate/uses.js";

const hasher = new Hasher("key");
const use = fc
  .record({ words: fc.array(fc.constantFrom("close", "order", "invoice", "关闭"), { minLength: 1, maxLength: 4 }), caller: fc.constantFrom("a", "b"), atMs: fc.nat(10_000_000) })
  .map(({ words, caller, atMs }) => useOf(intentOf({ text: words.join(" ") }), caller, atMs, hasher));
const outcome = fc.record({
  atMs: fc.nat(10_000_000).map((ms) => ms + 1 / 1024),
  caller: fc.nat(0xffff_ffff),
  nonce: fc.nat(0xffff_ffff),
  success: fc.boolean(),
  latencyMs: fc.option(fc.double({ min: 0, max: 86_400_000, noNaN: true }), { nil: undefined }),
  after: fc.array(fc.constantFrom("a/x", "a/y", "b/z", "服务/工具"), { maxLength: 3 }),
});
const shard = fc
  .array(fc.tuple(fc.string({ minLength: 1, maxLength: 60 }), fc.record({ uses: fc.array(use, { maxLength: 5 }), outcomes: fc.array(outcome, { maxLength: 6 }) })), { maxLength: 12 })
  .map((entries) => new Map<string, ToolPast>(entries));

describe("a shard as bytes", () => {
  it("is read as it was written, whatever the order of its tools", () => {
    fc.assert(
      fc.property(shard, (tools) => {
        const bytes = encodeShard(tools, 7);
        expect(encodeShard(new Map([...tools].reverse()), 7)).toEqual(bytes);
        const decoded = decodeShard(bytes, 7);
        expect(decoded.kind === "shard" && new Map(decoded.tools)).toEqual(tools);
        expect(decodeShard(bytes, 8)).toEqual({ kind: "unusable" });
      }),
    );
  });

  it("that is damaged is unusable and no failure", () => {
    fc.assert(
      fc.property(shard, fc.nat(), fc.integer({ min: 1, max: 255 }), fc.nat(), (tools, place, change, cut) => {
        const bytes = Uint8Array.from(encodeShard(tools, 7));
        const at = place % bytes.length;
        bytes[at] = (bytes[at] as number) ^ change;
        expect(["shard", "unusable", "newer"]).toContain(decodeShard(bytes, 7).kind);
        expect(decodeShard(encodeShard(tools, 7).slice(0, cut % encodeShard(tools, 7).length), 7).kind).toBe("unusable");
      }),
    );
  });
});

describe("what a shard may hold", () => {
  it("is bounded in uses, in tools and in the share of one caller; the newest stay", () => {
    const loud = Array.from({ length: 900 }, (_, i) => useOf(intentOf({ text: `word${i}` }), "loud", 2_000_000 + i * 1_000, hasher));
    const quiet = Array.from({ length: 300 }, (_, i) => useOf(intentOf({ text: `other${i}` }), "quiet", i * 1_000, hasher));
    const tools = new Map<string, ToolPast>();
    for (let i = 0; i < 300; i++) {
      const made = { atMs: i, caller: 1, nonce: i, success: true, latencyMs: undefined, after: [] };
      tools.set(`s/tool-${i}`, { uses: [...loud.slice(3 * i, 3 * i + 3), quiet[i] as (typeof quiet)[number]], outcomes: [made] });
    }
    const kept = [...withinLimits(tools)];
    const uses = kept.flatMap(([, past]) => past.uses);
    expect(uses.length).toBeLessThanOrEqual(SHARD_LIMITS.uses);
    const [one, other] = [loud, quiet].map((all) => uses.filter(({ caller }) => caller === all[0]?.caller).length) as [number, number];
    expect([one, other]).toEqual([Math.ceil(SHARD_LIMITS.uses * MEMORY_LIMITS.callerShare), 300]);
    const counted = kept.filter(([, past]) => past.outcomes.length > 0).map(([id]) => id);
    expect(counted.length).toBe(SHARD_LIMITS.tools);
    expect(counted).toContain("s/tool-299");
    expect(counted).not.toContain("s/tool-0");
  });

  it("all shards together keep to the limit of the memory, and tools spread over them", () => {
    expect(SHARD_LIMITS.uses * SHARDS).toBeLessThanOrEqual(MEMORY_LIMITS.uses);
    const held = new Set(Array.from({ length: 2_000 }, (_, i) => shardOf(`server-${i % 7}/tool_${i}`)));
    expect(held.size).toBe(SHARDS);
  });
});

it("an index is read as it was written", () => {
  const versions = Array.from({ length: SHARDS }, (_, i) => i * 1_790_000_000_000_000);
  const index = { key: "0123456789abcdef0123456789abcdef", versions };
  expect(decodeIndex(encodeIndex(index))).toEqual({ kind: "index", index });
  expect(decodeIndex(new Uint8Array(3)).kind).toBe("unusable");
  expect(decodeIndex(Uint8Array.from(encodeIndex(index)).fill(9, 0, 1)).kind).toBe("newer");
});
