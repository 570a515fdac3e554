/** How often, how lately, how well and how fast a tool was used, as what its score is multiplied by. */
import type { Outcome } from "./outcome.js";
import { failingShare, since, standingAfter, type Standing, standingAt } from "./standing.js";

/** What each may move a score by; together at most 0.2 up or down. */
export const USAGE = {
  frequency: 0.06,
  next: 0.05,
  recency: 0.01,
  reliability: 0.12,
  slowness: 0.03,
  most: 0.2,
  /** An outcome counts half after this. */
  halfLifeMs: 14 * 86_400_000,
  /** So many uses are often. */
  often: 64,
  /** A call that takes this long is slow. */
  slowMs: 30_000,
  /** What a collapsed tool's score counts. */
  collapsed: 0.1,
} as const;

/** What the outcomes of a tool say; made once, and asked at any time after. */
export class Usage {
  private readonly standing: Standing;
  private readonly failing: number;
  /** Each halved for every half-life that it was before the newest. */
  private readonly successes: number;
  private readonly newestMs: number;
  private readonly lastSuccessMs: number | undefined;
  /** Of the successes that were measured, the middle one. */
  private readonly latencyMs: number | undefined;

  /** The newest first; at least one. */
  constructor(outcomes: readonly Outcome[]) {
    this.standing = standingAfter(outcomes);
    this.failing = failingShare(since(this.standing, outcomes));
    this.newestMs = outcomes[0]?.atMs ?? 0;
    const good = outcomes.filter(({ success }) => success);
    this.successes = good.reduce((sum, { atMs }) => sum + 2 ** ((atMs - this.newestMs) / USAGE.halfLifeMs), 0);
    this.lastSuccessMs = good[0]?.atMs;
    const latencies = good.flatMap(({ latencyMs }) => latencyMs ?? []).sort((a, b) => a - b);
    this.latencyMs = latencies[Math.floor(latencies.length / 2)];
  }

  standingAt(nowMs: number): Standing {
    return standingAt(this.standing, nowMs);
  }

  /** 0.8 to 1.2, and far below while it is collapsed. `next`: how often it follows what was just called, 0 to 1. */
  factorAt(nowMs: number, next = 0): number {
    const standing = this.standingAt(nowMs);
    if (standing.kind === "collapsed") return USAGE.collapsed;
    const decay = 2 ** (Math.min(0, this.newestMs - nowMs) / USAGE.halfLifeMs);
    const frequency = Math.log2(1 + this.successes * decay) / Math.log2(1 + USAGE.often);
    const recency = this.lastSuccessMs === undefined ? 0 : 2 ** (Math.min(0, this.lastSuccessMs - nowMs) / USAGE.halfLifeMs);
    // A tool whose time has come to be tried again begins anew.
    const failing = standing === this.standing ? this.failing * decay : 0;
    const slow = this.latencyMs === undefined ? 0 : Math.min(1, this.latencyMs / USAGE.slowMs);
    const up = USAGE.frequency * Math.min(1, frequency) + USAGE.recency * recency + USAGE.next * next;
    const moved = up - USAGE.reliability * failing - USAGE.slowness * slow;
    return 1 + Math.max(-USAGE.most, Math.min(USAGE.most, moved));
  }
}
