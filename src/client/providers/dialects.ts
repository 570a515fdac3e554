import type { KeyRule } from "./names.js";

/** What a provider's reduced form of JSON Schema can say. Unions are anyOf with nothing but texts beside it, everywhere. */
export interface Dialect {
  /** Every object is closed and requires all of its properties: OpenAI's strict mode. */
  readonly strict: boolean;
  /** References to `$defs` may lead back to themselves. */
  readonly parts: boolean;
  /** `type` may be a list. */
  readonly typeLists: boolean;
  /** `prefixItems` is understood. */
  readonly tuples: boolean;
  /** Objects without named properties, and values of any type, can be said; else they are written as JSON text. */
  readonly free: boolean;
  /** `additionalProperties` is understood. */
  readonly others: boolean;
  /** Types whose values may be listed. */
  readonly listed: readonly string[];
  readonly limits: ReadonlySet<string>;
  /** Formats that may be named; undefined for any. */
  readonly formats?: ReadonlySet<string>;
  readonly keys?: KeyRule;
  /** Deepest nesting of objects and lists. */
  readonly depth: number;
}

/** What OpenAI's Structured Outputs document as supported. */
export const OPENAI_STRICT: Dialect = {
  strict: true,
  parts: true,
  typeLists: true,
  tuples: false,
  free: false,
  others: false,
  listed: ["string", "number", "integer", "boolean", "null"],
  limits: new Set([
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
  ]),
  formats: new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
  depth: 10,
};

const GEMINI_KEYS: KeyRule = { pattern: /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, length: 64 };

/** What Gemini documents of JSON Schema. */
export const GEMINI_JSON: Dialect = {
  strict: false,
  parts: false,
  typeLists: true,
  tuples: true,
  free: true,
  others: true,
  listed: ["string", "number", "integer"],
  limits: new Set(["format", "minimum", "maximum", "minItems", "maxItems"]),
  keys: GEMINI_KEYS,
  depth: 24,
};

/** Gemini's own `Schema` message. */
export const GEMINI_SUBSET: Dialect = {
  strict: false,
  parts: false,
  typeLists: false,
  tuples: false,
  free: false,
  others: false,
  listed: ["string"],
  limits: new Set([
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
  ]),
  formats: new Set(["date-time", "date", "email", "byte", "password", "float", "double", "int32", "int64"]),
  keys: GEMINI_KEYS,
  depth: 24,
};

/** Top-level keys of Anthropic's `input_schema`. */
export const ANTHROPIC_KEYS: KeyRule = { pattern: /^[A-Za-z0-9_.-]{1,64}$/, length: 64 };
