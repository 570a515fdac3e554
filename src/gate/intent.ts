import { isFaint } from "./stop-words.js";
import { cut, pairsOf, tokensOf } from "./text.js";

/** What an agent is looking for, ready to be searched for. */
export interface Intent {
  /** The terms in the order of the text, without repeats. */
  readonly terms: readonly IntentTerm[];
  /** Words of the text that may be names of tools or tool ids, as written. */
  readonly names: readonly string[];
}

export interface IntentTerm {
  readonly term: string;
  /** As it stood in the text, for showing. */
  readonly word: string;
  /** How much it counts; 1 for a word said once in the intent itself. */
  readonly weight: number;
  /** Two words side by side, beside the words themselves. */
  readonly pair: boolean;
  /** It stood in the intent itself, not only in an earlier turn. */
  readonly own: boolean;
}

export interface IntentText {
  readonly text: string;
  /** Earlier user turns, oldest first. */
  readonly history?: readonly string[];
  /** tool_ids that count as named, whatever the text says. */
  readonly named?: readonly string[];
}

/** Code units of an intent that are read, and of all earlier turns together (the latest first). More is not an intent. */
const INTENT_LENGTH = 8_192;
const HISTORY_LENGTH = 8_192;
/** Terms kept, of both together. */
const TERMS = 512;
/** Names looked up. */
const NAMES = 128;
/** What a word of an earlier turn counts. */
const EARLIER = 0.7;
/** What a word counts that is a value or a courtesy more often than a matter. */
const FAINT = 0.35;
/** What two words side by side count as one. */
const PAIR = 0.5;
/** What a word counts when it is said again, and at most, as shares of what it counts once. */
const AGAIN = 0.5;
const AGAIN_MOST = 2;

export function intentOf({ text, history = [], named = [] }: IntentText): Intent {
  const terms = new Map<string, Counted>();
  const own = cut(text, INTENT_LENGTH);
  addTerms(own, 1, terms);
  let left = HISTORY_LENGTH;
  for (const turn of [...history].reverse()) {
    if (left <= 0) break;
    const part = cut(turn, left);
    left -= part.length;
    addTerms(part, EARLIER, terms);
  }
  const kept = [...terms].slice(0, TERMS).map(([term, { once: _, ...counted }]) => ({ term, ...counted }));
  return { terms: kept, names: [...new Set([...named, ...namesIn(own)])].slice(0, NAMES) };
}

interface Counted {
  readonly word: string;
  /** What it counts once. */
  readonly once: number;
  weight: number;
  readonly pair: boolean;
  readonly own: boolean;
}

function addTerms(text: string, weight: number, into: Map<string, Counted>): void {
  const tokens = tokensOf(text);
  const own = weight === 1;
  for (const { term, word } of tokens) {
    const once = isFaint(word) ? weight * FAINT : weight;
    const known = into.get(term);
    if (!known) into.set(term, { word, once, weight: once, pair: false, own });
    else known.weight = Math.min(known.weight + once * AGAIN, known.once * AGAIN_MOST);
  }
  for (const { term, word } of pairsOf(tokens)) {
    if (!into.has(term)) into.set(term, { word, once: weight * PAIR, weight: weight * PAIR, pair: true, own });
  }
}

/** What may stand in a tool id or a tool name, with what may close a sentence behind it. */
const NAME = /[A-Za-z0-9][A-Za-z0-9_.\-/]*/g;
const QUOTED = /[`"'“‘「『]([A-Za-z0-9][A-Za-z0-9_.-]{0,127})[`"'”’」』]/g;

/**
 * A word is a name when it looks like one (file_operation, fileOperation, server/tool), when it is quoted, or when it is
 * all that was said. An ordinary word that happens to be a tool's name (search) is not.
 */
function namesIn(text: string): string[] {
  const names = new Set<string>();
  const whole = text.trim();
  if (whole.length <= 256 && whole !== "") names.add(whole);
  for (const [, name] of text.matchAll(QUOTED)) names.add(name as string);
  for (const [found] of text.matchAll(NAME)) {
    const name = found.replace(/[./-]+$/, "");
    if (looksLikeName(name)) names.add(name);
    if (names.size >= NAMES) break;
  }
  return [...names].slice(0, NAMES);
}

/** Two hyphenated words in lower case are English more often than a name (follow-up), three are not. */
const IDENTIFIER = /[_./]|[a-z0-9][A-Z]|[A-Za-z][0-9]|-.*-|[A-Z]{2}[a-z]/;

/** A number or a date names no tool. */
function looksLikeName(word: string): boolean {
  return word.length <= 192 && IDENTIFIER.test(word) && /\p{L}/u.test(word);
}

/** One key for a name in every case style: file_operation, FileOperation, file-operation, file.operation. */
export function nameKey(name: string): string {
  return name.replace(/[\s_.-]+/g, "").toLowerCase();
}
