import { type JsonNode, member, type ObjectNode, parseJson } from "./json.js";
import { firstSentenceOf } from "./label.js";

/** Longest description kept, in characters: a sentence that says what to put there. */
const TOOL_TEXT = 200;
const PROPERTY_TEXT = 120;
/** Longest list of values kept, in characters of its source: longer ones cost more than they help to choose. */
const VALUES_TEXT = 400;
/** Nesting of schemas kept: deeper parts keep their type alone, and a list that of what it holds. */
const DEPTH = 3;

/** Keywords kept as they stand: they say what a value must be. */
const KEPT = ["type", "enum", "const", "format", "required"] as const;
const ITEM_KEPT = ["type", "enum"] as const;
const COMBINED = ["anyOf", "oneOf", "allOf"] as const;

/**
 * A definition cut down to what a first call needs: name, first sentences, and of the input schema the required properties
 * with their types. The names of the others stand in `x-optional`; whoever wants them asks for the whole. Local references
 * are put in place. The result is valid JSON and a valid JSON Schema, and equal definitions give equal bytes.
 */
export function compactOf(bytes: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(bytes);
  const parsed = parseJson(text);
  if (!parsed.ok || parsed.root.kind !== "object") throw new Error("these bytes are not an admitted definition");
  const tool = parsed.root;
  const schema = member(tool, "inputSchema");
  const parts = [`"name":${JSON.stringify(stringOf(tool, "name"))}`];
  const description = firstSentenceOf(stringOf(tool, "description"), TOOL_TEXT);
  if (description !== "") parts.push(`"description":${JSON.stringify(description)}`);
  if (schema?.kind === "object") parts.push(`"inputSchema":${new Compactor(schema, text).schema(schema, 0)}`);
  return Buffer.from(`{${parts.join(",")}}`);
}

class Compactor {
  constructor(
    private readonly root: ObjectNode,
    private readonly text: string,
  ) {}

  schema(given: ObjectNode, depth: number, described = false): string {
    const node = this.resolved(given);
    const parts: string[] = [];
    if (described) this.describe(given, node, parts);
    for (const key of KEPT) {
      const value = member(node, key);
      if (value && (key === "required" ? depth < DEPTH : value.end - value.offset <= VALUES_TEXT)) {
        parts.push(`"${key}":${this.source(value)}`);
      }
    }
    if (depth >= DEPTH) return `{${[...parts, ...this.itemTypes(node)].join(",")}}`;
    this.properties(node, depth, parts);
    const items = member(node, "items");
    if (items?.kind === "object") parts.push(`"items":${this.schema(items, depth + 1)}`);
    for (const key of COMBINED) this.combined(node, key, depth, parts);
    return `{${parts.join(",")}}`;
  }

  /** Without it a call would have to guess what belongs in the list. */
  private itemTypes(node: ObjectNode): string[] {
    const items = member(node, "items");
    if (items?.kind !== "object") return [];
    const of = this.resolved(items);
    const kept = ITEM_KEPT.flatMap((key) => {
      const value = member(of, key);
      return value && value.end - value.offset <= VALUES_TEXT ? [`"${key}":${this.source(value)}`] : [];
    });
    return kept.length > 0 ? [`"items":{${kept.join(",")}}`] : [];
  }

  private describe(given: ObjectNode, node: ObjectNode, parts: string[]): void {
    const own = stringOf(given, "description") || stringOf(node, "description");
    const sentence = firstSentenceOf(own, PROPERTY_TEXT);
    if (sentence !== "") parts.push(`"description":${JSON.stringify(sentence)}`);
  }

  private properties(node: ObjectNode, depth: number, parts: string[]): void {
    const properties = member(node, "properties");
    if (properties?.kind !== "object" || properties.members.length === 0) return;
    const required = new Set(stringsOf(member(node, "required")));
    const kept: string[] = [];
    const optional: string[] = [];
    for (const { key, value } of properties.members) {
      if (!required.has(key)) optional.push(JSON.stringify(key));
      else
        kept.push(
          `${JSON.stringify(key)}:${value.kind === "object" ? this.schema(value, depth + 1, true) : this.source(value)}`,
        );
    }
    if (kept.length > 0) parts.push(`"properties":{${kept.join(",")}}`);
    if (optional.length > 0) parts.push(`"x-optional":[${optional.join(",")}]`);
  }

  private combined(node: ObjectNode, key: string, depth: number, parts: string[]): void {
    const list = member(node, key);
    if (list?.kind !== "array") return;
    const schemas = list.items.map((item) =>
      item.kind === "object" ? this.schema(item, depth + 1) : this.source(item),
    );
    parts.push(`"${key}":[${schemas.join(",")}]`);
  }

  /** Follows a local `$ref`; a reference that leads nowhere, or around in a circle, is left as it stands. */
  private resolved(node: ObjectNode): ObjectNode {
    let at = node;
    const seen = new Set<ObjectNode>();
    for (;;) {
      const ref = member(at, "$ref");
      if (ref?.kind !== "string" || seen.has(at)) return at;
      seen.add(at);
      const target = this.target(ref.value);
      if (!target) return at;
      at = target;
    }
  }

  private target(ref: string): ObjectNode | undefined {
    let at: JsonNode | undefined = this.root;
    if (ref !== "#" && !ref.startsWith("#/")) return undefined;
    for (const step of ref.slice(2).split("/")) {
      if (step === "" && ref === "#") break;
      const key = unescaped(step);
      if (at?.kind === "object") at = member(at, key);
      else if (at?.kind === "array") at = at.items[Number(key)];
      else return undefined;
    }
    return at?.kind === "object" ? at : undefined;
  }

  private source(node: JsonNode): string {
    return this.text.slice(node.offset, node.end);
  }
}

/** One step of a JSON pointer in a URI fragment. */
function unescaped(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return step;
  }
}

function stringOf(node: ObjectNode, key: string): string {
  const value = member(node, key);
  return value?.kind === "string" ? value.value : "";
}

function stringsOf(node: JsonNode | undefined): string[] {
  if (node?.kind !== "array") return [];
  return node.items.flatMap((item) => (item.kind === "string" ? [item.value] : []));
}
