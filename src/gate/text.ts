import { singular, stem } from "./stem.js";
import { isStopPair, isStopSign, isStopWord } from "./stop-words.js";

/** One thing to match, and the word as it stood in the text (lower case), for showing. */
export interface Token {
  readonly term: string;
  readonly word: string;
  /** A word or a piece of one, a word of several pieces as a whole, or signs of a script without spaces. */
  readonly kind: "word" | "whole" | "signs";
}

/**
 * The terms of a text, in reading order with repeats: words of identifiers in every case style, stemmed; signs and pairs
 * of signs of scripts without spaces; stop words left out. Linear in the text; the caller bounds it (`cut`).
 */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  const ascii = ASCII.test(text);
  // Decompose nothing that composes: half-width letters, ligatures and circled digits become the plain ones.
  const plain = ascii ? text : text.normalize("NFKC");
  for (const [run] of plain.matchAll(ascii ? ASCII_RUN : RUN)) addRun(run, ascii, tokens);
  return tokens;
}

/**
 * Words that stand side by side, as one term: "social enterprise" is more than both apart, and "dice roller" is found in
 * a name written diceroller.
 */
export function pairsOf(tokens: readonly Token[]): Token[] {
  const pairs: Token[] = [];
  let before: Token | undefined;
  for (const token of tokens) {
    if (token.kind === "whole") continue;
    if (before && token.kind === "word" && before.term !== token.term) {
      pairs.push({ term: stem(singular(before.word) + token.word), word: `${before.word} ${token.word}`, kind: "whole" });
    }
    before = token.kind === "word" ? token : undefined;
  }
  return pairs;
}

/** At most `length` code units, never ending inside a surrogate pair. */
export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

const ASCII = /^[\x00-\x7f]*$/;
/** The tails of shortened words ('s, n't) belong to their word, so that no term "s" or "t" arises. */
const ASCII_RUN = /[A-Za-z0-9]+(?:'(?:s|t|re|ve|ll|d|m)\b)?/g;
const RUN = /[\p{L}\p{M}\p{N}]+(?:['’](?:s|t|re|ve|ll|d|m)(?![\p{L}\p{N}]))?/gu;
const TAIL = /['’][a-z]+$/;

/** Scripts that are written without spaces between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々]+/u;
const SCRIPTS = new RegExp(`(${UNSPACED.source})`, "u");

function addRun(run: string, ascii: boolean, tokens: Token[]): void {
  const word = run.replace(TAIL, "");
  if (ascii) addIdentifier(word, tokens);
  else
    for (const [i, part] of word.split(SCRIPTS).entries()) {
      if (part === "") continue;
      if (i % 2 === 1) addSigns(part, tokens);
      else addIdentifier(unaccented(part), tokens);
    }
}

/** Where the case or the kind changes inside a word: camelCase, HTTPServer, base64, APIs. */
const PIECE = /[A-Z]{2,}s(?![A-Za-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g;
const PIECE_ANY = /\p{Lu}{2,}s(?!\p{L})|\p{Lu}+(?!\p{Ll})|\p{Lu}?(?:(?!\p{Lu}|\p{N})[\p{L}\p{M}])+|\p{N}+|\p{Lu}/gu;
const PLAIN = /^(?:[A-Z]?[a-z]+|[A-Z]+|[0-9]+)$/;

/** A word of many pieces is found as a whole, too: youtube and YouTube, base64. */
function addIdentifier(word: string, tokens: Token[]): void {
  if (PLAIN.test(word)) return addWord(word.toLowerCase(), tokens);
  const pieces = word.match(ASCII.test(word) ? PIECE : PIECE_ANY) ?? [];
  if (pieces.length !== 1) addWord(word.toLowerCase(), tokens, "whole");
  for (const piece of pieces) addWord(piece.toLowerCase(), tokens);
}

/** Longer ones are no words: hashes, keys, encoded bytes. */
const LONGEST_WORD = 64;

function addWord(word: string, tokens: Token[], kind: "word" | "whole" = "word"): void {
  if (word.length > LONGEST_WORD || isStopWord(word)) return;
  tokens.push({ term: stem(word), word, kind });
}

function addSigns(run: string, tokens: Token[]): void {
  let before = "";
  for (const sign of run) {
    if (before !== "" && !isStopPair(before, sign)) tokens.push({ term: before + sign, word: before + sign, kind: "signs" });
    if (!isStopSign(sign)) tokens.push({ term: sign, word: sign, kind: "signs" });
    before = sign;
  }
}

const MARKS = /\p{M}/gu;
/** Letters that have no decomposition, and what a keyboard without them writes. */
const FOLDED: Readonly<Record<string, string>> = {
  ß: "ss", æ: "ae", Æ: "Ae", œ: "oe", Œ: "Oe", ø: "o", Ø: "O", ł: "l", Ł: "L", đ: "d", Đ: "D", ð: "d", þ: "th", ı: "i", ё: "е", Ё: "Е",
};
const FOLDABLE = /[ßæÆœŒøØłŁđĐðþıёЁ]/g;
const MARKED = /[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]/;

/** Latin and Greek without accents. In other scripts a mark makes another letter (й, が), and stays. */
function unaccented(word: string): string {
  const folded = word.replace(FOLDABLE, (letter) => FOLDED[letter] ?? letter);
  return MARKED.test(folded) ? folded.normalize("NFD").replace(MARKS, "").normalize("NFC") : folded;
}
