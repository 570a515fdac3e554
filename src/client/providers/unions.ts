import type { Json } from "./json.js";
import { equalJson } from "./json.js";
import { resolved } from "./merge.js";
import type { Node, Schema, TypeName } from "./node.js";
import { Losses } from "./report.js";

/** Above it nobody asks whether each two of the branches exclude one another. */
const COMPARED = 64;

/** Whether no value can fit two of the branches, so that oneOf and anyOf mean the same. False where that is not certain. */
export function exclusive(branches: readonly Node[], schema: Schema): boolean {
  if (branches.length > COMPARED) return false;
  const nodes = branches.map((branch) => resolved(branch, schema, new Losses()));
  return nodes.every((a, i) => nodes.slice(i + 1).every((b) => apart(a, b, schema)));
}

function apart(a: Node, b: Node, schema: Schema): boolean {
  const [ours, theirs] = [typesOf(a), typesOf(b)];
  if (ours && theirs && !ours.some((type) => theirs.some((other) => overlap(type, other)))) return true;
  if (a.values && b.values) return !a.values.some((v) => b.values?.some((w) => equalJson(v, w)));
  const objects = a.types?.length === 1 && b.types?.length === 1 && a.types[0] === "object" && b.types[0] === "object";
  return objects && (told(a, b, schema) || told(b, a, schema));
}

/** Whether a property that `a` requires has other values, or another type, wherever `b` has it. */
function told(a: Node, b: Node, schema: Schema): boolean {
  return a.required.some((key) => {
    const [ours, theirs] = [a.properties.get(key), b.properties.get(key)];
    if (!theirs) return b.additional === false;
    if (!ours) return false;
    const [x, y] = [resolved(ours, schema, new Losses()), resolved(theirs, schema, new Losses())];
    return x.values !== undefined && y.values !== undefined && !x.values.some((v) => y.values?.some((w) => equalJson(v, w)));
  });
}

function overlap(a: TypeName, b: TypeName): boolean {
  return a === b || (a === "integer" && b === "number") || (a === "number" && b === "integer");
}

function typesOf(node: Node): readonly TypeName[] | undefined {
  return node.types ?? (node.values ? [...new Set(node.values.map(typeOf))] : undefined);
}

export function typeOf(value: Json): TypeName {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as TypeName;
}

/** Whether null may be accepted; true where that is not certain. */
export function nullFits(given: Node, schema: Schema, depth = 0): boolean {
  if (depth > 8) return true;
  const node = resolved(given, schema, new Losses());
  if (node.types && !node.types.includes("null")) return false;
  if (node.values && !node.values.includes(null)) return false;
  if (node.allOf?.some((branch) => !nullFits(branch, schema, depth + 1))) return false;
  return [node.anyOf, node.oneOf].every((list) => !list || list.some((branch) => nullFits(branch, schema, depth + 1)));
}
