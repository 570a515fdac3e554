import { nameReasons } from "./admission/names.js";
import type { Path } from "./admission/reasons.js";
import { at, ReasonList } from "./admission/reasons.js";
import { judgeSchema, kindOf } from "./admission/schema.js";
import { quoted, visible } from "./admission/text.js";
import { canonicalOf, digestOf } from "./digest.js";
import type { JsonNode, ObjectNode } from "./json.js";
import { glanceJson, member, parseJson } from "./json.js";
import { LIMITS } from "./limits.js";
import type { AnnotationHints } from "./stub.js";

/** One MCP tool object that may be listed: its bytes exactly as they came (P10), and what a label needs of it. */
export interface Definition {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly digest: string;
  readonly sizeBytes: number;
  /** Where the text of `inputSchema` stands, in bytes. */
  readonly inputSchema: { readonly offset: number; readonly length: number };
  /** `title`, else `annotations.title`, else empty; as sent. */
  readonly title: string;
  /** Empty if absent; as sent. */
  readonly description: string;
  readonly hints: AnnotationHints;
}

export type ReadDefinition =
  | { readonly ok: true; readonly definition: Definition }
  /** `name` is as far as it could be read, fit for a message; it may be empty. */
  | { readonly ok: false; readonly name: string; readonly reasons: string[] };

/**
 * Reads one tool object and says everything that keeps it from being listed, at once. It is refused for its shape, size and
 * depth, never for its characters. The bytes are kept, not copied: nobody may write to them afterwards.
 */
export function readDefinition(bytes: Uint8Array): ReadDefinition {
  const reasons = new ReasonList();
  const glance = glanceJson(bytes);
  const refused = (name: string): ReadDefinition => ({ ok: false, name: visible(name), reasons: reasons.done() });

  if (bytes.byteLength > LIMITS.definitionBytes)
    reasons.add(
      `the definition has ${bytes.byteLength} bytes, the limit is ${LIMITS.definitionBytes}: make it smaller`,
    );
  if (glance.depth > LIMITS.schemaDepth)
    reasons.add(`the definition nests ${glance.depth} levels deep, the limit is ${LIMITS.schemaDepth}: flatten it`);
  if (!reasons.empty) return refused(glance.name);

  const text = decodeUtf8(bytes);
  if (text === undefined) {
    reasons.add("the definition is not valid UTF-8: send JSON text in UTF-8");
    return refused(glance.name);
  }
  const parsed = parseJson(text);
  if (!parsed.ok) {
    reasons.add(`the definition is not valid JSON: ${parsed.problem}`);
    return refused(glance.name);
  }
  const tool = parsed.root;
  if (tool.kind !== "object") {
    reasons.add(`the definition must be one MCP tool object, but is ${kindOf(tool)}`);
    return refused("");
  }
  findRepeatedKeys(tool, undefined, reasons);
  judgeTool(tool, reasons);
  const name = stringOf(tool, "name");
  const schema = member(tool, "inputSchema");
  if (!reasons.empty || !schema) return refused(name);

  const digest = digestOf(Buffer.from(canonicalOf(tool, text)));
  return { ok: true, definition: { name, bytes, digest, sizeBytes: bytes.byteLength, ...factsOf(tool, schema, text) } };
}

/**
 * The exact bytes of `inputSchema` inside a definition that `readDefinition` accepted, as a view. Throws an Error for
 * bytes that it would not have accepted.
 */
export function inputSchemaOf(bytes: Uint8Array): Uint8Array {
  const text = decodeUtf8(bytes);
  const parsed = text === undefined ? undefined : parseJson(text);
  const schema = parsed?.ok && parsed.root.kind === "object" ? member(parsed.root, "inputSchema") : undefined;
  if (text === undefined || !schema) throw new Error("these bytes are not an admitted definition");
  const { offset, length } = byteSpan(schema, text);
  return bytes.subarray(offset, offset + length);
}

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function byteSpan(node: JsonNode, text: string): { offset: number; length: number } {
  return {
    offset: Buffer.byteLength(text.slice(0, node.offset)),
    length: Buffer.byteLength(text.slice(node.offset, node.end)),
  };
}

function findRepeatedKeys(node: JsonNode, path: Path | undefined, reasons: ReasonList): void {
  if (node.kind === "array") for (const [i, item] of node.items.entries()) findRepeatedKeys(item, at(path, i), reasons);
  if (node.kind !== "object") return;
  const seen = new Set<string>();
  for (const { key, value } of node.members) {
    const here = at(path, key);
    if (seen.has(key)) reasons.addAt(here, "is given twice, and readers would disagree which one counts: keep one");
    seen.add(key);
    findRepeatedKeys(value, here, reasons);
  }
}

function judgeTool(tool: ObjectNode, reasons: ReasonList): void {
  judgeName(member(tool, "name"), reasons);
  for (const key of ["title", "description"]) {
    const value = member(tool, key);
    if (value && value.kind !== "string")
      reasons.add(`/${key} must be a string, but is ${kindOf(value)}: leave it out if there is none`);
  }
  const annotations = member(tool, "annotations");
  if (annotations && annotations.kind !== "object")
    reasons.add(`/annotations must be an object, but is ${kindOf(annotations)}: leave it out if there are none`);
  judgeInput(member(tool, "inputSchema"), reasons);
  const output = member(tool, "outputSchema");
  if (output?.kind === "object") judgeSchema(output, at(undefined, "outputSchema"), "output", reasons);
  else if (output)
    reasons.add(`/outputSchema must be a JSON object, but is ${kindOf(output)}: leave it out if there is none`);
}

function judgeName(name: JsonNode | undefined, reasons: ReasonList): void {
  if (!name) reasons.add("/name is missing: a tool needs a name");
  else if (name.kind !== "string") reasons.add(`/name must be a string, but is ${kindOf(name)}`);
  else for (const reason of nameReasons("tool_name", name.value)) reasons.add(`/name ${reason}`);
}

function judgeInput(schema: JsonNode | undefined, reasons: ReasonList): void {
  if (!schema) {
    reasons.add('/inputSchema is missing: a tool without parameters has {"type":"object"}');
    return;
  }
  if (schema.kind !== "object") {
    reasons.add(`/inputSchema must be a JSON object, but is ${kindOf(schema)}`);
    return;
  }
  const type = member(schema, "type");
  if (type?.kind !== "string" || type.value !== "object") {
    const actual = !type ? "is missing" : `is ${type.kind === "string" ? quoted(type.value) : kindOf(type)}`;
    reasons.add(`/inputSchema/type ${actual}, but MCP wants "object" at the root`);
  }
  judgeSchema(schema, at(undefined, "inputSchema"), "input", reasons);
}

function stringOf(node: ObjectNode, key: string): string {
  const value = member(node, key);
  return value?.kind === "string" ? value.value : "";
}

function factsOf(tool: ObjectNode, schema: JsonNode, text: string) {
  const annotations = member(tool, "annotations");
  const notes = annotations?.kind === "object" ? annotations : undefined;
  return {
    inputSchema: byteSpan(schema, text),
    title: stringOf(tool, "title") || (notes ? stringOf(notes, "title") : ""),
    description: stringOf(tool, "description"),
    hints: notes ? hintsOf(notes) : {},
  };
}

const HINTS = [
  ["readOnlyHint", "readOnly"],
  ["destructiveHint", "destructive"],
  ["idempotentHint", "idempotent"],
  ["openWorldHint", "openWorld"],
] as const;

/** A hint that is not a boolean says nothing, so it counts as absent. */
function hintsOf(annotations: ObjectNode): AnnotationHints {
  const hints: { -readonly [K in keyof AnnotationHints]: AnnotationHints[K] } = {};
  for (const [key, hint] of HINTS) {
    const value = member(annotations, key);
    if (value?.kind === "boolean") hints[hint] = value.value;
  }
  return hints;
}
