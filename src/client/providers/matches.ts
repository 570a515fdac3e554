import type { Json, JsonObject } from "./json.js";
import { equalJson, isObject } from "./json.js";

/** A reference may lead to itself without getting deeper into the value. */
const DEPTH = 400;

/**
 * Whether a value fits an exported schema, as far as that can be told without running a registrant's pattern: used to tell
 * the branches of a union apart, never to refuse a call.
 */
export function matches(schema: JsonObject, value: Json, document: JsonObject, depth = 0): boolean {
  if (depth > DEPTH) return false;
  const within = (inner: unknown, item: Json) => !isObject(inner) || matches(inner, item, document, depth + 1);
  const ref = schema["$ref"];
  if (typeof ref === "string" && !within(target(ref, document), value)) return false;
  if (schema["type"] !== undefined && !hasType(value, schema["type"])) return false;
  if (Array.isArray(schema["enum"]) && !schema["enum"].some((item) => equalJson(item as Json, value))) return false;
  if (Array.isArray(schema["anyOf"]) && !schema["anyOf"].some((branch) => within(branch, value))) return false;
  if (typeof value === "number") return inBounds(schema, value);
  if (typeof value === "string") return hasSize(schema, "Length", [...value].length);
  if (Array.isArray(value)) {
    const prefix = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
    return (
      hasSize(schema, "Items", value.length) && value.every((item, i) => within(i in prefix ? prefix[i] : schema["items"], item))
    );
  }
  return !isObject(value) || objectMatches(schema, value, within);
}

function objectMatches(schema: JsonObject, value: JsonObject, within: (inner: unknown, item: Json) => boolean): boolean {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const others = schema["additionalProperties"];
  return (
    required.every((key) => Object.hasOwn(value, key as string)) &&
    hasSize(schema, "Properties", Object.keys(value).length) &&
    Object.entries(value).every(([key, item]) =>
      Object.hasOwn(properties, key) ? within(properties[key], item) : others !== false && within(others, item),
    )
  );
}

function target(ref: string, document: JsonObject): Json | undefined {
  const parts = document["$defs"];
  return isObject(parts) ? parts[ref.slice("#/$defs/".length)] : undefined;
}

function hasType(value: Json, given: Json): boolean {
  const types = Array.isArray(given) ? given : [given];
  const actual = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return types.some((type) => type === actual || (type === "integer" && Number.isInteger(value)));
}

function inBounds(schema: JsonObject, value: number): boolean {
  const bound = (keyword: string, ok: (limit: number) => boolean) => {
    const limit = schema[keyword];
    return typeof limit !== "number" || ok(limit);
  };
  return (
    bound("minimum", (limit) => value >= limit) &&
    bound("maximum", (limit) => value <= limit) &&
    bound("exclusiveMinimum", (limit) => value > limit) &&
    bound("exclusiveMaximum", (limit) => value < limit)
  );
}

function hasSize(schema: JsonObject, what: string, size: number): boolean {
  const [least, most] = [schema[`min${what}`], schema[`max${what}`]];
  return !(typeof least === "number" && size < least) && !(typeof most === "number" && size > most);
}
