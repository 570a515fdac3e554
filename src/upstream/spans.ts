/**
 * Where the parts of a JSON text stand, so that a part can be kept byte for byte. The text must be one that JSON.parse has
 * accepted: nothing is validated a second time. All loops are iterative, so depth costs nothing.
 */
export interface Span {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;

/** Values of the object that starts at or after `at`, by key. Of a repeated key the last value counts, as for JSON.parse. */
export function members(text: string, at: number): Map<string, Span> {
  const found = new Map<string, Span>();
  let here = skipSpace(text, skipSpace(text, at) + 1);
  while (text.charCodeAt(here) === QUOTE) {
    const keyEnd = endOfString(text, here);
    const key = JSON.parse(text.slice(here, keyEnd)) as string;
    here = skipSpace(text, keyEnd);
    if (text.charCodeAt(here) === COLON) here = skipSpace(text, here + 1);
    const end = endOfValue(text, here);
    found.set(key, { start: here, end });
    here = skipSpace(text, end);
    if (text.charCodeAt(here) === COMMA) here = skipSpace(text, here + 1);
  }
  return found;
}

/** Elements of the array that starts at or after `at`. */
export function elements(text: string, at: number): Span[] {
  const found: Span[] = [];
  let here = skipSpace(text, skipSpace(text, at) + 1);
  while (here < text.length && text[here] !== "]") {
    const end = endOfValue(text, here);
    found.push({ start: here, end });
    here = skipSpace(text, end);
    if (text.charCodeAt(here) === COMMA) here = skipSpace(text, here + 1);
  }
  return found;
}

function skipSpace(text: string, at: number): number {
  let here = at;
  for (;;) {
    const code = text.charCodeAt(here);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return here;
    here++;
  }
}

function endOfString(text: string, at: number): number {
  let here = at;
  for (;;) {
    here = text.indexOf('"', here + 1);
    if (here < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(here - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return here + 1;
  }
}

function endOfValue(text: string, at: number): number {
  const first = text[at];
  if (first === '"') return endOfString(text, at);
  return first === "{" || first === "[" ? endOfContainer(text, at) : endOfLiteral(text, at);
}

function endOfContainer(text: string, at: number): number {
  let depth = 0;
  let here = at;
  while (here < text.length) {
    const code = text.charCodeAt(here);
    if (code === QUOTE) {
      here = endOfString(text, here);
      continue;
    }
    if (code === 0x7b || code === 0x5b) depth++;
    else if ((code === 0x7d || code === 0x5d) && --depth === 0) return here + 1;
    here++;
  }
  return text.length;
}

function endOfLiteral(text: string, at: number): number {
  let here = at;
  while (here < text.length && !/[\s,\]}]/.test(text.charAt(here))) here++;
  return here;
}
