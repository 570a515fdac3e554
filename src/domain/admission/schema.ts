import type { JsonNode, ObjectNode } from "../json.js";
import { member } from "../json.js";
import type { Path, ReasonList } from "./reasons.js";
import { at, pointer } from "./reasons.js";
import { quoted } from "./text.js";

const TYPE_NAMES = ["null", "boolean", "object", "array", "number", "string", "integer"];
const ALLOWED_TYPES = TYPE_NAMES.join(", ");

/** What a keyword holds. Every other keyword (`enum`, `const`, `default`, `examples`, `x-…`) holds data, which is never judged. */
const KEYWORDS = new Map<string, "schema" | "schemas" | "schema-or-schemas" | "named" | "named-or-names">([
  ...["additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not", "propertyNames"].map(
    (k) => [k, "schema"] as const,
  ),
  ...["then", "unevaluatedItems", "unevaluatedProperties"].map((k) => [k, "schema"] as const),
  ...["allOf", "anyOf", "oneOf", "prefixItems"].map((k) => [k, "schemas"] as const),
  ["items", "schema-or-schemas"],
  ...["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"].map((k) => [k, "named"] as const),
  ["dependencies", "named-or-names"],
]);

interface Walk {
  readonly reasons: ReasonList;
  /** Lower-case header name → where it was seen; undefined where headers mean nothing (output schemas). */
  readonly headers: Map<string, string> | undefined;
}

/**
 * Judges a schema by its shape alone: the types it names, that references stay inside it, that schemas stand where schemas
 * belong, and (for input) MCP's rules for `x-mcp-header`. Runs no pattern, follows no reference. The caller has bounded the depth.
 */
export function judgeSchema(schema: ObjectNode, path: Path, role: "input" | "output", reasons: ReasonList): void {
  judge(schema, path, true, { reasons, headers: role === "input" ? new Map() : undefined });
}

/** `plain`: reached from the root along `properties` alone, the only place where a header may stand. */
function judge(node: JsonNode, path: Path, plain: boolean, walk: Walk): void {
  if (node.kind === "boolean") return;
  if (node.kind !== "object") {
    walk.reasons.addAt(path, `must be a schema (an object, true or false), but is ${kindOf(node)}`);
    return;
  }
  const header = walk.headers && member(node, "x-mcp-header");
  if (header) judgeHeader(node, header, at(path, "x-mcp-header"), plain, walk.reasons, walk.headers);
  for (const { key, value } of node.members) {
    const here = at(path, key);
    if (key === "type") judgeType(value, here, walk.reasons);
    else if (key === "$ref" || key === "$dynamicRef" || key === "$recursiveRef") judgeRef(value, here, walk.reasons);
    else judgeKeyword(key, value, here, plain, walk);
  }
}

function judgeKeyword(key: string, value: JsonNode, path: Path, plain: boolean, walk: Walk): void {
  const holds = KEYWORDS.get(key);
  if (holds === undefined) return;
  if (holds === "schema" || (holds === "schema-or-schemas" && value.kind !== "array")) {
    judge(value, path, false, walk);
  } else if (holds === "schemas" || holds === "schema-or-schemas") {
    if (value.kind !== "array") walk.reasons.addAt(path, `must be an array of schemas, but is ${kindOf(value)}`);
    else for (const [i, item] of value.items.entries()) judge(item, at(path, i), false, walk);
  } else if (value.kind !== "object") {
    walk.reasons.addAt(path, `must be an object of schemas, but is ${kindOf(value)}`);
  } else {
    for (const named of value.members) {
      if (holds === "named-or-names" && named.value.kind === "array") continue;
      judge(named.value, at(path, named.key), plain && key === "properties", walk);
    }
  }
}

function judgeType(value: JsonNode, path: Path, reasons: ReasonList): void {
  if (value.kind === "array") {
    if (value.items.length === 0) reasons.addAt(path, `is an empty array: name at least one of ${ALLOWED_TYPES}`);
    for (const [i, item] of value.items.entries()) judgeTypeName(item, at(path, i), reasons);
  } else judgeTypeName(value, path, reasons);
}

function judgeTypeName(value: JsonNode, path: Path, reasons: ReasonList): void {
  if (value.kind === "string" && TYPE_NAMES.includes(value.value)) return;
  const actual = value.kind === "string" ? quoted(value.value) : kindOf(value);
  reasons.addAt(path, `is ${actual}, which is no JSON Schema type: use one of ${ALLOWED_TYPES}`);
}

function judgeRef(value: JsonNode, path: Path, reasons: ReasonList): void {
  if (value.kind === "string" && value.value.startsWith("#")) return;
  const actual = value.kind === "string" ? quoted(value.value, 120) : kindOf(value);
  reasons.addAt(path, `is ${actual}, but references must stay inside the schema: begin it with #`);
}

const HEADER_TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_TYPES = ["string", "integer", "boolean"];

function judgeHeader(
  owner: ObjectNode,
  value: JsonNode,
  path: Path,
  plain: boolean,
  reasons: ReasonList,
  seen: Map<string, string>,
): void {
  if (value.kind !== "string" || !HEADER_TOKEN.test(value.value)) {
    const actual = value.kind === "string" ? quoted(value.value) : kindOf(value);
    reasons.addAt(path, `is ${actual}, but must be a header token: letters, digits and !#$%&'*+-.^_\`|~`);
  } else {
    const name = value.value.toLowerCase();
    const first = seen.get(name);
    if (first) reasons.addAt(path, `repeats the header ${quoted(value.value)} of ${first}: header names must be unique`);
    else seen.set(name, pointer(path));
  }
  const type = member(owner, "type");
  if (type?.kind !== "string" || !HEADER_TYPES.includes(type.value))
    reasons.addAt(path, `stands on a property whose type is not one of ${HEADER_TYPES.join(", ")}`);
  if (!plain || path.parent?.parent?.segment !== "properties")
    reasons.addAt(path, "stands where it is not reached along properties alone");
}

/** `null`, `a number`, `an array`: how a message names what was found. */
export function kindOf(node: JsonNode): string {
  if (node.kind === "null") return "null";
  return node.kind === "object" || node.kind === "array" ? `an ${node.kind}` : `a ${node.kind}`;
}
