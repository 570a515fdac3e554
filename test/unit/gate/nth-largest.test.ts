import fc from "fast-check";
import { expect, test } from "vitest";
import { nthLargest } from "../../../src/gate/nth-largest.js";

test("the nth of all values, sorted descending, whatever their order and however often they come", () => {
  const few = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 60 });
  const any = fc.array(fc.double({ noNaN: true }).map((value) => value + 0), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(fc.oneof(few, any), fc.nat(), (values, draw) => {
      const n = 1 + (draw % values.length);
      expect(nthLargest(Float64Array.from(values), n)).toBe([...values].sort((a, b) => b - a)[n - 1]);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ["sorted", (i: number) => i],
  ["falling", (i: number) => -i],
  ["all equal", () => 7],
  ["a mountain", (i: number) => (i < 50_000 ? i : 100_000 - i)],
])("a hundred thousand of them, %s", (_, value) => {
  const values = Float64Array.from({ length: 100_000 }, (_, i) => value(i));
  expect(nthLargest(values.slice(), 400)).toBe([...values].sort((a, b) => b - a)[399]);
});
