import type { Intent } from "./intent.js";
import { UseTable } from "./use-table.js";
import { decodeUses, encodeUses, Hasher, MEMORY_LIMITS, mergeUses, sameUse, type Use, useOf } from "./uses.js";

/** How remembered uses count. */
export const REMEMBERING = {
  /** Uses less alike than this do not count (cosine). */
  least: 0.1,
  /** The most alike that count. */
  nearest: 40,
  /** How much less a distant use counts in a memory whose tools were all used once: likeness to the power of 1 + this. */
  sharpening: 2,
  /** What the memory counts beside words, when no tool was used twice and when all were. */
  weightLeast: 0.5,
  weightMost: 2,
  /** What one caller may lend to a tool, 0 to 1, once there are several callers: the rest takes a second one. */
  callerMost: 0.5,
} as const;

/** What is reported: a tool was used for an intent. */
export interface Report {
  readonly toolId: string;
  /** Who reports; empty where callers have no identity, and then all are one. */
  readonly caller: string;
  readonly intent: Intent;
  readonly success: boolean;
  readonly atMs: number;
}

/** What past uses say about an intent. */
export interface Recollection {
  /** Above 0 to 1 for each tool with uses like it; others are absent, and are not moved. */
  readonly tools: ReadonlyMap<string, number>;
  /** What it counts beside the score by words, whose best is 1. */
  readonly weight: number;
}

/**
 * The memory of confirmed intents of one namespace. What it answers depends on the set of uses and the time, not on the
 * order in which they came. Tools that were never used are not in it, and so it moves none of them.
 */
export class IntentMemory {
  private readonly hasher: Hasher;
  private readonly table = new UseTable();

  /** `key` belongs to the namespace; replicas that share a memory share it. What is older than `retentionS` is forgotten. */
  constructor(
    key: string,
    private readonly retentionS: number = MEMORY_LIMITS.retentionS,
  ) {
    this.hasher = new Hasher(key);
  }

  /** Uses remembered. */
  get size(): number {
    return this.table.size;
  }

  /** Tools with uses. */
  toolIds(): Iterable<string> {
    return this.table.toolIds();
  }

  /**
   * A success is remembered; a failure withdraws what the same caller confirmed with the same words. Answers whether the uses of
   * the tool changed: not when the intent says nothing, and not when the caller holds its share of the memory.
   */
  record({ toolId, caller, intent, success, atMs }: Report): boolean {
    const use = useOf(intent, caller, atMs, this.hasher);
    if (use.terms.length === 0) return false;
    const before = this.uses(toolId);
    const others = before.filter((old) => !sameUse(old, use));
    const known = others.length < before.length;
    if (success ? !known && !this.mayAdd(use.caller) : !known) return false;
    this.put(toolId, success ? [...before, use] : others, use.atS);
    return true;
  }

  /** What is remembered of a tool, the newest first. */
  uses(toolId: string): readonly Use[] {
    return this.table.uses(toolId);
  }

  /** Replaces what is remembered of a tool; what exceeds the limits or is older than the retention is left out. */
  put(toolId: string, uses: readonly Use[], nowS: number): void {
    this.table.set(toolId, mergeUses([uses], nowS, this.retentionS));
    if (this.size > MEMORY_LIMITS.uses) this.table.shed(MEMORY_LIMITS.uses * 0.9);
  }

  forget(toolId: string): void {
    this.table.set(toolId, []);
  }

  /** Forgets what is older than the retention. */
  prune(nowS: number): void {
    for (const toolId of [...this.toolIds()]) this.table.set(toolId, mergeUses([this.uses(toolId)], nowS, this.retentionS));
  }

  /** The uses of a tool as bytes, for sharing. */
  export(toolId: string): Uint8Array {
    return encodeUses(this.uses(toolId));
  }

  /** Adds uses that another replica knows to one's own. False for bytes that are no uses; nothing changes then. */
  import(toolId: string, bytes: Uint8Array, nowS: number): boolean {
    const uses = decodeUses(bytes);
    if (!uses) return false;
    this.put(toolId, [...this.uses(toolId), ...uses], nowS);
    return true;
  }

  /** The nearest uses speak for their tools, each as much as it is alike and fresh; one is enough, more are surer. */
  recall(intent: Intent, nowMs: number): Recollection {
    const trust = this.trust();
    const weight = REMEMBERING.weightLeast + (REMEMBERING.weightMost - REMEMBERING.weightLeast) * trust;
    const power = 1 + REMEMBERING.sharpening * (1 - trust);
    const callerMost = this.table.callers > 1 ? REMEMBERING.callerMost : 1;
    const nowS = Math.floor(nowMs / 1_000);
    // Few callers speak for one tool, so a list of them is shorter than a map.
    const doubts = new Map<string, { readonly caller: number; left: number }[]>();
    const near = this.table.nearest(intent, this.hasher, REMEMBERING.nearest, REMEMBERING.least);
    for (const { toolId, use, likeness } of near) {
      const ageS = Math.max(0, nowS - use.atS);
      if (ageS > this.retentionS) continue;
      const says = likeness ** power * 2 ** (-ageS / MEMORY_LIMITS.halfLifeS);
      const callers = doubts.get(toolId);
      const known = callers?.find(({ caller }) => caller === use.caller);
      if (known) known.left *= 1 - says;
      else if (callers) callers.push({ caller: use.caller, left: 1 - says });
      else doubts.set(toolId, [{ caller: use.caller, left: 1 - says }]);
    }
    const tools = new Map<string, number>();
    for (const [toolId, callers] of doubts) {
      callers.sort((a, b) => (a.left < b.left ? -1 : a.left > b.left ? 1 : 0));
      tools.set(toolId, 1 - callers.reduce((doubt, { left }) => doubt * Math.max(left, 1 - callerMost), 1));
    }
    return { tools, weight };
  }

  /**
   * How likely the next right tool is one that is in the memory (Good and Turing): tools used once only, among all uses, are
   * as many as the next uses of a tool that was never used. Where that is likely, a distant use says little.
   */
  private trust(): number {
    return this.size === 0 ? 0 : 1 - this.table.usedOnce / this.size;
  }

  /** One caller may fill its share and no more. */
  private mayAdd(caller: number): boolean {
    return this.table.usesOf(caller) < MEMORY_LIMITS.uses * MEMORY_LIMITS.callerShare;
  }
}

