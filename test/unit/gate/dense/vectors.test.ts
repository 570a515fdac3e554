/** Vectors of one byte a dimension, and the nearest of them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normOf, quantise } from "../../../../src/gate/dense/quantised.js";
import { VectorTable } from "../../../../src/gate/dense/vector-table.js";

const pace = { pause: () => Promise.resolve() };

function vector(values: readonly number[]): Int8Array {
  const made = quantise(values, undefined);
  if (!made.ok) throw new Error(made.reason);
  return made.vector;
}

describe("quantise", () => {
  it("keeps the direction and drops the length", () => {
    expect([...vector([0.5, -1, 0.25])]).toEqual([64, -127, 32]);
    expect(vector([5, -10, 2.5])).toEqual(vector([0.5, -1, 0.25]));
  });

  it.each([
    ["zero", [0, 0, 0], undefined, /zero/],
    ["not a number", [1, Number.NaN], undefined, /no finite number/],
    ["infinite", [1, Number.POSITIVE_INFINITY], undefined, /no finite number/],
    ["one number", [1], undefined, /1 dimensions; 2 to 8192/],
    ["of other dimensions", [1, 2, 3], 4, /3 dimensions, and the others have 4/],
  ])("refuses a vector that is %s", (_, values, dimensions, reason) => {
    expect(quantise(values, dimensions)).toEqual({ ok: false, reason: expect.stringMatching(reason) });
  });
});

describe("VectorTable", () => {
  const vectors = fc.array(fc.array(fc.integer({ min: -127, max: 127 }), { minLength: 4, maxLength: 4 }), { minLength: 1, maxLength: 300 });

  it("answers what looking at every vector answers, whatever was set and deleted before", async () => {
    await fc.assert(
      fc.asyncProperty(vectors, fc.array(fc.nat(299), { maxLength: 50 }), async (rows, gone) => {
        const table = new VectorTable(4, pace, undefined);
        const held = new Map<string, Int8Array>();
        for (const [i, row] of rows.entries()) {
          const made = quantise(row, 4);
          if (!made.ok) continue;
          table.set(`s/t${i}`, made.vector);
          held.set(`s/t${i}`, made.vector);
        }
        for (const i of gone) {
          table.delete(`s/t${i}`);
          held.delete(`s/t${i}`);
        }
        const query = vector([3, -1, 2, 1]);
        const near = await table.nearest(query, 10);
        const all = [...held].map(([toolId, v]) => ({ toolId, similarity: cosine(query, v) }));
        all.sort((a, b) => b.similarity - a.similarity || (a.toolId < b.toolId ? -1 : 1));
        expect(table.size).toBe(held.size);
        expect(near.map(({ toolId }) => toolId)).toHaveLength(Math.min(10, held.size));
        for (const [i, { similarity }] of near.entries()) expect(similarity).toBeCloseTo(all[i]?.similarity ?? Number.NaN, 5);
      }),
    );
  });

  it("lets others run while it looks at many", async () => {
    let pauses = 0;
    const table = new VectorTable(8_000, { pause: async () => void pauses++ }, undefined);
    const one = new Int8Array(8_000).fill(1);
    for (let i = 0; i < 400; i++) table.set(`s/t${i}`, one);
    await table.nearest(one, 5);
    expect(pauses).toBe(2);
  });
});

function cosine(a: Int8Array, b: Int8Array): number {
  let product = 0;
  for (let i = 0; i < a.length; i++) product += (a[i] as number) * (b[i] as number);
  return product / (normOf(a) * normOf(b));
}
