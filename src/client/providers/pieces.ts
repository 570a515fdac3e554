import type { JsonObject } from "./json.js";
import type { Node, TypeName } from "./node.js";
import type { Plan } from "./plan.js";
import type { Losses } from "./report.js";
import { typeOf } from "./unions.js";

/** One schema in a reduced form, and how its values differ from the tool's. */
export interface Piece {
  readonly schema: JsonObject;
  readonly plan: Plan;
}

/** The types that a schema takes; empty for any. One that names none is taken as what its keywords speak of. */
export function typesTaken(node: Node, losses: Losses): readonly TypeName[] {
  const listed = node.values ? [...new Set(node.values.map(typeOf))] : undefined;
  if (node.types && listed) {
    const fit = node.types.filter((t) => listed.includes(t) || (t === "number" && listed.includes("integer")));
    return fit.length > 0 ? fit : node.types;
  }
  if (node.types ?? listed) return node.types ?? listed ?? [];
  const seems = seeming(node);
  if (!seems) return [];
  losses.add(node.at, `it names no type and is taken as ${seems}`, "narrower");
  return [seems];
}

function seeming(node: Node): TypeName | undefined {
  if (node.properties.size > 0 || node.required.length > 0 || typeof node.additional === "object") return "object";
  return node.prefix || typeof node.items === "object" ? "array" : undefined;
}

/** JSON written as text cannot be told from a text that means itself, so one branch of a union has to stand for both. */
export function oneText(node: Node, pieces: readonly Piece[], losses: Losses): readonly Piece[] {
  const isText = (piece: Piece) => piece.schema["type"] === "string" || piece.plan.kind === "text";
  const takes = pieces.flatMap(({ plan }) => (plan.kind === "text" ? [plan.takes] : []));
  const texts = pieces.filter(isText);
  if (takes.length === 0 || texts.length < 2) return pieces;
  losses.add(node.at, "a text, or something written as JSON text, may be any text", "wider");
  const description = texts.flatMap(({ schema }) => schema["description"] ?? []).join("; or: ");
  const schema: JsonObject = { type: "string", ...(description === "" ? {} : { description }) };
  const objects = takes.every((t) => t === "object") && texts.length === takes.length;
  const plan: Plan = { kind: "text", takes: takes.includes("any") ? "any" : objects ? "object" : "object or text" };
  return [...pieces.filter((piece) => !isText(piece)), { schema, plan }];
}

/** The schema, and null besides. */
export function nullable(schema: JsonObject): JsonObject {
  const { type, anyOf, title, description, ...rest } = schema;
  const texts = { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) };
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  if (type === undefined || type === "object" || type === "array")
    return { ...texts, anyOf: [{ ...(type === undefined ? {} : { type }), ...rest }, { type: "null" }] };
  const values: JsonObject = Array.isArray(rest["enum"]) ? { enum: [...rest["enum"], null] } : {};
  return { ...schema, type: Array.isArray(type) ? [...type, "null"] : [type, "null"], ...values };
}
