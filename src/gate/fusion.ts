import type { Recollection } from "./memory.js";
import type { Hit, SearchResult } from "./search.js";

/** What the dense signal counts beside the lexical score, which is 1 for the best tool; the memory says itself what it counts. */
export const FUSION = {
  dense: 0.5,
} as const;

/**
 * Something fits when its best tool reaches any of these; chosen on the development sets, so that nonsense is weak and real intents
 * mostly are not.
 */
export const FITS = {
  /** Share of the ideal score: short intents reach it. */
  absolute: 0.35,
  /** Raw score ÷ what one word is worth that a single tool has: long intents reach it, of which no tool can say all. */
  evidence: 0.6,
  /** What past uses say, as it is added to the score. */
  remembered: 0.3,
} as const;

export interface Signals {
  /** What past uses say (`IntentMemory.recall`). Tools that are absent do not move. */
  readonly memory?: Recollection;
  /** Per tool, any scale, more is better; absent or empty when no embedder answered. */
  readonly dense?: ReadonlyMap<string, number>;
  /** What rules and past calls make of a tool's score; it stays, if unsaid. */
  readonly weigh?: (toolId: string, score: number) => number;
}

/** A hit with what it is ranked by. */
export interface Candidate extends Hit {
  /** Sum of the signals, weighed; comparable within one answer. */
  readonly score: number;
  /** What past uses say, 0 to 1. */
  readonly remembered: number;
  /** Dense similarity ÷ the best of this answer, 0 to 1. */
  readonly dense: number;
}

/** Candidates by score: exactly named ones first, ties by tool id. Each signal is divided by its own best, never by its rank. */
export function fuse({ hits }: SearchResult, { memory, dense, weigh }: Signals): Candidate[] {
  const best = hits.reduce((most, { raw }) => Math.max(most, raw), 0);
  const bestDense = dense ? hits.reduce((most, { tool }) => Math.max(most, dense.get(tool.toolId) ?? 0), 0) : 0;
  const candidates = hits.map((hit) => {
    const lexical = best > 0 ? hit.raw / best : 0;
    const remembered = memory?.tools.get(hit.tool.toolId) ?? 0;
    const alike = bestDense > 0 ? Math.max(0, dense?.get(hit.tool.toolId) ?? 0) / bestDense : 0;
    const sum = lexical + (memory?.weight ?? 0) * remembered + FUSION.dense * alike;
    const score = weigh ? weigh(hit.tool.toolId, sum) : sum;
    // Field by field: a spread of a hundred candidates takes a seventh of the time of a search.
    const { tool, raw, absolute, matched, exactName } = hit;
    return { tool, raw, absolute, matched, exactName, score, remembered, dense: alike };
  });
  return candidates.sort(byScore);
}

export function byScore(a: Candidate, b: Candidate): number {
  if (a.exactName !== b.exactName) return a.exactName ? -1 : 1;
  if (a.score !== b.score) return a.score > b.score ? -1 : 1;
  return a.tool.toolId < b.tool.toolId ? -1 : a.tool.toolId > b.tool.toolId ? 1 : 0;
}

/** Whether a candidate really fits. */
export function fitting({ rare }: SearchResult, memory?: Recollection): (candidate: Candidate) => boolean {
  const weight = memory?.weight ?? 0;
  return (c) =>
    c.exactName ||
    c.absolute >= FITS.absolute ||
    c.raw >= FITS.evidence * rare ||
    c.remembered * weight >= FITS.remembered;
}
