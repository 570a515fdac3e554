import type { Recollection } from "./memory.js";
import type { Hit, SearchResult } from "./search.js";

/** What the dense signal counts beside the lexical score, which is 1 for the best tool; the memory says itself what it counts. */
export const FUSION = {
  dense: 0.5,
} as const;

/** Nothing fits when the best tool stays below all of these. */
export const WEAK = {
  /** Share of the ideal score. */
  absolute: 0.2,
  /** What past uses say. */
  memory: 0.4,
} as const;

export interface Signals {
  /** What past uses say (`IntentMemory.recall`). Tools that are absent do not move. */
  readonly memory?: Recollection;
  /** Per tool, any scale, more is better; absent or empty when no embedder answered. */
  readonly dense?: ReadonlyMap<string, number>;
}

/** A hit with what it is ranked by. */
export interface Candidate extends Hit {
  /** Sum of the signals; comparable within one answer. */
  readonly score: number;
  /** What past uses say, 0 to 1. */
  readonly remembered: number;
  /** Dense similarity ÷ the best of this answer, 0 to 1. */
  readonly dense: number;
}

/** Candidates by score: exactly named ones first, ties by tool id. Each signal is divided by its own best, never by its rank. */
export function fuse({ hits }: SearchResult, { memory, dense }: Signals): Candidate[] {
  const best = Math.max(0, ...hits.map((hit) => hit.raw));
  const bestDense = Math.max(0, ...hits.map((hit) => dense?.get(hit.tool.toolId) ?? 0));
  const candidates = hits.map((hit) => {
    const lexical = best > 0 ? hit.raw / best : 0;
    const remembered = memory?.tools.get(hit.tool.toolId) ?? 0;
    const alike = bestDense > 0 ? Math.max(0, dense?.get(hit.tool.toolId) ?? 0) / bestDense : 0;
    return { ...hit, score: lexical + (memory?.weight ?? 0) * remembered + FUSION.dense * alike, remembered, dense: alike };
  });
  return candidates.sort(byScore);
}

export function byScore(a: Candidate, b: Candidate): number {
  if (a.exactName !== b.exactName) return a.exactName ? -1 : 1;
  return b.score - a.score || (a.tool.toolId < b.tool.toolId ? -1 : a.tool.toolId > b.tool.toolId ? 1 : 0);
}

/** Whether nothing among the candidates really fits. */
export function isWeak(candidates: readonly Candidate[]): boolean {
  return !candidates.some((c) => c.exactName || c.absolute >= WEAK.absolute || c.remembered >= WEAK.memory);
}
