/**
 * A shard of a namespace's past as bytes: the tools whose ids hash into it, each with its uses and outcomes. Little-endian
 * throughout; whoever changes the form raises VERSION, and a replica that does not know it leaves the shard alone.
 */
import { createHash } from "node:crypto";
import { decodeUses, encodeUses, MEMORY_LIMITS, newer, type Use } from "../uses.js";
import { type Outcome, OUTCOME_LIMITS } from "./outcome.js";

/** What is remembered of one tool; both lists the newest first. */
export interface ToolPast {
  readonly uses: readonly Use[];
  readonly outcomes: readonly Outcome[];
}

export type Shard = ReadonlyMap<string, ToolPast>;

export type Decoded =
  | { readonly kind: "shard"; readonly tools: Shard }
  /** Its hashes were made with another key, or it is no shard at all: nothing of it can be used. */
  | { readonly kind: "unusable" }
  /** Written by a newer replica: it must not be written over. */
  | { readonly kind: "newer" };

export const SHARDS = 64;

export const SHARD_LIMITS = {
  /** So that all shards together keep to the limit of the memory. */
  uses: Math.floor(MEMORY_LIMITS.uses / SHARDS),
  /** Tools with outcomes. */
  tools: 160,
} as const;

export function shardOf(toolId: string): number {
  return createHash("sha256").update(toolId).digest().readUInt32LE(0) % SHARDS;
}

/**
 * What a shard may hold of these: of too many uses the newest, half of them of one caller at most, and of too many tools the
 * outcomes of those that were used last.
 */
export function withinLimits(tools: Shard): Map<string, ToolPast> {
  const spared = sparedUses(tools);
  const byNewest = [...tools].sort(([a, x], [b, y]) => (y.outcomes[0]?.atMs ?? 0) - (x.outcomes[0]?.atMs ?? 0) || (a < b ? -1 : 1));
  const kept = new Map<string, ToolPast>();
  for (const [i, [toolId, past]] of byNewest.entries()) {
    const uses = spared ? past.uses.filter((use) => spared.has(use)) : past.uses;
    const outcomes = i < SHARD_LIMITS.tools ? past.outcomes : [];
    if (uses.length > 0 || outcomes.length > 0) kept.set(toolId, { uses, outcomes });
  }
  return kept;
}

/** Undefined where all may stay. */
function sparedUses(tools: Shard): Set<Use> | undefined {
  const all = [...tools].flatMap(([toolId, { uses }]) => uses.map((use) => ({ toolId, use })));
  if (all.length <= SHARD_LIMITS.uses) return undefined;
  all.sort((a, b) => newer(a.use, b.use) || (a.toolId < b.toolId ? -1 : 1));
  const perCaller = new Map<number, number>();
  const spared = new Set<Use>();
  for (const { use } of all) {
    const held = perCaller.get(use.caller) ?? 0;
    if (held >= SHARD_LIMITS.uses * MEMORY_LIMITS.callerShare) continue;
    perCaller.set(use.caller, held + 1);
    spared.add(use);
    if (spared.size >= SHARD_LIMITS.uses) break;
  }
  return spared;
}

const VERSION = 1;

/** `keyId` names the key that the hashes were made with. */
export function encodeShard(tools: Shard, keyId: number): Uint8Array {
  const parts: Buffer[] = [words(VERSION, keyId, tools.size)];
  const ids = [...tools.keys()].sort();
  for (const toolId of ids) {
    const { uses, outcomes } = tools.get(toolId) as ToolPast;
    const encoded = encodeUses(uses);
    parts.push(textBytes(toolId), words(encoded.byteLength), Buffer.from(encoded), outcomeBytes(outcomes));
  }
  return Buffer.concat(parts);
}

export function decodeShard(bytes: Uint8Array, keyId: number): Decoded {
  const reader = new Reader(bytes);
  try {
    if (reader.word() > VERSION) return { kind: "newer" };
    if (reader.word() !== keyId) return { kind: "unusable" };
    const tools = new Map<string, ToolPast>();
    for (let left = reader.word(); left > 0; left--) {
      const toolId = reader.text();
      const uses = decodeUses(reader.take(reader.word()));
      if (!uses) return { kind: "unusable" };
      tools.set(toolId, { uses, outcomes: readOutcomes(reader) });
    }
    return reader.atEnd ? { kind: "shard", tools } : { kind: "unusable" };
  } catch (error) {
    if (error instanceof RangeError) return { kind: "unusable" };
    throw error;
  }
}

/** Earlier tools recur, so each is written once. Absent latencies are −1. */
function outcomeBytes(outcomes: readonly Outcome[]): Buffer {
  const names = [...new Set(outcomes.flatMap(({ after }) => after))].sort();
  const parts = [words(names.length), ...names.map(textBytes), words(outcomes.length)];
  for (const { atMs, caller, nonce, success, latencyMs = -1, after } of outcomes) {
    const head = Buffer.alloc(26);
    head.writeDoubleLE(atMs, 0);
    head.writeUInt32LE(caller, 8);
    head.writeUInt32LE(nonce, 12);
    head.writeDoubleLE(latencyMs, 16);
    head.writeUInt8(success ? 1 : 0, 24);
    head.writeUInt8(after.length, 25);
    parts.push(head, words(...after.map((id) => names.indexOf(id))));
  }
  return Buffer.concat(parts);
}

function readOutcomes(reader: Reader): Outcome[] {
  const names = Array.from({ length: reader.count(MOST_NAMES) }, () => reader.text());
  return Array.from({ length: reader.count(OUTCOME_LIMITS.perTool) }, () => {
    const head = reader.take(26);
    const latency = head.readDoubleLE(16);
    const after = Array.from({ length: head.readUInt8(25) }, () => {
      const name = names[reader.word()];
      if (name === undefined) throw new RangeError("an earlier tool without a name");
      return name;
    });
    return {
      atMs: head.readDoubleLE(0),
      caller: head.readUInt32LE(8),
      nonce: head.readUInt32LE(12),
      success: head.readUInt8(24) === 1,
      latencyMs: latency < 0 ? undefined : latency,
      after,
    };
  });
}

const MOST_NAMES = OUTCOME_LIMITS.perTool * OUTCOME_LIMITS.after;

function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) bytes.writeUInt32LE(value, 4 * i);
  return bytes;
}

function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text, "utf8");
  return Buffer.concat([words(bytes.byteLength), bytes]);
}

/** Throws RangeError where bytes are missing. */
class Reader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get atEnd(): boolean {
    return this.at === this.bytes.byteLength;
  }

  take(length: number): Buffer {
    const end = this.at + length;
    if (end > this.bytes.byteLength) throw new RangeError("the shard ends too early");
    const part = this.bytes.subarray(this.at, end);
    this.at = end;
    return part;
  }

  word(): number {
    return this.take(4).readUInt32LE(0);
  }

  /** A number of things that follow. */
  count(most: number): number {
    const count = this.word();
    if (count > most) throw new RangeError("more than there may be");
    return count;
  }

  text(): string {
    return this.take(this.word()).toString("utf8");
  }
}
