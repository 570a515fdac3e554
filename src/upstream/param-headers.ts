/** What a request of 2026-07-28 repeats of its arguments in headers, for whatever stands before the server and reads no bodies. */
import { isRecord } from "./messages.js";

type Schema = Readonly<Record<string, unknown>>;

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}$/;
const PLAIN = /^[\x20-\x7e\t]+$/;
/** Headers of one call: what Node's servers take by default is 16 KiB for all together. */
const MAX_HEADERS = 64;
const MAX_VALUE = 4_096;
/** How deep a parameter may lie that has a header. */
const MAX_DEPTH = 16;

/**
 * `mcp-param-…` headers of a call: for each property that `inputSchema` gives an `x-mcp-header`, along `properties` alone, the
 * argument's value. Absent, null, long and unfitting ones have no header.
 */
export function paramHeaders(inputSchema: unknown, args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  if (isRecord(inputSchema)) collect(inputSchema, args, headers, 0);
  return headers;
}

function collect(schema: Schema, args: unknown, headers: Record<string, string>, depth: number): void {
  const { properties } = schema;
  if (!isRecord(properties) || !isRecord(args) || depth > MAX_DEPTH) return;
  for (const [key, property] of Object.entries(properties)) {
    if (!isRecord(property) || !Object.hasOwn(args, key) || Object.keys(headers).length >= MAX_HEADERS) continue;
    const name = property["x-mcp-header"];
    const text = textOf(args[key]);
    if (typeof name === "string" && TOKEN.test(name) && text !== undefined) headers[`mcp-param-${name.toLowerCase()}`] = headerText(text);
    collect(property, args[key], headers, depth + 1);
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return Buffer.byteLength(value) <= MAX_VALUE ? value : undefined;
  if (typeof value === "boolean") return String(value);
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

/** As MCP writes a text into a header: as it is where it can stand there, else in Base64 between marks. */
export function headerText(text: string): string {
  const marked = text.startsWith("=?base64?") && text.endsWith("?=");
  if (PLAIN.test(text) && text === text.trim() && !marked) return text;
  return `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}
