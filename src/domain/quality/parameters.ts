/** The parameters of a definition as far as an agent has to understand them. */
import { type JsonNode, member, type ObjectNode } from "../json.js";

export interface Leaf {
  /** Dotted from the root: `filter.from`. */
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  /** `enum`, `const`, `default`, `examples` or `example`: values that show what belongs there. */
  readonly shown: boolean;
  /** It may be a text: numbers and truth values have no format to get wrong. */
  readonly text: boolean;
  readonly pattern: string;
  readonly format: string;
}

/** Nesting that is looked into, and parameters in all: what lies deeper is seldom filled in by hand. */
const DEPTH = 4;
const MOST = 256;

const SHOWS = ["enum", "const", "default", "examples", "example"] as const;

/** Parameters that hold values. One that only groups others is described by them. */
export function leavesOf(inputSchema: ObjectNode): readonly Leaf[] {
  const leaves: Leaf[] = [];
  collect(inputSchema, inputSchema, "", true, 0, leaves);
  return leaves;
}

function collect(root: ObjectNode, schema: ObjectNode, prefix: string, required: boolean, depth: number, into: Leaf[]): void {
  const properties = member(schema, "properties");
  if (properties?.kind !== "object") return;
  const needed = new Set(stringsOf(member(schema, "required")));
  for (const { key, value } of properties.members) {
    if (into.length >= MOST) return;
    if (value.kind !== "object") continue;
    const node = resolved(root, value);
    const name = `${prefix}${key}`;
    const isRequired = required && needed.has(key);
    if (depth + 1 < DEPTH && groups(node)) collect(root, node, `${name}.`, isRequired, depth + 1, into);
    else into.push(leafOf(name, value, node, isRequired));
  }
}

function groups(node: ObjectNode): boolean {
  const properties = member(node, "properties");
  return properties?.kind === "object" && properties.members.length > 0;
}

function leafOf(name: string, given: ObjectNode, node: ObjectNode, required: boolean): Leaf {
  const parts = [given, node, ...branchesOf(node)];
  const first = (key: string) => parts.map((part) => stringOf(part, key)).find((text) => text.trim() !== "") ?? "";
  return {
    name,
    description: first("description"),
    required,
    shown: parts.some((part) => SHOWS.some((key) => member(part, key) !== undefined)),
    text: parts.every((part) => !member(part, "type")) || parts.some((part) => allowsText(member(part, "type"))),
    pattern: first("pattern"),
    format: first("format"),
  };
}

/** An optional value is often a union with null, and a list says in its items what it holds. */
function branchesOf(node: ObjectNode): ObjectNode[] {
  const lists = ["anyOf", "oneOf", "allOf"].map((key) => member(node, key));
  const branches = lists.flatMap((list) => (list?.kind === "array" ? list.items : []));
  return [...branches, member(node, "items")].filter((branch): branch is ObjectNode => branch?.kind === "object");
}

function allowsText(type: JsonNode | undefined): boolean {
  if (type?.kind === "array") return type.items.some(allowsText);
  return type?.kind === "string" && type.value === "string";
}

/** One step along a local reference; one that leads nowhere stays as it is. */
function resolved(root: ObjectNode, node: ObjectNode): ObjectNode {
  const ref = stringOf(node, "$ref");
  if (!ref.startsWith("#/")) return node;
  let at: JsonNode | undefined = root;
  for (const step of ref.slice(2).split("/")) at = at?.kind === "object" ? member(at, step) : undefined;
  return at?.kind === "object" ? at : node;
}

export function stringOf(node: ObjectNode, key: string): string {
  const value = member(node, key);
  return value?.kind === "string" ? value.value : "";
}

function stringsOf(node: JsonNode | undefined): string[] {
  if (node?.kind !== "array") return [];
  return node.items.flatMap((item) => (item.kind === "string" ? [item.value] : []));
}
