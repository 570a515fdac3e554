import { describe, expect, it } from "vitest";
import { costOf, DefinitionMemory } from "../../../src/schemas/memory.js";

const blob = (digest: string, size: number, fill = 1) => ({ digest, bytes: new Uint8Array(size).fill(fill), fetchedAtMs: 1 });

describe("definitions in memory", () => {
  it("never holds more than its limit, and lets the least recently used go first", () => {
    const each = costOf(blob("a", 1_000));
    const memory = new DefinitionMemory(3 * each);
    for (const d of ["a", "b", "c"]) memory.put("ns", blob(d, 1_000));
    memory.get("ns", "a");
    memory.put("ns", blob("d", 1_000));
    expect(["a", "b", "c", "d"].filter((d) => memory.has("ns", d))).toEqual(["a", "c", "d"]);
    expect(memory.bytes).toBe(3 * each);
  });

  it("P10: keeps the first bytes seen under a digest", () => {
    const memory = new DefinitionMemory(10_000);
    memory.put("ns", blob("a", 10, 1));
    expect(memory.put("ns", blob("a", 10, 2)).bytes[0]).toBe(1);
    expect(memory.get("ns", "a")?.bytes[0]).toBe(1);
  });

  it("P9: knows nothing of another namespace's digests", () => {
    const memory = new DefinitionMemory(10_000);
    memory.put("one", blob("a", 10));
    expect(memory.get("two", "a")).toBeUndefined();
  });

  it("does not keep the response alive that a definition was sliced from", () => {
    const response = new Uint8Array(100_000);
    const memory = new DefinitionMemory(10_000);
    memory.put("ns", { digest: "a", bytes: response.subarray(5, 15), fetchedAtMs: 1 });
    expect(memory.get("ns", "a")?.bytes.buffer.byteLength).toBe(10);
  });

  it("passes on, and does not hold, what is larger than itself", () => {
    const memory = new DefinitionMemory(1_000);
    memory.put("ns", blob("small", 10));
    expect(memory.put("ns", blob("large", 5_000)).bytes.byteLength).toBe(5_000);
    expect(memory.has("ns", "large")).toBe(false);
    expect(memory.has("ns", "small")).toBe(true);
  });
});
