import type { Violation } from "../fault.js";

/** One code point that readers would not see, or that would reorder what they see. */
export interface HiddenCharacter {
  readonly codePoint: number;
  /** Counted in code points from 1. */
  readonly position: number;
}

type Range = readonly [first: number, last: number, what: string];

const HIDDEN: readonly Range[] = [
  [0x00, 0x08, "control"],
  [0x0b, 0x1f, "control"],
  [0x7f, 0x9f, "control"],
  [0xad, 0xad, "soft hyphen"],
  [0x034f, 0x034f, "invisible joiner"],
  [0x061c, 0x061c, "bidi control"],
  [0x115f, 0x1160, "blank filler"],
  [0x17b4, 0x17b5, "invisible vowel"],
  [0x180e, 0x180e, "zero-width"],
  [0x200b, 0x200d, "zero-width"],
  [0x200e, 0x200f, "bidi control"],
  [0x2028, 0x2029, "line separator"],
  [0x202a, 0x202e, "bidi control"],
  [0x2060, 0x2065, "zero-width"],
  [0x2066, 0x2069, "bidi control"],
  [0x206a, 0x206f, "format control"],
  [0x3164, 0x3164, "blank filler"],
  [0xd800, 0xdfff, "lone surrogate"],
  [0xfeff, 0xfeff, "zero-width"],
  [0xffa0, 0xffa0, "blank filler"],
  [0xfff0, 0xfffb, "format control"],
  [0x1d173, 0x1d17a, "format control"],
  [0xe0000, 0xe007f, "tag character"],
  [0xe0080, 0xe00ff, "invisible"],
  [0xe01f0, 0xe0fff, "invisible"],
];

function hiddenKind(codePoint: number): string | undefined {
  if (codePoint >= 0x20 && codePoint < 0x7f) return undefined;
  return HIDDEN.find(([first, last]) => codePoint >= first && codePoint <= last)?.[2];
}

function isVariationSelector(codePoint: number): boolean {
  return (
    (codePoint >= 0xfe00 && codePoint <= 0xfe0f) ||
    (codePoint >= 0xe0100 && codePoint <= 0xe01ef) ||
    (codePoint >= 0x180b && codePoint <= 0x180d) ||
    codePoint === 0x180f
  );
}

const PICTOGRAPH = /^\p{Extended_Pictographic}$/u;
/** What may stand before a joiner inside an emoji: a pictograph, its skin tone, or its selector. */
const EMOJI_END = /^[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f]$/u;

/**
 * Whether a character is hidden between its neighbours. Joiners belong inside emoji; a variation selector belongs behind
 * one visible character, never behind another selector, or a run of them could carry a message.
 */
function isHidden(before: string | undefined, char: string, after: string | undefined): boolean {
  const codePoint = char.codePointAt(0) ?? 0;
  if (codePoint === 0x200c || codePoint === 0x200d) return !(EMOJI_END.test(before ?? "") && PICTOGRAPH.test(after ?? ""));
  if (isVariationSelector(codePoint)) {
    const base = before?.codePointAt(0);
    return base === undefined || base <= 0x20 || isVariationSelector(base) || hiddenKind(base) !== undefined;
  }
  return hiddenKind(codePoint) !== undefined;
}

const PRINTABLE_ASCII = /^[\x20-\x7e\n\t]*$/;

/** Finds the first hidden character; undefined if there is none. */
export function findHidden(value: string): HiddenCharacter | undefined {
  if (PRINTABLE_ASCII.test(value)) return undefined;
  const points = [...value];
  const i = points.findIndex((char, at) => isHidden(points[at - 1], char, points[at + 1]));
  return i < 0 ? undefined : { codePoint: points[i]?.codePointAt(0) ?? 0, position: i + 1 };
}

/** Text without its hidden characters; line separators become newlines. For labels derived from what a server sent. */
export function cleanText(value: string): string {
  const lines = value.replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n");
  if (PRINTABLE_ASCII.test(lines)) return lines;
  const points = [...lines];
  const kept: string[] = [];
  points.forEach((char, i) => {
    if (!isHidden(kept.at(-1), char, points[i + 1])) kept.push(char);
  });
  return kept.join("");
}

/** Length in Unicode code points. */
export function textLength(value: string): number {
  let length = 0;
  for (const _ of value) length++;
  return length;
}

/** Why a declared text is refused: too long, or hidden characters in it. Empty if it is fine. */
export function textReasons(value: string, maxLength: number): string[] {
  const reasons: string[] = [];
  const length = textLength(value);
  if (length > maxLength) reasons.push(`is ${length} characters long, the limit is ${maxLength}: shorten it`);
  const hidden = findHidden(value);
  if (hidden) {
    const where = `at character ${hidden.position}`;
    reasons.push(`holds the hidden character ${describeCodePoint(hidden.codePoint)} ${where}: remove it`);
  }
  return reasons;
}

/** One violation for a declared text, with every reason; undefined if it is fine. */
export function textViolation(field: string, value: string, maxLength: number): Violation | undefined {
  const reasons = textReasons(value, maxLength);
  return reasons.length > 0 ? { field, description: reasons.join("; ") } : undefined;
}

/** `U+202E (bidi control)`. */
export function describeCodePoint(codePoint: number): string {
  const code = `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
  const what = isVariationSelector(codePoint) ? "variation selector" : hiddenKind(codePoint);
  return what ? `${code} (${what})` : code;
}

/** A value fit for a message: in quotes, cut, and with hidden characters written as `\u{202E}`. */
export function quoted(value: string, maxLength = 64): string {
  return `"${visible(value, maxLength)}"`;
}

/** As `quoted`, without the quotes. */
export function visible(value: string, maxLength = 128): string {
  let out = "";
  let length = 0;
  for (const char of value) {
    if (++length > maxLength) return `${out}…`;
    const codePoint = char.codePointAt(0) ?? 0;
    const plain = codePoint !== 0x0a && codePoint !== 0x09 && hiddenKind(codePoint) === undefined;
    out += plain && !isVariationSelector(codePoint) ? char : `\\u{${codePoint.toString(16).toUpperCase()}}`;
  }
  return out;
}
