import type { JsonNode, ObjectNode } from "../domain/json.js";
import { member, parseJson } from "../domain/json.js";
import type { StubFields } from "../domain/stub.js";
import { cut } from "./text.js";

/** What the index is told about one tool. All texts are bounded where a document is made. */
export interface ToolDocument {
  readonly toolId: string;
  readonly serverId: string;
  readonly name: string;
  readonly title: string;
  /** The brief description, or more of it once a definition is known. */
  readonly description: string;
  readonly useWhen: string;
  readonly keywords: readonly string[];
  readonly tags: readonly string[];
  /** What its server is called; may equal the server id. */
  readonly service: string;
  /** Empty until a definition is known. */
  readonly parameters: readonly Parameter[];
}

export interface Parameter {
  readonly name: string;
  readonly description: string;
  /** Values that it may take (`enum`, `const`), as text. */
  readonly values: readonly string[];
}

/** Bounds in UTF-16 code units: what is longer than this says nothing new, and costs memory in every replica. */
const DESCRIPTION = 2_000;
const PARAMETERS = 64;
const PARAMETER_DESCRIPTION = 300;
const VALUES = 64;
const VALUE = 80;
/** Nesting of schemas in which parameters are looked for. */
const DEPTH = 4;

/**
 * The document of a stub. `definition` are the bytes of an admitted definition under the stub's digest, when they are
 * known; bytes that do not parse add nothing.
 */
export function documentOf(stub: StubFields, service: string, definition?: Uint8Array): ToolDocument {
  const known = definition === undefined ? undefined : partsOf(definition);
  return {
    toolId: `${stub.serverId}/${stub.name}`,
    serverId: stub.serverId,
    name: stub.name,
    title: stub.title,
    description: longer(stub.briefDescription, known?.description ?? ""),
    useWhen: stub.useWhen,
    keywords: stub.keywords,
    tags: stub.tags,
    service,
    parameters: known?.parameters ?? [],
  };
}

/** A brief description that the registrant wrote stands beside the server's own text; one derived from it does not repeat it. */
function longer(brief: string, full: string): string {
  const text = cut(full, DESCRIPTION);
  const beginning = brief.replace(/…$/, "").slice(0, 40);
  return text.replace(/\s+/g, " ").trim().startsWith(beginning) ? text || brief : `${brief}\n${text}`;
}

function partsOf(definition: Uint8Array): { description: string; parameters: Parameter[] } | undefined {
  const parsed = parseJson(new TextDecoder().decode(definition));
  if (!parsed.ok || parsed.root.kind !== "object") return undefined;
  const parameters: Parameter[] = [];
  const schema = member(parsed.root, "inputSchema");
  if (schema?.kind === "object") collect(schema, 0, parameters);
  return { description: stringOf(parsed.root, "description"), parameters };
}

function collect(schema: ObjectNode, depth: number, into: Parameter[]): void {
  if (depth >= DEPTH) return;
  const properties = member(schema, "properties");
  if (properties?.kind === "object") {
    for (const { key, value } of properties.members) {
      if (into.length >= PARAMETERS) return;
      if (value.kind !== "object") continue;
      const description = cut(stringOf(value, "description"), PARAMETER_DESCRIPTION);
      into.push({ name: cut(key, 128), description, values: valuesOf(value) });
      collect(value, depth + 1, into);
    }
  }
  const items: JsonNode | undefined = member(schema, "items");
  if (items?.kind === "object") collect(items, depth + 1, into);
}

/** Numbers and truth values say nothing about what a tool is for. */
function valuesOf(schema: ObjectNode): string[] {
  const values: string[] = [];
  const given = enumOf(schema) ?? enumOf(member(schema, "items"));
  const items = given?.kind === "array" ? given.items : [];
  for (const item of [...items.slice(0, VALUES), member(schema, "const")]) {
    if (item?.kind === "string") values.push(cut(item.value, VALUE));
  }
  return values;
}

function enumOf(node: JsonNode | undefined): JsonNode | undefined {
  return node?.kind === "object" ? member(node, "enum") : undefined;
}

function stringOf(node: ObjectNode, key: string): string {
  const value = member(node, key);
  return value?.kind === "string" ? value.value : "";
}
