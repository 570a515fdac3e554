/** How good a ranking is. Shares are 0 to 1. */
export interface Scores {
  readonly "ndcg@5": number;
  readonly "r@1": number;
  readonly "r@5": number;
  readonly "r@10": number;
  readonly mrr: number;
  readonly "allgold@10": number;
}

export function scoresOf(ranked: readonly string[], relevant: readonly string[]): Scores {
  const gold = new Set(relevant);
  const first = ranked.findIndex((id) => gold.has(id));
  const within = (n: number) => ranked.slice(0, n).filter((id) => gold.has(id)).length;
  const recall = (n: number) => (gold.size === 0 ? 0 : within(n) / gold.size);
  return {
    "ndcg@5": ndcg(ranked, gold, 5),
    "r@1": recall(1),
    "r@5": recall(5),
    "r@10": recall(10),
    mrr: first < 0 ? 0 : 1 / (first + 1),
    "allgold@10": within(10) === gold.size ? 1 : 0,
  };
}

function ndcg(ranked: readonly string[], gold: ReadonlySet<string>, n: number): number {
  const gain = (rank: number) => 1 / Math.log2(rank + 2);
  let sum = 0;
  for (const [rank, id] of ranked.slice(0, n).entries()) if (gold.has(id)) sum += gain(rank);
  let ideal = 0;
  for (let rank = 0; rank < Math.min(n, gold.size); rank++) ideal += gain(rank);
  return ideal === 0 ? 0 : sum / ideal;
}

export function mean(all: readonly Scores[]): Scores {
  const of = (key: keyof Scores) => all.reduce((sum, scores) => sum + scores[key], 0) / Math.max(1, all.length);
  return { "ndcg@5": of("ndcg@5"), "r@1": of("r@1"), "r@5": of("r@5"), "r@10": of("r@10"), mrr: of("mrr"), "allgold@10": of("allgold@10") };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
