/**
 * Where the parts of a JSON text of raw bytes stand: a child's line may hold bytes that are no UTF-8, and every one of them
 * goes on as it came. Read as Latin-1 each byte is one character, so the spans of the text are those of the bytes. Keys
 * that are not ASCII come out garbled; the ones of the protocol all are.
 */
import { elements, members, type Span } from "../../upstream/spans.js";

export type { Span };

/** The members of the object that the span (or the whole) holds; the last one where a key is repeated, as JSON.parse has it. */
export function membersOf(json: Buffer, within: Span = whole(json)): Map<string, Span> {
  const text = json.toString("latin1", within.start, within.end);
  if (!/^\s*\{/.test(text)) return new Map();
  const found = [...members(text, 0)].map(([key, span]) => [key, moved(span, within.start)] as const);
  return new Map(found);
}

/** The elements of the array that the span holds. */
export function elementsOf(json: Buffer, within: Span = whole(json)): Span[] {
  const text = json.toString("latin1", within.start, within.end);
  return /^\s*\[/.test(text) ? elements(text, 0).map((span) => moved(span, within.start)) : [];
}

function moved(span: Span, by: number): Span {
  return { start: span.start + by, end: span.end + by };
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
