import { cut, tokensOf } from "./text.js";

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
}

export interface IntentText {
  readonly text: string;
  /** Earlier user turns, oldest first. */
  readonly history?: readonly string[];
}

/** Code units of an intent that are read, and of all earlier turns together (the latest first). More is not an intent. */
const INTENT_LENGTH = 8_192;
const HISTORY_LENGTH = 8_192;
/** Terms kept, of both together. */
const TERMS = 512;
/** Names looked up. */
const NAMES = 128;
/** What a word of an earlier turn counts. */
const EARLIER = 1;
/** What a word counts when it is said again. */
const AGAIN = 0.5;
const AGAIN_MOST = 2;

export function intentOf({ text, history = [] }: IntentText): Intent {
  const weights = new Map<string, { word: string; weight: number }>();
  const own = cut(text, INTENT_LENGTH);
  addTerms(own, 1, weights);
  let left = HISTORY_LENGTH;
  for (const turn of [...history].reverse()) {
    const part = cut(turn, left);
    left -= part.length;
    addTerms(part, EARLIER, weights);
    if (left <= 0) break;
  }
  const terms = [...weights].slice(0, TERMS).map(([term, { word, weight }]) => ({ term, word, weight }));
  return { terms, names: namesIn(own) };
}

function addTerms(text: string, weight: number, into: Map<string, { word: string; weight: number }>): void {
  for (const { term, word } of tokensOf(text)) {
    const known = into.get(term);
    if (!known) into.set(term, { word, weight });
    else known.weight = Math.min(known.weight + weight * AGAIN, AGAIN_MOST);
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
    const name = found.replace(/[.\-/]+$/, "");
    if (looksLikeName(name)) names.add(name);
    if (names.size >= NAMES) break;
  }
  return [...names].slice(0, NAMES);
}

/** Two hyphenated words in lower case are English more often than a name (follow-up), three are not. */
const IDENTIFIER = /[_./]|[a-z0-9][A-Z]|[A-Za-z][0-9]|-.*-|[A-Z]{2}[a-z]/;

function looksLikeName(word: string): boolean {
  return word.length <= 192 && IDENTIFIER.test(word);
}

/** One key for a name in every case style: file_operation, FileOperation, file-operation, file.operation. */
export function nameKey(name: string): string {
  return name.replace(/[\s_.\-]+/g, "").toLowerCase();
}
