import type { AnthropicTool, ChatTool, GeminiFunction, ResponsesTool } from "../../../../src/client/providers/index.js";

/** What each provider refuses a whole request for, written down once more and apart from the product. Empty if all is well. */
type Json = unknown;
type Schema = Record<string, Json>;

const isObject = (value: Json): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);

/** Every schema inside, with where it stands and how many objects and lists it is inside of, itself included. */
export function* schemasIn(schema: Json, at = "#", depth = 0): Generator<{ schema: Schema; at: string; depth: number }> {
  if (!isObject(schema)) return;
  const types = [schema["type"]].flat().map((type) => String(type).toLowerCase());
  const here = depth + (types.includes("object") || types.includes("array") ? 1 : 0);
  yield { schema, at, depth: here };
  for (const key of ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"])
    yield* schemasIn(schema[key], `${at}/${key}`, here);
  for (const key of ["anyOf", "oneOf", "allOf", "prefixItems"])
    for (const [i, item] of ((schema[key] as Json[]) ?? []).entries()) yield* schemasIn(item, `${at}/${key}/${i}`, here);
  for (const key of ["properties", "patternProperties", "$defs", "dependentSchemas"])
    for (const [name, item] of Object.entries(isObject(schema[key]) ? schema[key] : {}))
      yield* schemasIn(item, `${at}/${key}/${name}`, key === "$defs" ? 0 : here);
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

function together(names: string[]): string[] {
  return names.filter((name, i) => names.indexOf(name) !== i).map((name) => `two tools are called ${name}`);
}

function refs(schema: Schema): string[] {
  const parts = isObject(schema["$defs"]) ? schema["$defs"] : {};
  return [...schemasIn(schema)].flatMap(({ schema: s, at }) => {
    const ref = s["$ref"];
    if (ref === undefined) return [];
    const known = typeof ref === "string" && ref.startsWith("#/$defs/") && Object.hasOwn(parts, ref.slice(8));
    return known ? [] : [`${at}: the reference ${String(ref)} leads nowhere`];
  });
}

/** Draft 2020-12 as far as its meta-schema looks. */
function wellFormed(schema: Schema): string[] {
  return [...schemasIn(schema)].flatMap(({ schema: s, at }) => [
    ...(Array.isArray(s["items"]) ? [`${at}: items is a list`] : []),
    ...(s["enum"] !== undefined && !(Array.isArray(s["enum"]) && s["enum"].length > 0) ? [`${at}: enum is no list`] : []),
    ...(typeof s["exclusiveMinimum"] === "boolean" ? [`${at}: exclusiveMinimum is a boolean`] : []),
    ...["$id", "id", "$schema", "$anchor", "definitions"].filter((k) => k in s && at === "#").map((k) => `${at}: ${k}`),
  ]);
}

function openAi(name: string, description: string, parameters: Schema, strict: boolean): string[] {
  const root = ["oneOf", "anyOf", "allOf", "enum", "not"].filter((key) => key in parameters);
  return [
    ...(NAME.test(name) ? [] : [`the name ${name}`]),
    ...(description.length > 1024 ? [`a description of ${description.length}`] : []),
    ...(parameters["type"] === "object" ? [] : ["the root is no object"]),
    ...(isObject(parameters["properties"]) ? [] : ["the root has no properties"]),
    ...root.map((key) => `${key} at the root`),
    ...[...schemasIn(parameters)].flatMap(({ schema: s, at }) =>
      s["type"] === "array" && s["items"] === undefined ? [`${at}: a list without items`] : [],
    ),
    ...refs(parameters),
    ...wellFormed(parameters),
    ...(strict ? strictMode(parameters) : []),
  ].map((problem) => `${name}: ${problem}`);
}

const STRICT_KEYS = new Set(
  (
    "type title description enum const anyOf $ref $defs properties required additionalProperties items pattern format multipleOf " +
    "minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems"
  ).split(" "),
);
const STRICT_FORMATS = new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" "));

function strictMode(parameters: Schema): string[] {
  const all = [...schemasIn(parameters)];
  const properties = all.reduce((sum, { schema }) => sum + Object.keys(schema["properties"] ?? {}).length, 0);
  const values = all.reduce((sum, { schema }) => sum + ((schema["enum"] as Json[]) ?? []).length, 0);
  return [
    ...(properties > 5_000 ? [`${properties} properties`] : []),
    ...(values > 1_000 ? [`${values} values`] : []),
    ...all.flatMap(({ schema: s, at, depth }) => [
      ...(depth > 10 ? [`${at}: ${depth} levels deep`] : []),
      ...Object.keys(s).filter((key) => !STRICT_KEYS.has(key)).map((key) => `${at}: ${key} in strict mode`),
      ...(s["format"] !== undefined && !STRICT_FORMATS.has(String(s["format"])) ? [`${at}: the format ${s["format"]}`] : []),
      ...("$ref" in s && Object.keys(s).some((key) => key !== "$ref") ? [`${at}: something beside a reference`] : []),
      ...(!("type" in s || "anyOf" in s || "$ref" in s) ? [`${at}: no type`] : []),
      ...([s["type"]].flat().includes("object") ? strictObject(s, at) : []),
    ]),
  ];
}

function strictObject(s: Schema, at: string): string[] {
  const keys = Object.keys(s["properties"] ?? {}).sort();
  const required = [...((s["required"] as string[]) ?? [])].sort();
  return [
    ...(s["additionalProperties"] === false ? [] : [`${at}: an open object`]),
    ...(JSON.stringify(keys) === JSON.stringify(required) ? [] : [`${at}: not every property is required`]),
  ];
}

export function chatProblems(tools: readonly ChatTool[]): string[] {
  return [
    ...together(tools.map((t) => t.function.name)),
    ...tools.flatMap(({ function: f }) => openAi(f.name, f.description, f.parameters, f.strict)),
  ];
}

export function responsesProblems(tools: readonly ResponsesTool[]): string[] {
  return [
    ...together(tools.map((t) => t.name)),
    ...tools.flatMap((t) => openAi(t.name, t.description, t.parameters, t.strict)),
  ];
}

export function anthropicProblems(tools: readonly AnthropicTool[]): string[] {
  const one = ({ name, input_schema: schema }: AnthropicTool) =>
    [
      ...(NAME.test(name) ? [] : ["the name"]),
      ...(schema.type === "object" ? [] : ["the root is no object"]),
      ...["oneOf", "anyOf", "allOf"].filter((key) => key in schema).map((key) => `${key} at the root`),
      ...Object.keys((schema["properties"] as Schema) ?? {})
        .filter((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key))
        .map((key) => `the key ${key}`),
      ...refs(schema),
      ...wellFormed(schema),
    ].map((problem) => `${name}: ${problem}`);
  return [...together(tools.map((t) => t.name)), ...tools.flatMap(one)];
}

const GEMINI_KEYS = new Set(
  (
    "type format title description enum items prefixItems minItems maxItems minimum maximum anyOf properties " +
    "additionalProperties required"
  ).split(" "),
);
const SUBSET_KEYS = new Set(
  (
    "type format title description nullable enum items minItems maxItems minLength maxLength minProperties maxProperties " +
    "pattern minimum maximum anyOf properties required"
  ).split(" "),
);
const GEMINI_TYPES = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"];
const GEMINI_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const GEMINI_KEY = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

export function geminiProblems(functions: readonly GeminiFunction[]): string[] {
  const one = ({ name, parameters, parametersJsonSchema }: GeminiFunction) =>
    [
      ...(GEMINI_NAME.test(name) ? [] : ["the name"]),
      ...(parameters !== undefined && parametersJsonSchema !== undefined ? ["two kinds of parameters"] : []),
      ...[...schemasIn(parametersJsonSchema)].flatMap(({ schema, at }) => [
        ...Object.keys(schema).filter((key) => !GEMINI_KEYS.has(key)).map((key) => `${at}: ${key}`),
        ...geminiObject(schema, at),
      ]),
      ...[...schemasIn(parameters)].flatMap(({ schema, at }) => subset(schema, at)),
    ].map((problem) => `${name}: ${problem}`);
  return [...together(functions.map((f) => f.name)), ...functions.flatMap(one)];
}

function geminiObject(schema: Schema, at: string): string[] {
  const keys = Object.keys((schema["properties"] as Schema) ?? {});
  return [
    ...keys.filter((key) => !GEMINI_KEY.test(key)).map((key) => `${at}: the key ${key}`),
    ...((schema["required"] as string[]) ?? []).filter((key) => !keys.includes(key)).map((key) => `${at}: ${key} is required`),
    ...("anyOf" in schema && "type" in schema ? [`${at}: type beside anyOf`] : []),
  ];
}

function subset(schema: Schema, at: string): string[] {
  const counts = Object.entries(schema).filter(([key]) => /^(min|max)(Items|Length|Properties)$/.test(key));
  const values = schema["enum"] as Json[] | undefined;
  return [
    ...Object.keys(schema).filter((key) => !SUBSET_KEYS.has(key)).map((key) => `${at}: ${key}`),
    ...("anyOf" in schema || GEMINI_TYPES.includes(schema["type"] as string) ? [] : [`${at}: the type ${schema["type"]}`]),
    ...counts.filter(([, value]) => typeof value !== "string").map(([key]) => `${at}: ${key} is no text`),
    ...(values && !values.every((v) => typeof v === "string" && v !== "") ? [`${at}: a value that is no text`] : []),
    ...(schema["type"] === "ARRAY" && !isObject(schema["items"]) ? [`${at}: a list without items`] : []),
    ...(schema["type"] === "OBJECT" && Object.keys((schema["properties"] as Schema) ?? {}).length === 0
      ? [`${at}: an object without properties`]
      : []),
    ...geminiObject(schema, at),
  ];
}
