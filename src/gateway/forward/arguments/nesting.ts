/** The mistake that models make most: the arguments lie one level too deep, or travel as text. */
import { isObject } from "./soften.js";

type Json = Readonly<Record<string, unknown>>;

/** Names under which models put what should lie at the top. */
const WRAPPERS = ["arguments", "args", "parameters", "params", "input", "tool_input", "kwargs"];
/** Names under which they repeat which tool they mean. */
const NAMES = ["name", "tool", "tool_name", "tool_id", "toolName", "toolId", "id"];

export interface Nested {
  /** The member that holds them. */
  readonly under: string;
  /** What should have stood in its place. */
  readonly args: Json;
  /** The tool that was named beside them, as it was said. */
  readonly tool: string | undefined;
  /** They were JSON in a text. */
  readonly asText: boolean;
}

/**
 * Arguments that hold nothing but a wrapper, and perhaps the name of a tool; undefined: they do not, or `inputSchema` has
 * properties of these names, so that they are meant.
 */
export function findNested(given: unknown, inputSchema?: unknown): Nested | undefined {
  if (!isObject(given)) return undefined;
  const keys = Object.keys(given);
  const under = WRAPPERS.find((name) => Object.hasOwn(given, name));
  if (under === undefined || keys.length > 3 || !keys.every((key) => WRAPPERS.includes(key) || NAMES.includes(key))) return undefined;
  const known = isObject(inputSchema) ? inputSchema["properties"] : undefined;
  if (isObject(inputSchema) && (!isObject(known) || Object.keys(known).length === 0)) return undefined;
  if (isObject(known) && keys.some((key) => Object.hasOwn(known, key))) return undefined;
  const inner = given[under];
  const read = typeof inner === "string" ? jsonObject(inner) : inner;
  if (!isObject(read)) return undefined;
  const tool = NAMES.map((name) => given[name]).find((value) => typeof value === "string");
  return { under, args: read, tool: typeof tool === "string" ? tool : undefined, asText: typeof inner === "string" };
}

export function nestedText({ under, args, asText }: Nested): string {
  const how = asText ? `as a text that holds JSON under ${JSON.stringify(under)}` : `one level too deep, under ${JSON.stringify(under)}`;
  return `the arguments lie ${how}: give the tool's own parameters themselves, ${shown(args)}`;
}

/** How a tool that calls tools wants to be called. */
export interface CallForm {
  /** `call_tool`. */
  readonly tool: string;
  /** Its parameter that names the tool to be called. */
  readonly nameKey: string;
  /** Its parameter that holds that tool's arguments. */
  readonly argumentsKey: string;
}

/**
 * What is wrong with the arguments of a tool that calls tools, such as `call_tool({arguments: {name, …}})`; undefined: tool and
 * arguments stand where they belong.
 */
export function explainCall(given: unknown, form: CallForm): string | undefined {
  const { tool, nameKey, argumentsKey } = form;
  if (typeof given === "string" && jsonObject(given)) return `${tool} takes an object, and was given a text that holds one: ${want(form, "…", {})}`;
  if (!isObject(given)) return `${tool} takes an object: ${want(form, "…", {})}`;
  const inner = given[argumentsKey];
  const name = given[nameKey];
  if (typeof name === "string" && (inner === undefined || isObject(inner))) return undefined;
  if (typeof name === "string" && typeof inner === "string") {
    const read = jsonObject(inner);
    const what = read ? "is a text that holds JSON" : "is a text";
    return `${JSON.stringify(argumentsKey)} of ${tool} ${what}, and must be the object itself: ${want(form, name, read ?? {})}`;
  }
  if (isObject(inner)) {
    const named = [nameKey, ...NAMES].map((key) => inner[key]).find((value) => typeof value === "string");
    if (typeof named === "string") return `${JSON.stringify(nameKey)} lies inside ${JSON.stringify(argumentsKey)}: ${want(form, named, restOf(inner, form))}`;
  }
  const other = NAMES.map((key) => given[key]).find((value) => typeof value === "string");
  const missing = `${tool} needs ${JSON.stringify(nameKey)}, a text that names the tool`;
  return typeof name === "string"
    ? `${JSON.stringify(argumentsKey)} of ${tool} must be an object: ${want(form, name, {})}`
    : `${missing}: ${want(form, typeof other === "string" ? other : "…", isObject(inner) ? inner : {})}`;
}

/** What is left for the tool when its name is taken out: the object inside, or everything else. */
function restOf(inner: Json, { nameKey, argumentsKey }: CallForm): Json {
  const deeper = [argumentsKey, ...WRAPPERS].map((key) => inner[key]).find(isObject);
  if (deeper) return deeper;
  const name = [nameKey, ...NAMES].find((key) => typeof inner[key] === "string");
  return Object.fromEntries(Object.entries(inner).filter(([key]) => key !== name));
}

function want({ tool, nameKey, argumentsKey }: CallForm, name: string, args: Json): string {
  return `call it as ${tool}(${shown({ [nameKey]: name, [argumentsKey]: args })})`;
}

/** At most this much of what was given is repeated. */
const SHOWN = 400;

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`;
}

function jsonObject(text: string): Json | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
