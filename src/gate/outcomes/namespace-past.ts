/** What one namespace has learned of past calls, in memory: intents, outcomes, and what follows what. */
import { createHmac } from "node:crypto";
import type { Intent } from "../intent.js";
import { IntentMemory } from "../memory.js";
import type { Priority } from "../stages.js";
import { Hasher, mergeUses, newer } from "../uses.js";
import { Follows } from "./follows.js";
import { mergeOutcomes, type Outcome, OUTCOME_LIMITS } from "./outcome.js";
import { type Shard, shardOf, type ToolPast, withinLimits } from "./shard.js";
import { STANDING } from "./standing.js";
import { Usage } from "./usage.js";

/** A report as it is applied: to memory at once, and again to what another replica wrote meanwhile. Said words do not leave memory. */
export interface Happening {
  readonly toolId: string;
  readonly caller: string;
  readonly atMs: number;
  readonly nonce: number;
  /** `confirm`: it was the right tool for these words; `withdraw`: it was not. */
  readonly says: { readonly kind: "confirm" | "withdraw"; readonly intent: Intent } | undefined;
  /** How reliable it is; undefined for what is no matter of the tool. */
  readonly outcome: Pick<Outcome, "success" | "latencyMs" | "after"> | undefined;
}

export class NamespacePast {
  readonly memory: IntentMemory;
  /** Which tools follow which, of the outcomes held. */
  readonly follows = new Follows();
  /** Names the key, and tells nothing of it. */
  readonly keyId: number;
  private readonly hasher: Hasher;
  private readonly outcomes = new Map<string, readonly Outcome[]>();
  private readonly usages = new Map<string, Usage>();
  /** Tools with so many failures that they may have collapsed. */
  private readonly doubtful = new Set<string>();
  /** The tools of each shard of which something was ever held here. */
  private readonly places = new Map<number, Set<string>>();

  constructor(
    readonly key: string,
    private readonly retentionMs: number,
  ) {
    this.memory = new IntentMemory(key, Math.floor(retentionMs / 1_000));
    this.hasher = new Hasher(key);
    this.keyId = createHmac("sha256", key).update("which key").digest().readUInt32LE(0);
  }

  /** Answers whether what it says of its intent changed the memory. */
  apply(happening: Happening, nowMs: number): boolean {
    const { toolId, caller, atMs, nonce, says, outcome } = happening;
    this.place(toolId);
    if (outcome) {
      const made = { ...outcome, after: outcome.after.slice(0, OUTCOME_LIMITS.after), atMs, nonce, caller: this.hasher.hash(`caller ${caller}`) };
      this.setOutcomes(toolId, mergeOutcomes([this.outcomesOf(toolId), [made]], nowMs, this.retentionMs));
    }
    return says !== undefined && this.memory.record({ toolId, caller, intent: says.intent, success: says.kind === "confirm", atMs });
  }

  /** Newest first. */
  outcomesOf(toolId: string): readonly Outcome[] {
    return this.outcomes.get(toolId) ?? [];
  }

  /** Everything of one shard, as it is kept: within the limits, and nothing older than the retention. */
  shard(shard: number, nowMs: number): Shard {
    const tools = new Map<string, ToolPast>();
    for (const toolId of this.places.get(shard) ?? []) {
      const outcomes = mergeOutcomes([this.outcomesOf(toolId)], nowMs, this.retentionMs);
      tools.set(toolId, { uses: this.memory.uses(toolId), outcomes });
    }
    return withinLimits(tools);
  }

  /** Everything of one shard becomes this. */
  adopt(shard: number, tools: Shard, nowMs: number): void {
    for (const toolId of this.places.get(shard) ?? [])
      if (!tools.has(toolId)) this.put(toolId, { uses: [], outcomes: [] }, nowMs);
    this.places.delete(shard);
    for (const [toolId, past] of tools) {
      this.place(toolId);
      this.put(toolId, past, nowMs);
    }
  }

  /** Forgets what is older than the retention; answers the shards that held some of it. */
  prune(nowMs: number): ReadonlySet<number> {
    const touched = new Set<number>();
    const counted = (toolId: string) => this.memory.uses(toolId).length + this.outcomesOf(toolId).length;
    for (const [shard, toolIds] of this.places) {
      for (const toolId of toolIds) {
        const before = counted(toolId);
        this.put(toolId, { uses: this.memory.uses(toolId), outcomes: this.outcomesOf(toolId) }, nowMs);
        if (counted(toolId) < before) touched.add(shard);
        if (counted(toolId) === 0) toolIds.delete(toolId);
      }
      if (toolIds.size === 0) this.places.delete(shard);
    }
    return touched;
  }

  /** Shards of which something is held. */
  shards(): readonly number[] {
    return [...this.places.keys()];
  }

  /** `recent`: tools that were just called, of which others often follow. */
  priority(nowMs: number, recent: readonly string[]): Priority {
    const next = new Map(recent.flatMap((toolId) => this.follows.after(toolId)).map(({ toolIds, share }) => [toolIds[1], share]));
    return { factorOf: (toolId) => this.usageOf(toolId)?.factorAt(nowMs, next.get(toolId)) ?? 1 };
  }

  /** Tools whose calls fail now, in the order of their ids. */
  collapsed(nowMs: number): readonly string[] {
    const ids = [...this.doubtful].filter((id) => this.usageOf(id)?.standingAt(nowMs).kind === "collapsed");
    return ids.sort();
  }

  private usageOf(toolId: string): Usage | undefined {
    const known = this.usages.get(toolId);
    const outcomes = this.outcomes.get(toolId);
    if (known || !outcomes) return known;
    const usage = new Usage(outcomes);
    this.usages.set(toolId, usage);
    return usage;
  }

  private put(toolId: string, { uses, outcomes }: ToolPast, nowMs: number): void {
    const before = this.memory.uses(toolId);
    const after = mergeUses([uses], Math.floor(nowMs / 1_000), Math.floor(this.retentionMs / 1_000));
    // Putting uses anew costs their place in the table, and most of a shard is as it was.
    const same = before.length === after.length && before.every((use, i) => newer(use, after[i] as typeof use) === 0);
    if (!same) this.memory.put(toolId, after, Math.floor(nowMs / 1_000));
    this.setOutcomes(toolId, mergeOutcomes([outcomes], nowMs, this.retentionMs));
  }

  private setOutcomes(toolId: string, outcomes: readonly Outcome[]): void {
    this.usages.delete(toolId);
    this.follows.set(toolId, outcomes);
    if (outcomes.filter(({ success }) => !success).length >= STANDING.failuresLeast) this.doubtful.add(toolId);
    else this.doubtful.delete(toolId);
    if (outcomes.length === 0) this.outcomes.delete(toolId);
    else this.outcomes.set(toolId, outcomes);
  }

  private place(toolId: string): void {
    const shard = shardOf(toolId);
    const held = this.places.get(shard) ?? new Set();
    this.places.set(shard, held.add(toolId));
  }
}
