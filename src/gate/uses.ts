import { createHmac } from "node:crypto";
import type { Intent, IntentTerm } from "./intent.js";

/** A tool was used for an intent, and it was the right one. What was said is kept as keyed hashes of its terms alone. */
export interface Use {
  /** Keyed hashes, ascending, without repeats. */
  readonly terms: Uint32Array;
  /** What each term counts, in hundredths; with OWN where it stood in the intent itself and not in an earlier turn. */
  readonly marks: Uint16Array;
  /** Keyed hash of who reported it. */
  readonly caller: number;
  /** When, in whole seconds since 1970. */
  readonly atS: number;
}

export const OWN = 0x8000;

/** Bounds of what is remembered. */
export const MEMORY_LIMITS = {
  /** Terms of one use: a longer intent is a task, and its first words say which. */
  terms: 96,
  /** Uses of one tool: the newest stay. */
  usesPerTool: 128,
  /** Uses of one tool that one caller may hold. */
  usesPerToolAndCaller: 64,
  /** Uses in all. */
  uses: 50_000,
  /** The share of all uses that one caller may hold once others report, too. */
  callerShare: 0.5,
  /** A use counts half after this, and is forgotten after the retention. */
  halfLifeS: 30 * 86_400,
  retentionS: 180 * 86_400,
} as const;

/** Hashes words with a key, so that what is stored cannot be read back without it. */
export class Hasher {
  private readonly known = new Map<string, number>();

  constructor(private readonly key: string) {}

  hash(word: string): number {
    const known = this.known.get(word);
    if (known !== undefined) return known;
    const hash = createHmac("sha256", this.key).update(word).digest().readUInt32LE(0);
    if (this.known.size >= HASHES_KEPT) this.known.clear();
    this.known.set(word, hash);
    return hash;
  }
}

/** Making a hash costs twenty times a look-up, and every intent needs some dozen. */
const HASHES_KEPT = 50_000;

export function useOf(intent: Intent, caller: string, atMs: number, hasher: Hasher): Use {
  const marked = new Map(rememberedTerms(intent).map((term) => [hasher.hash(term.term), markOf(term)]));
  const terms = Uint32Array.from(marked.keys()).sort();
  const marks = Uint16Array.from(terms, (term) => marked.get(term) as number);
  return { terms, marks, caller: hasher.hash(`caller ${caller}`), atS: Math.floor(atMs / 1_000) };
}

export function markOf({ weight, own }: IntentTerm): number {
  return Math.round(weight * 100) + (own ? OWN : 0);
}

/** Pairs of words are left out: they are so rare that two intents that share all words but one would look unlike. */
export function rememberedTerms(intent: Intent): readonly IntentTerm[] {
  return intent.terms.filter(({ pair }) => !pair).slice(0, MEMORY_LIMITS.terms);
}

/** The same caller said the same: only the last time counts. */
export function sameUse(a: Use, b: Use): boolean {
  return a.caller === b.caller && a.terms.length === b.terms.length && a.terms.every((term, i) => term === b.terms[i]);
}

/**
 * The uses of one tool from several sources as one list, within the limits, the newest first. Equal sets give equal lists,
 * in whatever order they came, so replicas that merge what they know agree.
 */
export function mergeUses(lists: readonly (readonly Use[])[], nowS: number, retentionS: number = MEMORY_LIMITS.retentionS): Use[] {
  const given = lists.flat();
  // What one use outlives another by does not depend on which of them came first.
  const newestS = given.reduce((newest, { atS }) => Math.max(newest, atS), nowS);
  const all = given.filter((use) => use.terms.length > 0 && newestS - use.atS <= retentionS);
  const kept: Use[] = [];
  const perCaller = new Map<number, number>();
  const seen = new Set<string>();
  for (const use of all.sort(newer)) {
    const identity = `${use.caller} ${use.terms.join(" ")}`;
    const held = perCaller.get(use.caller) ?? 0;
    if (seen.has(identity) || held >= MEMORY_LIMITS.usesPerToolAndCaller) continue;
    seen.add(identity);
    perCaller.set(use.caller, held + 1);
    if (kept.push(use) >= MEMORY_LIMITS.usesPerTool) break;
  }
  return kept;
}

/** A total order of different uses. */
export function newer(a: Use, b: Use): number {
  return (
    b.atS - a.atS ||
    a.caller - b.caller ||
    a.terms.length - b.terms.length ||
    firstDifference(a.terms, b.terms) ||
    firstDifference(a.marks, b.marks)
  );
}

function firstDifference(a: Uint32Array | Uint16Array, b: Uint32Array | Uint16Array): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  return 0;
}

const VERSION = 1;
const HEAD_BYTES = 8;
const USE_BYTES = 12;
const TERM_BYTES = 6;

/** Uses as bytes, little-endian: version, number; then for each caller, time, number of terms, and term and mark of each. */
export function encodeUses(uses: readonly Use[]): Uint8Array {
  const size = uses.reduce((sum, use) => sum + USE_BYTES + TERM_BYTES * use.terms.length, HEAD_BYTES);
  const view = new DataView(new ArrayBuffer(size));
  view.setUint32(0, VERSION, true);
  view.setUint32(4, uses.length, true);
  let at = HEAD_BYTES;
  for (const { caller, atS, terms, marks } of uses) {
    for (const [i, word] of [caller, atS, terms.length].entries()) view.setUint32(at + 4 * i, word, true);
    at += USE_BYTES;
    for (let i = 0; i < terms.length; i++, at += TERM_BYTES) {
      view.setUint32(at, terms[i] as number, true);
      view.setUint16(at + 4, marks[i] as number, true);
    }
  }
  return new Uint8Array(view.buffer);
}

/** Undefined for bytes that are not what `encodeUses` makes. */
export function decodeUses(bytes: Uint8Array): Use[] | undefined {
  if (bytes.byteLength < HEAD_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0, true) !== VERSION) return undefined;
  const uses: Use[] = [];
  let at = HEAD_BYTES;
  for (let left = view.getUint32(4, true); left > 0; left--) {
    if (at + USE_BYTES > bytes.byteLength) return undefined;
    const length = view.getUint32(at + 8, true);
    const begin = at + USE_BYTES;
    const end = begin + TERM_BYTES * length;
    if (length === 0 || length > MEMORY_LIMITS.terms || end > bytes.byteLength) return undefined;
    const terms = Uint32Array.from({ length }, (_, i) => view.getUint32(begin + TERM_BYTES * i, true));
    const marks = Uint16Array.from({ length }, (_, i) => view.getUint16(begin + TERM_BYTES * i + 4, true));
    if (terms.some((term, i) => i > 0 && term <= (terms[i - 1] as number))) return undefined;
    uses.push({ caller: view.getUint32(at, true), atS: view.getUint32(at + 4, true), terms, marks });
    at = end;
  }
  return at === bytes.byteLength ? uses : undefined;
}
