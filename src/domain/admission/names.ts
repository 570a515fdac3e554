import type { Violation } from "../fault.js";
import { INSTANCE_ID_PATTERN, SLUG_PATTERN, TAG_PATTERN, TOOL_NAME_PATTERN } from "../ids.js";
import { LIMITS } from "../limits.js";
import { describeCodePoint, quoted, textLength, textReasons } from "./text.js";

export type NameKind = "namespace" | "server_id" | "credential" | "instance_id" | "tool_name" | "tag";

interface NameRule {
  readonly what: string;
  readonly whole: RegExp;
  readonly min: number;
  readonly max: number;
  readonly first: RegExp;
  readonly rest: RegExp;
  readonly allowed: string;
}

const DOTS = /^\.+$/;

const SLUG = {
  whole: SLUG_PATTERN,
  min: 1,
  max: LIMITS.slugLength,
  first: /[a-z0-9]/,
  rest: /[a-z0-9._-]/,
  allowed: "a-z 0-9 first, then also . _ -",
};

/** The patterns of `ids.ts`, taken apart so that a refusal can say what is wrong and where. A test compares them. */
const RULES: Record<NameKind, NameRule> = {
  namespace: { what: "a namespace", ...SLUG },
  server_id: { what: "a server_id", ...SLUG },
  credential: { what: "the name of a credential", ...SLUG },
  instance_id: {
    what: "an instance_id",
    whole: INSTANCE_ID_PATTERN,
    min: 8,
    max: 64,
    first: /[A-Za-z0-9._-]/,
    rest: /[A-Za-z0-9._-]/,
    allowed: "A-Z a-z 0-9 . _ -",
  },
  tool_name: {
    what: "a tool name",
    whole: TOOL_NAME_PATTERN,
    min: 1,
    max: LIMITS.toolNameLength,
    first: /[A-Za-z0-9_.-]/,
    rest: /[A-Za-z0-9_.-]/,
    allowed: "A-Z a-z 0-9 _ . -",
  },
  tag: {
    what: "a tag",
    whole: TAG_PATTERN,
    min: 1,
    max: LIMITS.tagLength,
    first: /[a-z0-9]/,
    rest: /[a-z0-9._:/-]/,
    allowed: "a-z 0-9 first, then also . _ : / -",
  },
};

/** Why a name is refused, each reason a predicate such as `is empty …`. Empty if it is fine. */
export function nameReasons(kind: NameKind, value: string): string[] {
  const rule = RULES[kind];
  if (rule.whole.test(value) && !DOTS.test(value)) return [];
  if (value === "") return [`is empty: ${rule.what} has ${range(rule)} of ${rule.allowed}`];
  const reasons: string[] = [];
  const length = textLength(value);
  if (length < rule.min || length > rule.max)
    reasons.push(`is ${length} characters long: ${rule.what} has ${range(rule)}`);
  const points = [...value];
  const wrong = points.findIndex((char, i) => !(i === 0 ? rule.first : rule.rest).test(char));
  if (wrong >= 0) {
    const place = `${describeCharacter(points[wrong] ?? "")} at character ${wrong + 1}`;
    reasons.push(`${quoted(value)} holds ${place}: ${rule.what} may hold ${rule.allowed}`);
  } else if (kind === "tool_name" && DOTS.test(value)) {
    reasons.push(`${quoted(value)} holds nothing but dots: a tool name needs a letter, a digit, _ or -`);
  }
  return reasons;
}

export function nameViolations(kind: NameKind, field: string, value: string): Violation[] {
  return nameReasons(kind, value).map((description) => ({ field, description }));
}

/** A keyword is a word or short phrase on one line. */
export function keywordReasons(value: string): string[] {
  return oneLineReasons(value, LIMITS.keywordLength, "a keyword");
}

/** A request id is any visible text on one line. */
export function requestIdReasons(value: string): string[] {
  return oneLineReasons(value, LIMITS.requestIdLength, "a request id");
}

export function oneLineReasons(value: string, maxLength: number, what: string): string[] {
  if (value.trim() === "") return [`is empty: ${what} has 1 to ${maxLength} characters`];
  const reasons = textReasons(value, maxLength);
  const broken = [...value].findIndex((char) => char === "\n" || char === "\t");
  if (broken >= 0) reasons.push(`holds a line break or tab at character ${broken + 1}: ${what} stands on one line`);
  return reasons;
}

function range(rule: NameRule): string {
  return `${rule.min} to ${rule.max} characters`;
}

/** Characters drawn like an ASCII one, and below each the one it is drawn like; full-width forms are found by compatibility folding. */
const DRAWN = "аеорсухіјѕһԁԛԝАВЕКМНОРСТХαορνικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ‐‑‒–—−․";
const TO_ASCII = "aeopcyxijshdqwABEKMHOPCTXaopvikABEZHIKMNOPTYX------.";
const LOOK_ALIKES = new Map([...DRAWN].map((char, i) => [char, TO_ASCII.charAt(i)]));

const SPELLED = new Map([
  ["\0", "NUL"],
  ["\t", "tab"],
  ["\n", "newline"],
  ["\r", "carriage return"],
  [" ", "space"],
]);

/** `U+0430 (looks like a)`, `U+0020 (space)`, `U+002F (/)`. */
export function describeCharacter(char: string): string {
  const codePoint = char.codePointAt(0) ?? 0;
  const named = describeCodePoint(codePoint);
  const spelled = SPELLED.get(char);
  if (spelled) return `${named.replace(/ \(.*/, "")} (${spelled})`;
  if (codePoint > 0x20 && codePoint < 0x7f) return `${named} (${char})`;
  const folded = char.normalize("NFKC");
  const like = LOOK_ALIKES.get(char) ?? (/^[!-~]$/.test(folded) ? folded : undefined);
  return like ? `${named} (looks like ${like})` : named;
}
