import type { Json, JsonObject } from "./json.js";
import { isObject } from "./json.js";

const COUNTS = new Set(["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]);

/**
 * Writes a schema of the reduced form as Gemini's `Schema` message: types in capitals, null as `nullable`, counts as the
 * text of an int64. The SDK refuses `type` beside `anyOf`.
 */
export function geminiSchema(schema: JsonObject): JsonObject {
  const branches = schema["anyOf"];
  if (Array.isArray(branches)) return union(schema, branches.filter(isObject));
  if (schema["type"] === "null") return { ...textsOf(schema), type: "STRING", nullable: true };
  const entries = Object.entries(schema).map(([keyword, value]): [string, Json] => {
    if (keyword === "type") return ["type", String(value).toUpperCase()];
    if (keyword === "items" && isObject(value)) return ["items", geminiSchema(value)];
    if (keyword === "properties" && isObject(value)) return ["properties", propertiesOf(value)];
    return [keyword, COUNTS.has(keyword) ? String(value) : value];
  });
  return Object.fromEntries(schema["enum"] === undefined ? entries : [...entries, ["format", "enum"]]);
}

function union(schema: JsonObject, branches: readonly JsonObject[]): JsonObject {
  const others = branches.filter((branch) => branch["type"] !== "null");
  const nullable: JsonObject = others.length < branches.length ? { nullable: true } : {};
  const [only, second] = others;
  if (only && !second) return { ...geminiSchema(only), ...textsOf(schema), ...nullable };
  return { ...textsOf(schema), anyOf: others.map(geminiSchema), ...nullable };
}

function propertiesOf(properties: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [key, isObject(value) ? geminiSchema(value) : value]),
  );
}

function textsOf(schema: JsonObject): JsonObject {
  const { title, description } = schema;
  return { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) };
}
