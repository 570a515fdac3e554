/** What models send to the gateway's own tools → what they meant, or a sentence that says how it has to be sent. */
import type { Toolset } from "../words.js";

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly text: string };

type Fields = Readonly<Record<string, unknown>>;

export interface FindArguments {
  readonly intent: string;
  readonly category: string;
  readonly limit: number;
  readonly keep: boolean;
  readonly toolset: string;
  /** Who chooses; empty where the caller leaves it to the gateway. */
  readonly by: "" | "search" | "model";
  /** Facts of the agent's state, `name` or `name=value`. */
  readonly state: readonly string[];
}

const LIMIT = 5;
const LIMIT_MAX = 20;
/** As FindTools takes them. */
const FACTS_MAX = 100;
const FACT_MAX = 200;

export function readFind(given: unknown): Read<FindArguments> {
  const fields = fieldsOf(given);
  if (!fields) return wrong(`find_tools takes an object such as ${FIND_EXAMPLE}, not ${kindOf(given)}.`);
  const problems = [
    ...notText(fields, ["intent", "category", "toolset"]),
    ...(fields["keep"] === undefined || typeof fields["keep"] === "boolean" ? [] : ["keep must be true or false"]),
    ...(isLimit(fields["limit"]) ? [] : [`limit must be a whole number from 1 to ${LIMIT_MAX}, not ${JSON.stringify(fields["limit"])}`]),
    ...(isChooser(fields["by"]) ? [] : [`by must be "search" or "model", not ${JSON.stringify(fields["by"])}`]),
    ...wrongFacts(fields["state"]),
    ...unknown(fields, ["intent", "category", "limit", "keep", "toolset", "by", "state"]),
  ];
  if (problems.length > 0) return wrong(`find_tools: ${problems.join("; ")}. Send an object such as ${FIND_EXAMPLE}.`);
  return {
    ok: true,
    value: {
      intent: textOf(fields["intent"]),
      category: textOf(fields["category"]),
      toolset: textOf(fields["toolset"]),
      limit: (fields["limit"] as number | null | undefined) ?? LIMIT,
      keep: fields["keep"] === true,
      by: (fields["by"] as "search" | "model" | null | undefined) ?? "",
      state: factsOf(fields["state"]),
    },
  };
}

const FIND_EXAMPLE = '{"intent": "close the overdue order"}';

export function readDescribe(given: unknown): Read<{ readonly toolset: string; readonly tools: readonly string[] }> {
  const fields = fieldsOf(given) ?? {};
  // One name instead of a list of one is what models send, and says the same.
  const named = fields["tools"] ?? fields["tool"] ?? fields["name"];
  const tools = typeof named === "string" ? [named] : named;
  const toolset = textOf(fields["toolset"]);
  if (toolset === "" || !Array.isArray(tools) || tools.length === 0 || tools.length > 20 || !tools.every((t) => typeof t === "string")) {
    return wrong('describe_tools takes {"toolset": "the name that find_tools answered", "tools": ["server/tool", …]}, with 1 to 20 tools.');
  }
  return { ok: true, value: { toolset, tools: [...new Set(tools as string[])] } };
}

export interface CallArguments {
  readonly toolset: string;
  readonly tool: string;
  /** As given; undefined where none were. */
  readonly args: unknown;
}

/** A call that is wrapped or unwrapped once too often is answered with the call that was meant. */
export function readCall(given: unknown): Read<CallArguments> {
  const fields = fieldsOf(given);
  if (!fields) return wrong(`call_tool takes ${CALL_SHAPE}, not ${kindOf(given)}.`);
  const { toolset, tool, arguments: args, ...rest } = fields;
  if (typeof toolset === "string" && typeof tool === "string") {
    if (Object.keys(rest).length > 0) return misplaced(toolset, tool, { ...(fieldsOf(args) ?? {}), ...rest }, `${list(rest)} stood beside "arguments" instead of inside`);
    if (args === undefined || args === null || fieldsOf(args)) return { ok: true, value: { toolset, tool, args: args ?? undefined } };
    const read = typeof args === "string" ? parsed(args) : undefined;
    if (read) return misplaced(toolset, tool, read, '"arguments" was a text instead of an object');
    return wrong(`call_tool: "arguments" must be an object, not ${kindOf(args)}. It takes ${CALL_SHAPE}.`);
  }
  const inner = fieldsOf(args) ?? {};
  const meant = text(tool) ?? text(fields["name"]) ?? text(fields["tool_name"]) ?? text(inner["tool"]) ?? text(inner["name"]);
  const where = text(toolset) ?? text(inner["toolset"]) ?? "the name that find_tools answered";
  if (meant === undefined) return wrong(`call_tool: "tool" is missing. It takes ${CALL_SHAPE}.`);
  const nested = text(tool) === undefined && text(fields["name"]) === undefined && text(fields["tool_name"]) === undefined;
  const { toolset: _t, tool: _n, name: _m, arguments: deeper, ...flat } = inner;
  const corrected = !nested ? inner : deeper === undefined ? flat : (fieldsOf(deeper) ?? flat);
  const why = nested ? '"tool" and "toolset" stood inside "arguments" instead of beside it' : text(toolset) === undefined ? '"toolset" is missing' : '"tool" is missing';
  return misplaced(where, meant, corrected, why);
}

const CALL_SHAPE = '{"toolset": "the name that find_tools answered", "tool": "server/tool", "arguments": {…}}';

function misplaced(toolset: string, tool: string, args: object, why: string): Read<never> {
  return wrong(`call_tool: nothing was called, because ${why}. Call it again with ${JSON.stringify({ toolset, tool, arguments: args })}.`);
}

/** For a call whose tool is not in the toolset. */
export function loadedNames({ toolIds }: Toolset, name: (toolId: string) => string): string {
  if (toolIds.length === 0) return "Nothing is loaded yet.";
  const shown = toolIds.slice(0, 20).map(name);
  return `Loaded are: ${shown.join(", ")}${toolIds.length > shown.length ? ` and ${toolIds.length - shown.length} more` : ""}.`;
}

function fieldsOf(given: unknown): Fields | undefined {
  if (given === undefined || given === null) return {};
  return typeof given === "object" && !Array.isArray(given) ? (given as Fields) : undefined;
}

function parsed(value: string): Fields | undefined {
  try {
    const read: unknown = JSON.parse(value);
    return read === null ? undefined : fieldsOf(read);
  } catch {
    return undefined;
  }
}

function notText(fields: Fields, names: readonly string[]): string[] {
  return names.filter((n) => fields[n] !== undefined && fields[n] !== null && typeof fields[n] !== "string").map((n) => `${n} must be a text`);
}

function unknown(fields: Fields, names: readonly string[]): string[] {
  const others = Object.keys(fields).filter((n) => !names.includes(n));
  return others.length === 0 ? [] : [`${others.slice(0, 5).join(", ")} is not among ${names.join(", ")}`];
}

function isChooser(value: unknown): boolean {
  return value === undefined || value === null || value === "search" || value === "model";
}

/** A list of facts; an object says the same, and models send one. */
function factsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value as string[];
  return Object.entries(fieldsOf(value) ?? {}).flatMap(([name, is]) => (is === false || is === null ? [] : [is === true ? name : `${name}=${String(is)}`]));
}

function wrongFacts(value: unknown): string[] {
  const facts = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.values(value) : (value ?? []);
  const plain = Array.isArray(facts) && facts.every((fact) => (Array.isArray(value) ? typeof fact === "string" : typeof fact !== "object" || fact === null));
  if (!plain) return ['state must be a list of facts, such as ["logged_in", "branch=main"]'];
  if (facts.length > FACTS_MAX || factsOf(value).some((fact) => fact === "" || fact.length > FACT_MAX)) return [`state may have ${FACTS_MAX} facts of 1 to ${FACT_MAX} characters`];
  return [];
}

function isLimit(value: unknown): boolean {
  return value === undefined || value === null || (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LIMIT_MAX);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

function list(fields: Fields): string {
  return Object.keys(fields).slice(0, 5).map((k) => JSON.stringify(k)).join(", ");
}

function kindOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`;
}

function wrong(sentence: string): Read<never> {
  return { ok: false, text: sentence };
}
