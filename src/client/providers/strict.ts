import type { JsonObject } from "./json.js";
import { isObject } from "./json.js";

/** OpenAI's limits of one strict schema. */
const MOST_PROPERTIES = 5_000;
const MOST_VALUES = 1_000;
const MOST_TEXT = 120_000;

/** Why a schema is too large for strict mode; empty if it is not. */
export function strictSizeReasons(schema: JsonObject): string[] {
  let properties = 0;
  let values = 0;
  let text = 0;
  const open: unknown[] = [schema];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (Array.isArray(next)) open.push(...next);
    if (!isObject(next)) continue;
    for (const [keyword, value] of Object.entries(next)) {
      if ((keyword === "properties" || keyword === "$defs") && isObject(value)) {
        const names = Object.keys(value);
        if (keyword === "properties") properties += names.length;
        text += names.join("").length;
        open.push(...Object.values(value));
      } else if (keyword === "enum" && Array.isArray(value)) {
        values += value.length;
        text += value.map(String).join("").length;
      } else if (keyword === "items" || keyword === "anyOf") open.push(value);
    }
  }
  const over = (what: string, count: number, most: number) =>
    count > most ? [`${what}: ${count}, strict mode takes ${most}`] : [];
  return [
    ...over("properties", properties, MOST_PROPERTIES),
    ...over("listed values", values, MOST_VALUES),
    ...over("characters of names and values", text, MOST_TEXT),
  ];
}
