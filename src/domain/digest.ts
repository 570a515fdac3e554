import { createHash } from "node:crypto";
import { compareText } from "./ids.js";
import type { JsonNode, ObjectNode } from "./json.js";
import { parseJson } from "./json.js";
import { LIMITS } from "./limits.js";

/** Deeper than any admitted definition, shallow enough to walk by recursion. */
const CANONICAL_DEPTH = 2 * LIMITS.schemaDepth;

/** `sha256:` and 64 hex digits. */
export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** The digest that keys a definition: over its canonical form, so that spelling and key order do not matter. */
export function definitionDigest(text: string): string {
  return digestOf(Buffer.from(canonicalise(text)));
}

/**
 * RFC 8785 canonical form of a JSON text, except that a number which does not survive a double keeps its source text:
 * otherwise 9007199254740993 and 9007199254740992 would share a digest. Throws an Error that says why for text that is
 * not JSON, repeats a key or nests deeper than 128 levels; admission refuses all of these before.
 */
export function canonicalise(text: string): string {
  const parsed = parseJson(text, CANONICAL_DEPTH);
  if (!parsed.ok) throw new Error(`the text has no canonical form: ${parsed.problem}`);
  return canonicalOf(parsed.root, text);
}

/** As `canonicalise`, for a text that is parsed already. */
export function canonicalOf(root: JsonNode, text: string): string {
  const out: string[] = [];
  write(root, text, out);
  return out.join("");
}

function write(node: JsonNode, text: string, out: string[]): void {
  switch (node.kind) {
    case "object":
      return writeObject(node, text, out);
    case "array":
      out.push("[");
      node.items.forEach((item, i) => {
        if (i > 0) out.push(",");
        write(item, text, out);
      });
      out.push("]");
      return;
    case "string":
      // JSON.stringify escapes as RFC 8785 asks, and lone surrogates as an escape such as \ud83d instead of throwing.
      out.push(JSON.stringify(node.value));
      return;
    case "number":
      out.push(canonicalNumber(text.slice(node.offset, node.end)));
      return;
    case "boolean":
      out.push(node.value ? "true" : "false");
      return;
    case "null":
      out.push("null");
  }
}

function writeObject(node: ObjectNode, text: string, out: string[]): void {
  const members = [...node.members].sort((a, b) => compareText(a.key, b.key));
  out.push("{");
  members.forEach((m, i) => {
    if (i > 0) {
      if (members[i - 1]?.key === m.key) throw new Error(`the text has no canonical form: it repeats the key ${m.key}`);
      out.push(",");
    }
    out.push(JSON.stringify(m.key), ":");
    write(m.value, text, out);
  });
  out.push("}");
}

/** The ES form of a JSON number, or its source text where a double cannot hold exactly what was written. */
function canonicalNumber(source: string): string {
  const value = Number(source);
  const shortest = String(value);
  if (shortest === source) return source;
  return Number.isFinite(value) && decimalOf(source) === decimalOf(shortest) ? shortest : source;
}

/** One text per decimal value: sign, digits without outer zeros, and the exponent of the last digit. Linear in its input. */
function decimalOf(number: string): string {
  const negative = number.startsWith("-");
  const [mantissa = "", exponent = "0"] = number.slice(negative ? 1 : 0).split(/[eE]/);
  const [whole = "", fraction = ""] = mantissa.split(".");
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === "0") start++;
  if (start === digits.length) return "0";
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const scale = Number(exponent) - fraction.length + (digits.length - end);
  return `${negative ? "-" : ""}${digits.slice(start, end)}e${scale}`;
}

/** One tool of a registrant's set: its encoded stub, and the digest of its definition where one was sent. */
export interface SetMember {
  readonly name: string;
  readonly stub: Uint8Array;
  /** Empty if the registrant gave neither definition nor digest. */
  readonly definitionDigest: string;
}

/**
 * Digest of the set that a registrant sent. The order in which tools arrive does not matter. Every part is written
 * behind its length, so that no two sets share one spelling.
 */
export function setDigest(tools: readonly SetMember[]): string {
  const hash = createHash("sha256").update("toolcrib.set.v1\n");
  const part = (bytes: Uint8Array): void => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.byteLength);
    hash.update(length).update(bytes);
  };
  const ordered = [...tools].sort((a, b) => compareText(a.name, b.name) || Buffer.compare(a.stub, b.stub));
  for (const tool of ordered) {
    part(Buffer.from(tool.name));
    part(tool.stub);
    part(Buffer.from(tool.definitionDigest));
  }
  return `sha256:${hash.digest("hex")}`;
}
