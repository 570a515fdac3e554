/**
 * A schema without its regular expressions and formats, that accepts whatever the schema accepts: a registrant's pattern is never
 * run, and what a format means is the server's business. Looser, never stricter.
 */

type Json = Readonly<Record<string, unknown>>;

const ONE = new Set(["additionalItems", "additionalProperties", "contains", "propertyNames", "then", "else", "if", "not", "unevaluatedItems", "unevaluatedProperties"]);
const MANY = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const NAMED = new Set(["$defs", "definitions", "dependentSchemas", "properties", "dependencies"]);
const DROPPED = new Set(["pattern", "patternProperties", "format", "contentSchema", "contentEncoding", "contentMediaType"]);
/** Where less said inside means more asked outside; they can stay only where nothing was dropped anywhere. */
const CONTRARY = new Set(["not", "if", "then", "else", "maxContains", "unevaluatedItems", "unevaluatedProperties"]);

/** How a schema is rewritten. */
interface Way {
  /** Something is dropped. */
  readonly loose: boolean;
  /** Nothing beside a `$ref` counts, as before 2019-09. */
  readonly refAlone: boolean;
}

/** The root must be a schema whose shape admission accepted, no deeper than it allows. */
export function softened(schema: Json, refAlone: boolean): Json {
  return rewritten(schema, { loose: drops(schema), refAlone }) as Json;
}

/** Whether something is dropped in it, however deep. References lead to places that are looked at anyway. */
function drops(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  return Object.entries(schema).some(([key, value]) => DROPPED.has(key) || subschemas(key, value).some(drops));
}

function subschemas(key: string, value: unknown): readonly unknown[] {
  if (ONE.has(key)) return [value];
  if (MANY.has(key)) return Array.isArray(value) ? value : [];
  if (key === "items") return Array.isArray(value) ? value : [value];
  return NAMED.has(key) && isObject(value) ? Object.values(value) : [];
}

function rewritten(schema: unknown, way: Way): unknown {
  if (!isObject(schema)) return schema;
  const { loose, refAlone } = way;
  const alone = refAlone && typeof schema["$ref"] === "string";
  const kept: [string, unknown][] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (DROPPED.has(key) || (loose && CONTRARY.has(key))) continue;
    if (alone && key !== "$ref" && key !== "definitions" && key !== "$defs") continue;
    // What a pattern allowed is no additional property.
    if (key === "additionalProperties" && isObject(schema["patternProperties"])) continue;
    // Of alternatives that are told apart by a pattern several may fit now.
    const name = loose && key === "oneOf" && schema["anyOf"] === undefined ? "anyOf" : key;
    if (loose && key === "oneOf" && name === "oneOf") continue;
    kept.push([name, rewrittenUnder(key, value, way)]);
  }
  return objectOf(kept);
}

function rewrittenUnder(key: string, value: unknown, way: Way): unknown {
  if (ONE.has(key)) return rewritten(value, way);
  if (MANY.has(key) || (key === "items" && Array.isArray(value))) {
    return Array.isArray(value) ? value.map((one) => rewritten(one, way)) : value;
  }
  if (key === "items") return rewritten(value, way);
  if (!NAMED.has(key) || !isObject(value)) return value;
  return objectOf(Object.entries(value).map(([name, one]) => [name, rewritten(one, way)]));
}

/** With `__proto__` as a name like any other. */
function objectOf(entries: readonly (readonly [string, unknown])[]): Json {
  return Object.fromEntries(entries);
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
