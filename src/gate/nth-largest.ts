/**
 * The value that `n` values reach or exceed and fewer exceed, 1 ≤ n ≤ length: the nth of them, sorted descending. Reorders `values`.
 * Hoare's selection: sorting all to read one took most of the time of a question to a large memory.
 */
export function nthLargest(values: Float64Array, n: number): number {
  let from = 0;
  let to = values.length - 1;
  const wanted = n - 1;
  while (from < to) {
    const pivot = middleOf(values, from, to);
    let left = from;
    let right = to;
    while (left <= right) {
      while ((values[left] as number) > pivot) left++;
      while ((values[right] as number) < pivot) right--;
      if (left > right) break;
      const held = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = held;
    }
    if (wanted <= right) to = right;
    else if (wanted >= left) from = left;
    else break;
  }
  return values[wanted] as number;
}

/** The middle one of the first, the last and the one between: sorted values are common, and then it halves them. */
function middleOf(values: Float64Array, from: number, to: number): number {
  const a = values[from] as number;
  const b = values[(from + to) >> 1] as number;
  const c = values[to] as number;
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
