import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { candidatesFor } from "../../../src/gate/candidates.js";
import { intentOf } from "../../../src/gate/intent.js";
import { indexOf } from "../../../src/gate/live-index.js";
import { IntentMemory, type Report } from "../../../src/gate/memory.js";
import { MEMORY_LIMITS } from "../../../src/gate/uses.js";

const NOW = Date.UTC(2026, 0, 1);
const DAY = 86_400_000;
const PACE = { monotonic: () => 0, pause: async () => {} };

function used(toolId: string, text: string, more: Partial<Report> = {}): Report {
  return { toolId, caller: "agent", intent: intentOf({ text }), success: true, atMs: NOW, ...more };
}

function memoryOf(...reports: Report[]): IntentMemory {
  const memory = new IntentMemory("key");
  for (const report of reports) memory.record(report);
  return memory;
}

const recall = (memory: IntentMemory, text: string, nowMs = NOW) => memory.recall(intentOf({ text }), nowMs).tools;

const anyReport = fc
  .record({
    toolId: fc.constantFrom("a/x", "a/y", "b/z"),
    words: fc.array(fc.constantFrom("close", "order", "invoice", "report", "export"), { minLength: 1, maxLength: 4 }),
    caller: fc.constantFrom("one", "two"),
    day: fc.nat(100),
  })
  .map(({ toolId, words, caller, day }) => used(toolId, words.join(" "), { caller, atMs: NOW - day * DAY }));

describe("what is remembered", () => {
  test("a like intent finds the tool, the same one more surely, an unlike one not at all", () => {
    const memory = memoryOf(used("a/x", "get rid of the stale basket"), used("a/x", "empty my cart"), used("b/y", "print the invoice"));
    const same = recall(memory, "get rid of the stale basket").get("a/x") ?? 0;
    const like = recall(memory, "rid me of that basket").get("a/x") ?? 0;
    expect(same).toBeGreaterThan(0.9);
    expect(like).toBeGreaterThan(0);
    expect(like).toBeLessThan(same);
    expect([...recall(memory, "weather tomorrow").keys()]).toEqual([]);
  });

  test("it fades and ends", () => {
    const memory = memoryOf(used("a/x", "empty my cart"));
    const at = (days: number) => recall(memory, "empty my cart", NOW + days * DAY).get("a/x") ?? 0;
    expect(at(30)).toBeCloseTo(at(0) / 2, 5);
    expect(at(181)).toBe(0);
    memory.prune((NOW + 181 * DAY) / 1_000);
    expect(memory.size).toBe(0);
  });

  test("a failure withdraws what its caller confirmed", () => {
    const memory = memoryOf(used("a/x", "empty my cart"), used("a/x", "empty my cart", { caller: "other" }));
    expect(memory.record(used("a/x", "empty my cart", { success: false }))).toBe(true);
    expect(memory.size).toBe(1);
    expect(memory.record(used("b/y", "empty my cart", { success: false }))).toBe(false);
  });

  test("what two intents of one conversation share in earlier turns does not make them alike", () => {
    const history = ["schedule a weekly backup of our customer data with encryption"];
    const memory = new IntentMemory("key");
    memory.record(used("a/status", "", { intent: intentOf({ text: "check its status", history }) }));
    expect(memory.recall(intentOf({ text: "cancel the job", history }), NOW).tools.size).toBe(0);
  });

  test("no word of an intent is stored", () => {
    const memory = memoryOf(used("a/x", "empty my confidential cart"));
    const bytes = Buffer.from(memory.export("a/x"));
    for (const word of ["confidential", "cart", "agent"]) expect(bytes.includes(word)).toBe(false);
    const elsewhere = new IntentMemory("another key");
    elsewhere.import("a/x", bytes, NOW / 1_000);
    expect(recall(elsewhere, "empty my confidential cart").size).toBe(0);
  });
});

describe("equal uses, equal answers", () => {
  test("in whatever order they came, and through bytes", () => {
    fc.assert(
      fc.property(fc.array(anyReport, { maxLength: 40 }), fc.array(anyReport, { maxLength: 3 }), (reports, asked) => {
        const forward = memoryOf(...reports);
        const backward = memoryOf(...[...reports].reverse());
        const shared = new IntentMemory("key");
        for (const toolId of forward.toolIds()) expect(shared.import(toolId, forward.export(toolId), NOW / 1_000)).toBe(true);
        for (const { intent } of asked) {
          expect(backward.recall(intent, NOW)).toEqual(forward.recall(intent, NOW));
          expect(shared.recall(intent, NOW)).toEqual(forward.recall(intent, NOW));
        }
      }),
      { numRuns: 100 },
    );
  });

  test("bytes that are no uses change nothing", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const memory = memoryOf(used("a/x", "empty my cart"));
        const taken = memory.import("a/x", bytes, NOW / 1_000);
        expect(taken || memory.size === 1).toBe(true);
      }),
    );
    const memory = memoryOf(used("a/x", "empty my cart"));
    const bytes = memory.export("a/x");
    expect(memory.import("a/x", bytes.subarray(0, bytes.length - 1), NOW / 1_000)).toBe(false);
  });
});

describe("bounds", () => {
  test("the same report 10,000 times is one use", () => {
    const memory = new IntentMemory("key");
    for (let i = 0; i < 10_000; i++) memory.record(used("a/x", "empty my cart", { atMs: NOW + i }));
    expect(memory.size).toBe(1);
  });

  test("10,000 different reports of one caller leave room for others", () => {
    const memory = new IntentMemory("key");
    for (let i = 0; i < 10_000; i++) memory.record(used("evil/tool", `empty my cart ${i} w${i}`, { atMs: NOW + i * 1_000 }));
    expect(memory.size).toBe(MEMORY_LIMITS.usesPerToolAndCaller);
    for (let i = 0; i < 100; i++) memory.record(used("evil/tool", `other intents v${i}`, { caller: `c${i}` }));
    expect(memory.size).toBe(MEMORY_LIMITS.usesPerTool);
  });

  test("one caller alone does not push the right tool from the top", async () => {
    const document = { title: "", useWhen: "", keywords: [], tags: [], service: "", parameters: [] };
    const index = await indexOf(
      [
        { ...document, toolId: "shop/empty_cart", serverId: "shop", name: "empty_cart", description: "Empties the shopping cart." },
        { ...document, toolId: "evil/tool", serverId: "evil", name: "tool", description: "Nothing." },
      ],
      PACE,
    );
    const memory = memoryOf(used("shop/empty_cart", "empty my cart", { caller: "honest" }));
    for (let i = 0; i < 500; i++) memory.record(used("evil/tool", `empty my cart ${i}`, { caller: "evil" }));
    const { ranked } = candidatesFor(index, { intent: intentOf({ text: "empty my cart" }), nowMs: NOW, memory });
    expect(ranked[0]?.tool.toolId).toBe("shop/empty_cart");
  });

  test("nothing is remembered of an intent that says nothing", () => {
    expect(new IntentMemory("key").record(used("a/x", "🙂 the of"))).toBe(false);
  });
});
