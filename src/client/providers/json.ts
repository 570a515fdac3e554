/** Any JSON value, as JSON.parse gives it. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One step further in a JSON pointer. */
export function step(at: string, key: string | number): string {
  return `${at}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

/** Deepest nesting of containers, counted without recursion and no further than `limit` + 1. */
export function depthOf(value: unknown, limit: number): number {
  let level: unknown[] = [value];
  let depth = 0;
  while (level.length > 0 && depth <= limit) {
    const containers = level.filter((v): v is object => typeof v === "object" && v !== null);
    if (containers.length === 0) return depth;
    depth++;
    level = containers.flatMap((v) => Object.values(v));
  }
  return depth;
}

/** Equality of JSON values; the order of keys does not matter. Neither may nest deeper than a few hundred levels. */
export function equalJson(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => equalJson(item, b[i] as Json))
    );
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equalJson(a[key] as Json, b[key] as Json))
  );
}

/** Whether every number in it can be written as JSON: 1e400 is read as Infinity and would be written as null. */
export function writable(value: Json): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.values(value).every((item) => writable(item as Json));
}

/** A text no longer than `limit` UTF-16 code units, cut between characters, with a mark where it was cut. */
export function shortened(text: string, limit: number): string {
  if (text.length <= limit) return text;
  let end = Math.max(0, limit - 1);
  const code = text.charCodeAt(end - 1);
  if (code >= 0xd800 && code <= 0xdbff) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}
