/** The `count` candidates with a name most like what was asked for, the most alike first; ties in the order given. */
export function nearest<T>(asked: string, candidates: readonly T[], namesOf: (candidate: T) => readonly string[], count: number): T[] {
  const wanted = pairsOf(asked);
  return candidates
    .map((candidate) => ({ candidate, likeness: Math.max(0, ...namesOf(candidate).map((name) => likeness(wanted, pairsOf(name)))) }))
    .sort((a, b) => b.likeness - a.likeness)
    .slice(0, count)
    .map(({ candidate }) => candidate);
}

type Pairs = ReadonlyMap<string, number>;

/** Neighbouring characters, and how often: models swap words of a name and misspell them, and this changes few pairs. */
function pairsOf(name: string): Pairs {
  const text = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
  const pairs = new Map<string, number>();
  for (let i = 0; i < Math.max(1, text.length - 1); i++) {
    const pair = text.slice(i, i + 2);
    pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
  }
  return pairs;
}

/** Dice's coefficient, 0 to 1. */
function likeness(a: Pairs, b: Pairs): number {
  let shared = 0;
  for (const [pair, count] of a) shared += Math.min(count, b.get(pair) ?? 0);
  const all = sum(a) + sum(b);
  return all === 0 ? 0 : (2 * shared) / all;
}

function sum(pairs: Pairs): number {
  let total = 0;
  for (const count of pairs.values()) total += count;
  return total;
}
