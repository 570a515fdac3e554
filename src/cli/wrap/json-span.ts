/**
 * Where the parts of a JSON text stand, found without parsing or changing it. The text must be valid JSON already; these
 * functions only walk it, without recursion, so that no nesting is too deep for them.
 */

/** From the first byte of a value to behind its last. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** The members of the object that begins the text (or the span); the last one where a key is repeated, as JSON.parse has it. */
export function membersOf(json: Buffer, within: Span = whole(json)): Map<string, Span> {
  const members = new Map<string, Span>();
  let at = skipSpace(json, within.start);
  if (json[at] !== OPEN_BRACE) return members;
  at = skipSpace(json, at + 1);
  while (json[at] === QUOTE) {
    const keyEnd = endOfValue(json, at);
    const key: unknown = JSON.parse(json.toString("utf8", at, keyEnd));
    at = skipSpace(json, keyEnd);
    if (json[at] !== COLON) break;
    const start = skipSpace(json, at + 1);
    const end = endOfValue(json, start);
    members.set(String(key), { start, end });
    at = skipSpace(json, end);
    if (json[at] !== COMMA) break;
    at = skipSpace(json, at + 1);
  }
  return members;
}

/** The elements of the array that the span holds. */
export function elementsOf(json: Buffer, within: Span = whole(json)): Span[] {
  const elements: Span[] = [];
  let at = skipSpace(json, within.start);
  if (json[at] !== OPEN_BRACKET) return elements;
  at = skipSpace(json, at + 1);
  while (at < within.end && json[at] !== CLOSE_BRACKET) {
    const end = endOfValue(json, at);
    elements.push({ start: at, end });
    at = skipSpace(json, end);
    if (json[at] !== COMMA) break;
    at = skipSpace(json, at + 1);
  }
  return elements;
}

/** The span of a nested member, or undefined where the path ends early. */
export function memberAt(json: Buffer, path: readonly string[]): Span | undefined {
  let span: Span | undefined = whole(json);
  for (const key of path) span = span && membersOf(json, span).get(key);
  return span;
}

export function slice(json: Buffer, span: Span): Buffer {
  return json.subarray(span.start, span.end);
}

/** The text with one value replaced; every other byte stays. */
export function replaced(json: Buffer, span: Span, value: Buffer | string): Buffer {
  const middle = typeof value === "string" ? Buffer.from(value) : value;
  return Buffer.concat([json.subarray(0, span.start), middle, json.subarray(span.end)]);
}

function whole(json: Buffer): Span {
  return { start: 0, end: json.length };
}

function skipSpace(json: Buffer, from: number): number {
  let at = from;
  while (json[at] === 0x20 || json[at] === 0x0a || json[at] === 0x0d || json[at] === 0x09) at++;
  return at;
}

function endOfValue(json: Buffer, from: number): number {
  const first = json[from];
  if (first === QUOTE) return endOfString(json, from);
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return endOfContainer(json, from);
  let at = from;
  while (at < json.length && !isDelimiter(json[at])) at++;
  return at;
}

function endOfString(json: Buffer, from: number): number {
  for (let at = from + 1; at < json.length; at++) {
    if (json[at] === BACKSLASH) at++;
    else if (json[at] === QUOTE) return at + 1;
  }
  return json.length;
}

function endOfContainer(json: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfString(json, at) - 1;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at + 1;
  }
  return json.length;
}

function isDelimiter(byte: number | undefined): boolean {
  return (
    byte === COMMA ||
    byte === CLOSE_BRACE ||
    byte === CLOSE_BRACKET ||
    byte === 0x20 ||
    (byte !== undefined && byte >= 0x09 && byte <= 0x0d)
  );
}
