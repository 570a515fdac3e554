import type { Json } from "./json.js";

export const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
export type TypeName = (typeof TYPES)[number];

/**
 * One JSON Schema, read: of whatever draft, with rubbish taken out, in the terms of draft 2020-12. Absent means that
 * the schema says nothing about it.
 */
export interface Node {
  /** JSON pointer in the tool's inputSchema, for reports. */
  readonly at: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: Json;
  readonly examples?: readonly Json[];
  /** Key in `Schema.parts`; what stands beside it holds as well. */
  readonly ref?: string;
  /** Empty: nothing is accepted. */
  readonly types?: readonly TypeName[];
  /** From `enum` or `const`. */
  readonly values?: readonly Json[];
  /** Keywords whose value holds no schema: bounds, pattern, format and so on. */
  readonly limits: ReadonlyMap<string, Json>;
  readonly properties: ReadonlyMap<string, Node>;
  readonly required: readonly string[];
  readonly additional?: Node | boolean;
  readonly patterns: ReadonlyMap<string, Node>;
  readonly prefix?: readonly Node[];
  readonly items?: Node | boolean;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
  readonly allOf?: readonly Node[];
  /** Keywords that hold one schema and that few providers know: not, if, then, else, contains and so on. */
  readonly rest: ReadonlyMap<string, Node>;
  readonly dependentSchemas: ReadonlyMap<string, Node>;
}

/** A whole schema: its root, and the parts that references lead to. */
export interface Schema {
  readonly root: Node;
  readonly parts: ReadonlyMap<string, Node>;
  /** How many references lead to each part. */
  readonly uses: ReadonlyMap<string, number>;
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** A schema that says nothing. */
export function emptyNode(at: string): Node {
  return { at, limits: NONE, properties: NONE, required: [], patterns: NONE, rest: NONE, dependentSchemas: NONE };
}

/** A schema that accepts nothing. */
export function neverNode(at: string): Node {
  return { ...emptyNode(at), types: [] };
}

export function isNever(node: Node): boolean {
  return node.types?.length === 0;
}

/** Whether it restricts nothing; texts do not count. */
export function acceptsAll(node: Node): boolean {
  return (
    node.ref === undefined &&
    node.types === undefined &&
    node.values === undefined &&
    node.limits.size === 0 &&
    node.properties.size === 0 &&
    node.required.length === 0 &&
    (node.additional === undefined || node.additional === true) &&
    node.patterns.size === 0 &&
    node.prefix === undefined &&
    (node.items === undefined || node.items === true) &&
    node.anyOf === undefined &&
    node.oneOf === undefined &&
    node.allOf === undefined &&
    node.rest.size === 0 &&
    node.dependentSchemas.size === 0
  );
}

/** Every schema directly inside. */
export function childrenOf(node: Node): Node[] {
  const single = [node.additional, node.items].filter((child): child is Node => typeof child === "object");
  return [
    ...single,
    ...node.properties.values(),
    ...node.patterns.values(),
    ...(node.prefix ?? []),
    ...(node.anyOf ?? []),
    ...(node.oneOf ?? []),
    ...(node.allOf ?? []),
    ...node.rest.values(),
    ...node.dependentSchemas.values(),
  ];
}

/** Every schema directly inside that judges the same value as the node itself. */
function besidesOf(node: Node): Node[] {
  const conditions = ["not", "if", "then", "else"].flatMap((keyword) => node.rest.get(keyword) ?? []);
  const combined = [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])];
  return [...conditions, ...combined, ...node.dependentSchemas.values()];
}

/** The parts that lead back to themselves. */
export function recursiveParts(parts: ReadonlyMap<string, Node>): Set<string> {
  return circles(parts, childrenOf);
}

/** The parts that lead back to themselves without getting deeper into the value: nobody can judge by them. */
export function endlessParts(parts: ReadonlyMap<string, Node>): Set<string> {
  return circles(parts, besidesOf);
}

function circles(parts: ReadonlyMap<string, Node>, inside: (node: Node) => Node[]): Set<string> {
  const direct = new Map([...parts].map(([name, node]) => [name, refsIn(node, inside)]));
  const recursive = new Set<string>();
  for (const name of parts.keys()) {
    const seen = new Set<string>();
    const open = [...(direct.get(name) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(...(direct.get(next) ?? []));
    }
    if (seen.has(name)) recursive.add(name);
  }
  return recursive;
}

function refsIn(root: Node, inside: (node: Node) => Node[]): Set<string> {
  const refs = new Set<string>();
  const open = [root];
  for (let node = open.pop(); node; node = open.pop()) {
    if (node.ref !== undefined) refs.add(node.ref);
    open.push(...inside(node));
  }
  return refs;
}
