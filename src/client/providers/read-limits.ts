import type { Json, JsonObject } from "./json.js";
import { isObject, step } from "./json.js";
import type { Losses } from "./report.js";

const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] as const;
const COUNTS = [
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "minContains",
  "maxContains",
  "minProperties",
  "maxProperties",
] as const;
const TEXTS = ["pattern", "format", "contentEncoding", "contentMediaType"] as const;
/** No provider takes longer ones. */
const PATTERN_LENGTH = 2_000;

/** The keywords of a schema that hold no schema, in the terms of draft 2020-12. What is malformed is named in `losses`. */
export function readLimits(source: JsonObject, at: string, losses: Losses): Map<string, Json> {
  const limits = new Map<string, Json>();
  const lose = (keyword: string) =>
    losses.add(step(at, keyword), "its value is not what the keyword takes, and it is left out", "wider");

  for (const keyword of NUMBERS) {
    const value = source[keyword];
    if (typeof value === "number" && Number.isFinite(value) && (keyword !== "multipleOf" || value > 0))
      limits.set(keyword, value);
    else if (value !== undefined && typeof value !== "boolean") lose(keyword);
  }
  draft4Bounds(source, limits);
  for (const keyword of COUNTS) {
    const value = source[keyword];
    if (typeof value === "number" && Number.isInteger(value) && value >= 0) limits.set(keyword, value);
    else if (value !== undefined) lose(keyword);
  }
  for (const keyword of TEXTS) {
    const value = source[keyword];
    if (typeof value === "string" && (keyword !== "pattern" || isPattern(value))) limits.set(keyword, value);
    else if (value !== undefined) lose(keyword);
  }
  if (source["uniqueItems"] === true) limits.set("uniqueItems", true);
  const dependent = dependentRequired(source);
  if (Object.keys(dependent).length > 0) limits.set("dependentRequired", dependent);
  return limits;
}

/** In draft 4 `exclusiveMinimum: true` said that `minimum` itself is not allowed. */
function draft4Bounds(source: JsonObject, limits: Map<string, Json>): void {
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    const value = limits.get(bound);
    if (source[flag] !== true || value === undefined) continue;
    limits.delete(bound);
    limits.set(flag, value);
  }
}

/** It is only compiled, never run: what a registrant wrote may take for ever on the wrong text. */
function isPattern(pattern: string): boolean {
  if (pattern.length > PATTERN_LENGTH) return false;
  try {
    new RegExp(pattern, "u");
    return true;
  } catch {
    return false;
  }
}

function dependentRequired(source: JsonObject): JsonObject {
  const lists = [source["dependencies"], source["dependentRequired"]].flatMap((given) =>
    isObject(given) ? Object.entries(given) : [],
  );
  return Object.fromEntries(
    lists.flatMap(([key, value]) =>
      Array.isArray(value) && value.every((item) => typeof item === "string") ? [[key, value]] : [],
    ),
  );
}
