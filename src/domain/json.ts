import { LIMITS } from "./limits.js";

/**
 * Strict JSON (RFC 8259) with offsets. JSON.parse loses what the registry must keep: large numbers, repeated keys, `__proto__`,
 * the order of number-like keys, and where a value stands in its text. Offsets count UTF-16 code units.
 */
export type JsonNode = ObjectNode | ArrayNode | StringNode | NumberNode | BooleanNode | NullNode;

interface Span {
  readonly offset: number;
  /** Behind the last character. */
  readonly end: number;
}

export interface Member {
  readonly key: string;
  readonly value: JsonNode;
}

export interface ObjectNode extends Span {
  readonly kind: "object";
  /** In source order, repeated keys included. */
  readonly members: readonly Member[];
}

export interface ArrayNode extends Span {
  readonly kind: "array";
  readonly items: readonly JsonNode[];
}

export interface StringNode extends Span {
  readonly kind: "string";
  readonly value: string;
}

/** Its value is its source text. */
export interface NumberNode extends Span {
  readonly kind: "number";
}

export interface BooleanNode extends Span {
  readonly kind: "boolean";
  readonly value: boolean;
}

export interface NullNode extends Span {
  readonly kind: "null";
}

export type ParseResult =
  | { readonly ok: true; readonly root: JsonNode }
  | { readonly ok: false; readonly problem: string };

/** Parses one JSON value with nothing but white space around it. Containers nest at most `maxDepth` deep. */
export function parseJson(text: string, maxDepth: number = LIMITS.schemaDepth): ParseResult {
  try {
    return { ok: true, root: new Parser(text, maxDepth).document() };
  } catch (error) {
    if (error instanceof Problem) return { ok: false, problem: error.message };
    throw error;
  }
}

/** The value of a key; the first one where it is repeated. */
export function member(node: ObjectNode, key: string): JsonNode | undefined {
  return node.members.find((m) => m.key === key)?.value;
}

class Problem extends Error {}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** Recursive descent is safe here: it never goes deeper than the given depth. */
class Parser {
  private at = 0;

  constructor(
    private readonly text: string,
    private readonly maxDepth: number,
  ) {}

  document(): JsonNode {
    const root = this.value(1);
    this.space();
    if (this.at < this.text.length) this.fail("nothing may follow the JSON value");
    return root;
  }

  private value(depth: number): JsonNode {
    this.space();
    const offset = this.at;
    switch (this.text[offset]) {
      case "{":
        return this.object(offset, depth);
      case "[":
        return this.array(offset, depth);
      case '"':
        return { kind: "string", value: this.string(), offset, end: this.at };
      case "t":
        return this.word("true", { kind: "boolean", value: true, offset, end: offset + 4 });
      case "f":
        return this.word("false", { kind: "boolean", value: false, offset, end: offset + 5 });
      case "n":
        return this.word("null", { kind: "null", offset, end: offset + 4 });
      default:
        return this.number(offset);
    }
  }

  private object(offset: number, depth: number): ObjectNode {
    this.enter(depth);
    const members: Member[] = [];
    if (!this.take("}")) {
      do {
        this.space();
        if (this.text[this.at] !== '"') this.fail("a key in double quotes was expected");
        const key = this.string();
        if (!this.take(":")) this.fail("a colon was expected");
        members.push({ key, value: this.value(depth + 1) });
      } while (this.take(","));
      if (!this.take("}")) this.fail("a comma or a closing brace was expected");
    }
    return { kind: "object", members, offset, end: this.at };
  }

  private array(offset: number, depth: number): ArrayNode {
    this.enter(depth);
    const items: JsonNode[] = [];
    if (!this.take("]")) {
      do items.push(this.value(depth + 1));
      while (this.take(","));
      if (!this.take("]")) this.fail("a comma or a closing bracket was expected");
    }
    return { kind: "array", items, offset, end: this.at };
  }

  private enter(depth: number): void {
    if (depth > this.maxDepth) this.fail(`it nests deeper than ${this.maxDepth} levels`);
    this.at++;
  }

  /** Finds the closing quote; JSON.parse then judges and decodes the piece, into a string that does not hold the text. */
  private string(): string {
    const start = this.at;
    let i = start + 1;
    for (;;) {
      const code = this.text.charCodeAt(i);
      if (Number.isNaN(code)) this.fail("a string does not end");
      if (code === 0x22) break;
      i += code === 0x5c ? 2 : 1;
    }
    this.at = i + 1;
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      this.at = start;
      return this.fail("a string holds a raw control character or a wrong escape");
    }
  }

  private number(offset: number): NumberNode {
    NUMBER.lastIndex = offset;
    if (!NUMBER.test(this.text)) this.fail("a JSON value was expected");
    this.at = NUMBER.lastIndex;
    return { kind: "number", offset, end: this.at };
  }

  private word<N extends JsonNode>(word: string, node: N): N {
    if (!this.text.startsWith(word, this.at)) this.fail("a JSON value was expected");
    this.at += word.length;
    return node;
  }

  private take(char: string): boolean {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at++;
    return true;
  }

  private space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at++;
    }
  }

  private fail(problem: string): never {
    throw new Problem(`${problem}, at character ${this.at + 1}`);
  }
}

/** What a look at the bytes tells before anything parses them: linear, without recursion, right for any input. */
export interface JsonGlance {
  /** Deepest nesting of containers. */
  readonly depth: number;
  /** The string under the top-level key `name`; empty if there is none. */
  readonly name: string;
}

export function glanceJson(bytes: Uint8Array): JsonGlance {
  let depth = 0;
  let deepest = 0;
  let name: string | undefined;
  let key = "";
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === 0x22) {
      const end = stringEnd(bytes, i);
      if (depth === 1) {
        const isKey = byteAfterSpace(bytes, end) === 0x3a;
        if (isKey) key = end - i <= MAX_KEY_BYTES ? decodeString(bytes, i, end) : "";
        else if (key === "name") name ??= decodeString(bytes, i, end);
      }
      i = end - 1;
    } else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x7d || byte === 0x5d) depth--;
    else if (byte === 0x2c && depth === 1) key = "";
  }
  return { depth: deepest, name: name ?? "" };
}

/** `name` with every letter escaped has 26 bytes. */
const MAX_KEY_BYTES = 26;

function stringEnd(bytes: Uint8Array, start: number): number {
  for (let i = start + 1; i < bytes.length; i++) {
    if (bytes[i] === 0x5c) i++;
    else if (bytes[i] === 0x22) return i + 1;
  }
  return bytes.length;
}

function byteAfterSpace(bytes: Uint8Array, from: number): number | undefined {
  let i = from;
  while (bytes[i] === 0x20 || bytes[i] === 0x0a || bytes[i] === 0x0d || bytes[i] === 0x09) i++;
  return bytes[i];
}

function decodeString(bytes: Uint8Array, start: number, end: number): string {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8")) as string;
  } catch {
    return "";
  }
}
