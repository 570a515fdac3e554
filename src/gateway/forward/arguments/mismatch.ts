/** What does not fit, said so that a model can put it right in one go. */
import type { ErrorObject } from "ajv";
import { isObject } from "./soften.js";

type Json = Readonly<Record<string, unknown>>;

/** Problems that one refusal names, and parameters that it lists. */
const PROBLEMS = 8;
const PARAMETERS = 20;
const SHOWN = 80;

export function mismatchText(errors: readonly ErrorObject[], inputSchema: Json): string | undefined {
  const alternatives = errors.filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf");
  // What each single alternative would have wanted is noise beside that none fits.
  const told = errors.filter((one) => alternatives.includes(one) || !alternatives.some((all) => isBelow(one, all)));
  const texts = [...new Set(told.flatMap((error) => problemOf(error)))];
  if (texts.length === 0) return undefined;
  const more = texts.length > PROBLEMS ? `; and ${texts.length - PROBLEMS} more` : "";
  return `${texts.slice(0, PROBLEMS).join("; ")}${more}. ${outline(inputSchema)}`;
}

function isBelow(one: ErrorObject, all: ErrorObject): boolean {
  return one.instancePath === all.instancePath || one.instancePath.startsWith(`${all.instancePath}/`);
}

function problemOf(error: ErrorObject): string[] {
  const { keyword, params, data, schema, parentSchema } = error;
  const at = error.instancePath === "" ? "the arguments" : error.instancePath;
  switch (keyword) {
    case "required":
      return [`${pathTo(error.instancePath, String(params["missingProperty"]))} is missing`];
    case "additionalProperties":
    case "unevaluatedProperties":
      return [`${pathTo(error.instancePath, String(params["additionalProperty"] ?? params["unevaluatedProperty"]))} is no parameter`];
    case "type":
      return [`${at} must be ${[schema].flat().map(String).join(" or ")}, but is ${kindOf(data)}${hintOf(data, schema)}`];
    case "enum":
      return [`${at} must be one of ${shown(schema, 300)}, but is ${shown(data)}`];
    case "const":
      return [`${at} must be ${shown(schema)}, but is ${shown(data)}`];
    case "anyOf":
    case "oneOf": {
      const several = keyword === "oneOf" && Array.isArray(params["passingSchemas"]);
      if (several) return [`${at} fits several of its alternatives, and must fit exactly one`];
      const types = typesOf(schema);
      return [types ? `${at} must be ${types}, but is ${kindOf(data)}` : `${at} fits none of its ${count(schema)} alternatives`];
    }
    case "if":
      return [];
    default:
      return [`${at} ${error.message ?? `does not fit ${keyword}`}${isObject(parentSchema) ? `, but is ${shown(data)}` : ""}`];
  }
}

/** The types of alternatives that differ in nothing else that could be said in a few words. */
function typesOf(schema: unknown): string | undefined {
  if (!Array.isArray(schema)) return undefined;
  const types = schema.map((one) => (isObject(one) && typeof one["type"] === "string" ? one["type"] : undefined));
  const distinct = new Set(types);
  return types.includes(undefined) || distinct.size < types.length ? undefined : types.join(" or ");
}

function count(schema: unknown): number {
  return Array.isArray(schema) ? schema.length : 0;
}

function hintOf(data: unknown, schema: unknown): string {
  const wanted = [schema].flat();
  if (typeof data !== "string") return data === null ? ": leave it out if there is none" : "";
  const text = data.trim();
  if (wanted.some((type) => type === "number" || type === "integer") && text !== "" && Number.isFinite(Number(text))) return `: give ${Number(text)} without quotes`;
  if (wanted.includes("boolean") && (text === "true" || text === "false")) return `: give ${text} without quotes`;
  const json = wanted.includes("object") || wanted.includes("array");
  return json && /^[[{]/.test(text) ? ": give the JSON itself, not a text that holds it" : "";
}

function kindOf(data: unknown): string {
  if (data === null) return "null";
  if (Array.isArray(data)) return "array";
  if (typeof data === "number") return Number.isInteger(data) ? "integer" : "number";
  return typeof data === "string" ? `string ${shown(data)}` : typeof data;
}

function pathTo(path: string, key: string): string {
  return `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1").slice(0, SHOWN)}`;
}

function shown(value: unknown, limit = SHOWN): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}

/** `It takes {"query": string, "limit"?: integer}`. */
function outline(inputSchema: Json): string {
  const { properties, required } = inputSchema;
  if (!isObject(properties)) return "See its inputSchema.";
  const needed = new Set(Array.isArray(required) ? required : []);
  const names = Object.keys(properties).sort((a, b) => Number(needed.has(b)) - Number(needed.has(a)));
  const parts = names.slice(0, PARAMETERS).map((name) => `${shown(name)}${needed.has(name) ? "" : "?"}: ${typeName(properties[name])}`);
  const more = names.length > PARAMETERS ? `, and ${names.length - PARAMETERS} more` : "";
  return names.length === 0 ? "It takes no parameters." : `It takes {${parts.join(", ")}${more}}.`;
}

function typeName(schema: unknown): string {
  if (!isObject(schema)) return "any";
  const { type, enum: values, anyOf } = schema;
  if (Array.isArray(values)) return shown(values);
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.map(String).join(" | ").slice(0, SHOWN);
  return (typesOf(anyOf) ?? "any").replaceAll(" or ", " | ");
}
