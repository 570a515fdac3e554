/** `; did you mean "deny"?` where a known word is as near as a slip of the finger; else nothing. */
export function nearest(word: string, known: readonly string[]): string {
  if (word.length > LONGEST) return "";
  const slips = Math.ceil(word.length / 3);
  const near = known
    .map((one) => ({ one, distance: distanceOf(word.toLowerCase(), one) }))
    .filter(({ distance }) => distance <= slips)
    .sort((a, b) => a.distance - b.distance)[0];
  return near ? `; did you mean ${JSON.stringify(near.one)}?` : "";
}

const LONGEST = 64;

/** Letters to put in, take out or replace. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
