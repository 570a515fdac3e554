import type { Json, JsonObject } from "./json.js";
import { equalJson, isObject, step, writable } from "./json.js";
import type { Node, Schema, TypeName } from "./node.js";
import { emptyNode, endlessParts, neverNode, TYPES } from "./node.js";
import { readLimits } from "./read-limits.js";
import type { Losses } from "./report.js";

/** More schemas inside one tool than any model can use; what follows references to references is counted, too. */
const MOST_NODES = 20_000;
/** Parts that references may lead to. */
const MOST_PARTS = 500;

const SCHEMA_KEYWORDS = [
  "not",
  "if",
  "then",
  "else",
  "contains",
  "propertyNames",
  "unevaluatedProperties",
  "unevaluatedItems",
  "contentSchema",
] as const;

/** Says that a schema is too large to be read; its message is a reason for the report. */
export class TooLarge extends Error {}

/**
 * Reads an inputSchema of any draft. What is malformed is left out and named in `losses`; references are followed inside the
 * document only. Throws TooLarge. The document may nest at most as deep as the registry admits.
 */
export function readSchema(root: JsonObject, losses: Losses): Schema {
  return new Reader(root, losses).schema();
}

class Reader {
  readonly #parts = new Map<string, Node>();
  readonly #uses = new Map<string, number>();
  readonly #names = new Map<JsonObject, string>();
  /** Parts are read one after the other, so that a long chain of references needs no deep stack. */
  readonly #open: { name: string; source: JsonObject; at: string }[] = [];
  #nodes = 0;

  constructor(
    private readonly document: JsonObject,
    private readonly losses: Losses,
  ) {}

  schema(): Schema {
    const root = this.node(this.document, "");
    for (let next = this.#open.pop(); next; next = this.#open.pop()) {
      this.#parts.set(next.name, this.node(next.source, next.at));
    }
    for (const name of endlessParts(this.#parts)) {
      const at = this.#parts.get(name)?.at ?? "";
      this.lose(at, "it refers to itself without an end, and is taken as anything");
      this.#parts.set(name, emptyNode(at));
    }
    return { root, parts: this.#parts, uses: this.#uses };
  }

  private node(source: Json | undefined, at: string): Node {
    if (++this.#nodes > MOST_NODES)
      throw new TooLarge(`the inputSchema holds more than ${MOST_NODES} schemas: make it smaller`);
    if (source === false) return neverNode(at);
    if (!isObject(source)) {
      if (source !== true && source !== undefined) this.lose(at, "something that is no schema is left out");
      return emptyNode(at);
    }
    return {
      at,
      ...textsOf(source),
      ...this.reference(source, at),
      ...this.types(source, at),
      ...this.values(source, at),
      limits: readLimits(source, at, this.losses),
      properties: this.map(source["properties"], step(at, "properties")),
      required: stringsOf(source["required"]),
      ...this.additional(source, at),
      patterns: this.map(source["patternProperties"], step(at, "patternProperties")),
      ...this.items(source, at),
      ...this.combined(source, at),
      rest: this.rest(source, at),
      dependentSchemas: this.dependents(source, at),
    };
  }

  private reference(source: JsonObject, at: string): { ref?: string } {
    const ref = source["$ref"] ?? source["$dynamicRef"] ?? source["$recursiveRef"];
    if (typeof ref !== "string") return {};
    const target = this.target(ref);
    if (target === undefined) {
      this.lose(at, `the reference ${JSON.stringify(ref.slice(0, 100))} leads nowhere inside the schema`);
      return {};
    }
    const name = this.#names.get(target) ?? this.open(target, ref);
    this.#uses.set(name, (this.#uses.get(name) ?? 0) + 1);
    return { ref: name };
  }

  private open(source: JsonObject, ref: string): string {
    if (this.#names.size >= MOST_PARTS)
      throw new TooLarge(`references lead to more than ${MOST_PARTS} parts of the inputSchema: make it smaller`);
    const last = ref.slice(ref.lastIndexOf("/") + 1).replaceAll(/[^A-Za-z0-9_]/g, "_").slice(0, 40) || "part";
    const used = new Set(this.#names.values());
    let name = last;
    for (let i = 2; used.has(name); i++) name = `${last}_${i}`;
    this.#names.set(source, name);
    this.#open.push({ name, source, at: ref.slice(1) });
    return name;
  }

  /** JSON pointers and `#`; an address or an anchor is never looked for. */
  private target(ref: string): JsonObject | undefined {
    if (ref === "#") return this.document;
    if (!ref.startsWith("#/")) return undefined;
    let here: Json | undefined = this.document;
    for (const part of ref.slice(2).split("/")) {
      const key = unescaped(part);
      if (typeof here !== "object" || here === null || !Object.hasOwn(here, key)) return undefined;
      here = (here as JsonObject)[key];
    }
    return isObject(here) ? here : undefined;
  }

  private types(source: JsonObject, at: string): { types?: TypeName[] } {
    const given = source["type"];
    if (given === undefined) return {};
    const list = Array.isArray(given) ? given : [given];
    const known = TYPES.filter((type) => list.includes(type));
    if (known.length < new Set(list).size) {
      this.lose(step(at, "type"), `${JSON.stringify(given).slice(0, 100)} is not a list of JSON types`);
      return {};
    }
    if (known.length === 0) return {};
    return { types: known.includes("number") ? known.filter((type) => type !== "integer") : known };
  }

  private values(source: JsonObject, at: string): { values?: Json[] } {
    const list = source["enum"];
    const values = Array.isArray(list) ? list.filter((v, i) => list.findIndex((w) => equalJson(v, w)) === i) : undefined;
    const only = Object.hasOwn(source, "const") ? [source["const"] as Json] : undefined;
    const found = only && values ? only.filter((v) => values.some((w) => equalJson(v, w))) : (only ?? values);
    if (!found) return {};
    if (found.length > 0 && found.every(writable)) return { values: found };
    this.lose(at, "a list of values that nothing can match is left out");
    return {};
  }

  private additional(source: JsonObject, at: string): { additional?: Node | boolean } {
    const given = source["additionalProperties"];
    if (given === undefined || typeof given === "boolean") return given === undefined ? {} : { additional: given };
    return { additional: this.node(given, step(at, "additionalProperties")) };
  }

  /** Before draft 2020-12 a list under `items` was what `prefixItems` is now. */
  private items(source: JsonObject, at: string): { prefix?: Node[]; items?: Node | boolean } {
    const given = source["items"];
    const old = Array.isArray(given);
    const prefix = old ? given : source["prefixItems"];
    const rest = old ? source["additionalItems"] : given;
    return {
      ...(Array.isArray(prefix) && prefix.length > 0
        ? { prefix: prefix.map((item, i) => this.node(item, step(step(at, old ? "items" : "prefixItems"), i))) }
        : {}),
      ...(rest === undefined
        ? {}
        : { items: typeof rest === "boolean" ? rest : this.node(rest, step(at, old ? "additionalItems" : "items")) }),
    };
  }

  private combined(source: JsonObject, at: string): { anyOf?: Node[]; oneOf?: Node[]; allOf?: Node[] } {
    const found: { anyOf?: Node[]; oneOf?: Node[]; allOf?: Node[] } = {};
    for (const keyword of ["anyOf", "oneOf", "allOf"] as const) {
      const list = source[keyword];
      if (list === undefined) continue;
      if (Array.isArray(list) && list.length > 0)
        found[keyword] = list.map((item, i) => this.node(item, step(step(at, keyword), i)));
      else this.lose(step(at, keyword), "it is no list of schemas and is left out");
    }
    return found;
  }

  private rest(source: JsonObject, at: string): Map<string, Node> {
    const given = SCHEMA_KEYWORDS.filter((keyword) => source[keyword] !== undefined);
    return new Map(given.map((keyword) => [keyword, this.node(source[keyword], step(at, keyword))]));
  }

  private dependents(source: JsonObject, at: string): Map<string, Node> {
    const old = isObject(source["dependencies"])
      ? Object.fromEntries(Object.entries(source["dependencies"]).filter(([, value]) => !Array.isArray(value)))
      : undefined;
    return new Map([
      ...this.map(old, step(at, "dependencies")),
      ...this.map(source["dependentSchemas"], step(at, "dependentSchemas")),
    ]);
  }

  private map(given: Json | undefined, at: string): Map<string, Node> {
    if (given === undefined) return new Map();
    if (!isObject(given)) {
      this.lose(at, "it is no object of schemas and is left out");
      return new Map();
    }
    return new Map(Object.entries(given).map(([key, value]) => [key, this.node(value, step(at, key))]));
  }

  private lose(at: string, what: string): void {
    this.losses.add(at, what, "wider");
  }
}

function textsOf(source: JsonObject): Pick<Node, "title" | "description" | "default" | "examples"> {
  const { title, description, examples } = source;
  const fallback = source["default"];
  return {
    ...(typeof title === "string" && title !== "" ? { title } : {}),
    ...(typeof description === "string" && description !== "" ? { description } : {}),
    ...(fallback !== undefined && writable(fallback) ? { default: fallback } : {}),
    ...(Array.isArray(examples) && writable(examples) ? { examples } : {}),
  };
}

function stringsOf(given: Json | undefined): string[] {
  if (!Array.isArray(given)) return [];
  return [...new Set(given.filter((item): item is string => typeof item === "string"))];
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return part;
  }
}
