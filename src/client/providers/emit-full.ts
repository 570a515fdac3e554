import type { Json, JsonObject } from "./json.js";
import type { Node, Schema } from "./node.js";
import { acceptsAll, isNever, recursiveParts } from "./node.js";

/** A part used once is put in its place, unless that would nest so deep. */
const INLINE_DEPTH = 24;

/**
 * A flat root as JSON Schema of draft 2020-12, everything that the tool said included. References that are used once are put in
 * place; others lead to `$defs`. `keys` names the root's properties.
 */
export function emitFull(root: Node, schema: Schema, keys: ReadonlyMap<string, string>): JsonObject {
  return new FullEmitter(schema, keys).emit(root);
}

class FullEmitter {
  readonly #recursive: ReadonlySet<string>;
  readonly #open: string[] = [];
  readonly #wanted = new Set<string>();

  constructor(
    private readonly schema: Schema,
    private readonly keys: ReadonlyMap<string, string>,
  ) {
    this.#recursive = recursiveParts(schema.parts);
  }

  emit(root: Node): JsonObject {
    const out = this.node(root, 0, this.keys);
    const parts: [string, JsonObject][] = [];
    for (let name = this.#open.pop(); name !== undefined; name = this.#open.pop()) {
      const part = this.schema.parts.get(name);
      if (part) parts.push([name, this.node(part, 1)]);
    }
    return parts.length === 0 ? out : { ...out, $defs: Object.fromEntries(parts.sort(([a], [b]) => (a < b ? -1 : 1))) };
  }

  private node(node: Node, depth: number, keys?: ReadonlyMap<string, string>): JsonObject {
    if (isNever(node)) return { not: {} };
    const at = depth + 1;
    const map = (nodes: ReadonlyMap<string, Node>, names?: ReadonlyMap<string, string>) =>
      Object.fromEntries([...nodes].map(([key, child]) => [names?.get(key) ?? key, this.node(child, at)]));
    const list = (keyword: string, nodes: readonly Node[] | undefined) =>
      nodes ? { [keyword]: nodes.map((child) => this.node(child, at)) } : {};
    const one = (keyword: string, child: Node | boolean | undefined) =>
      child === undefined ? {} : { [keyword]: typeof child === "boolean" ? child : this.node(child, at) };
    const arrays = node.types?.includes("array") && node.items === undefined;
    return {
      ...this.reference(node, depth),
      ...typed(node),
      ...texts(node),
      ...(node.values ? (node.values.length === 1 ? { const: node.values[0] as Json } : { enum: node.values }) : {}),
      ...Object.fromEntries(node.limits),
      ...(node.properties.size > 0 || keys ? { properties: map(node.properties, keys) } : {}),
      ...(node.required.length > 0 ? { required: node.required.map((key) => keys?.get(key) ?? key) } : {}),
      ...(node.patterns.size > 0 ? { patternProperties: map(node.patterns) } : {}),
      ...one("additionalProperties", node.additional),
      ...list("prefixItems", node.prefix),
      // OpenAI refuses a list that does not say what it holds.
      ...(arrays ? { items: {} } : one("items", node.items)),
      ...list("anyOf", node.anyOf),
      ...list("oneOf", node.oneOf),
      ...list("allOf", node.allOf),
      ...map(node.rest),
      ...(node.dependentSchemas.size > 0 ? { dependentSchemas: map(node.dependentSchemas) } : {}),
    };
  }

  private reference(node: Node, depth: number): JsonObject {
    const name = node.ref;
    if (name === undefined) return {};
    const part = this.schema.parts.get(name);
    const { ref: _ref, ...beside } = node;
    const once = this.schema.uses.get(name) === 1 && !this.#recursive.has(name) && depth < INLINE_DEPTH;
    if (part && once && acceptsAll(beside)) return this.node(part, depth);
    if (!this.#wanted.has(name)) {
      this.#wanted.add(name);
      this.#open.push(name);
    }
    return { $ref: `#/$defs/${name}` };
  }
}

function typed(node: Node): JsonObject {
  if (!node.types) return {};
  return { type: node.types.length === 1 ? (node.types[0] as string) : node.types };
}

function texts(node: Node): JsonObject {
  return {
    ...(node.title === undefined ? {} : { title: node.title }),
    ...(node.description === undefined ? {} : { description: node.description }),
    ...(node.default === undefined ? {} : { default: node.default }),
    ...(node.examples === undefined ? {} : { examples: node.examples }),
  };
}
