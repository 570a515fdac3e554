import type { Dialect } from "./dialects.js";
import type { Json, JsonObject } from "./json.js";
import { shortened, step } from "./json.js";
import type { Node, TypeName } from "./node.js";
import type { Losses } from "./report.js";

/** Longest text of one thing that a schema cannot say and its description says instead. */
const HINT_TEXT = 200;

const APPLIES: Readonly<Record<string, readonly TypeName[]>> = {
  minimum: ["number", "integer"],
  maximum: ["number", "integer"],
  exclusiveMinimum: ["number", "integer"],
  exclusiveMaximum: ["number", "integer"],
  multipleOf: ["number", "integer"],
  minLength: ["string"],
  maxLength: ["string"],
  pattern: ["string"],
  format: ["string", "number", "integer"],
  contentEncoding: ["string"],
  contentMediaType: ["string"],
  minItems: ["array"],
  maxItems: ["array"],
  uniqueItems: ["array"],
  minContains: ["array"],
  maxContains: ["array"],
  minProperties: ["object"],
  maxProperties: ["object"],
  dependentRequired: ["object"],
};
/** These say what a value means and refuse none. */
const ANNOTATIONS = new Set(["format", "contentEncoding", "contentMediaType"]);
const LOOKS_OR_REFERS_BACK = /\(\?(?:[=!]|<[=!])|\\[1-9]|\\k</;

/** Title and description, followed by what the schema cannot say. */
export function textsWith(node: Node, hints: readonly string[]): JsonObject {
  const all = [...hints];
  if (node.default !== undefined) all.push(hint("Default", node.default));
  if (node.examples && node.examples.length > 0) all.push(hint("Examples", node.examples));
  const description = [node.description ?? "", all.length > 0 ? `(${all.join("; ")})` : ""].filter((t) => t !== "").join(" ");
  return { ...(node.title === undefined ? {} : { title: node.title }), ...(description === "" ? {} : { description }) };
}

export function hint(what: string, value: Json): string {
  return `${what}: ${shortened(typeof value === "string" ? value : JSON.stringify(value), HINT_TEXT)}`;
}

/** The limits of a value of these types that the dialect can say. The others go to `hints`, and to `losses`. */
export function limitsFor(
  node: Node,
  types: readonly TypeName[],
  dialect: Dialect,
  hints: string[],
  losses: Losses,
): JsonObject {
  const kept: Record<string, Json> = {};
  for (const [keyword, value] of node.limits) {
    if (!types.some((type) => APPLIES[keyword]?.includes(type))) continue;
    if (sayable(keyword, value, dialect)) kept[keyword] = value;
    else if (isWholeBound(keyword, value, types)) tighten(kept, keyword, value);
    else {
      hints.push(hint(keyword, value));
      if (!ANNOTATIONS.has(keyword)) losses.add(step(node.at, keyword), `${keyword} is only in the description`, "wider");
    }
  }
  return kept;
}

function sayable(keyword: string, value: Json, dialect: Dialect): boolean {
  if (!dialect.limits.has(keyword)) return false;
  if (keyword === "format") return dialect.formats === undefined || dialect.formats.has(value as string);
  return !(keyword === "pattern" && dialect.strict && LOOKS_OR_REFERS_BACK.test(value as string));
}

function isWholeBound(keyword: string, value: Json, types: readonly TypeName[]): value is number {
  return keyword.startsWith("exclusive") && Number.isSafeInteger(value) && !types.includes("number");
}

/** For whole numbers "more than 0" is "at least 1". */
function tighten(kept: Record<string, Json>, keyword: string, value: number): void {
  if (keyword === "exclusiveMinimum") kept["minimum"] = Math.max(value + 1, (kept["minimum"] as number) ?? value + 1);
  else kept["maximum"] = Math.min(value - 1, (kept["maximum"] as number) ?? value - 1);
}
