/** Vectors as one signed byte a dimension: a quarter of the memory, and the order of the nearest hardly changes. */

/** What an embedder may answer with. */
export const DIMENSIONS = { least: 2, most: 8_192 } as const;

export type Quantised =
  | { readonly ok: true; readonly vector: Int8Array }
  /** Why it is no vector that anything can be compared with. */
  | { readonly ok: false; readonly reason: string };

/** The direction of a vector; its length says nothing about meaning. `dimensions` are those of the others; undefined for the first. */
export function quantise(values: ArrayLike<number>, dimensions: number | undefined): Quantised {
  const { length } = values;
  if (dimensions !== undefined && length !== dimensions)
    return { ok: false, reason: `it has ${length} dimensions, and the others have ${dimensions}` };
  if (length < DIMENSIONS.least || length > DIMENSIONS.most)
    return { ok: false, reason: `it has ${length} dimensions; ${DIMENSIONS.least} to ${DIMENSIONS.most} are taken` };
  let largest = 0;
  for (let i = 0; i < length; i++) {
    const value = values[i] as number;
    if (!Number.isFinite(value)) return { ok: false, reason: "it holds a value that is no finite number" };
    largest = Math.max(largest, Math.abs(value));
  }
  if (largest < SMALLEST) return { ok: false, reason: "all of its values are zero" };
  const vector = new Int8Array(length);
  for (let i = 0; i < length; i++) vector[i] = Math.round(((values[i] as number) / largest) * 127);
  return { ok: true, vector };
}

const SMALLEST = 1e-9;

/** Length of a quantised vector; never 0, because its largest value is 127 or -127. */
export function normOf(vector: Int8Array): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += (vector[i] as number) ** 2;
  return Math.sqrt(sum);
}
