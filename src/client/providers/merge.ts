import type { Json } from "./json.js";
import { equalJson, isObject } from "./json.js";
import type { Node, Schema, TypeName } from "./node.js";
import { acceptsAll, emptyNode } from "./node.js";
import type { Losses } from "./report.js";

/** Merging goes no deeper than this; below it the first of two schemas stands. */
const DEPTH = 16;
/** Schemas that hold for one value at once. */
const MOST_TOGETHER = 200;

/**
 * A schema that accepts at least what both accept. Where that is more than both accept, `losses` says so. The texts of
 * `a` win.
 */
export function merged(a: Node, b: Node, losses: Losses, depth = 0): Node {
  if (acceptsAll(b)) return { ...a, ...textsOf(b), ...textsOf(a) };
  if (acceptsAll(a)) return { ...b, ...textsOf(b), ...textsOf(a) };
  const wider = (what: string) => losses.add(a.at, what, "wider");
  if (depth > DEPTH) {
    wider("two schemas that both hold here are too deep to be put together, and one is left out");
    return a;
  }
  return {
    at: a.at,
    ...textsOf(b),
    ...textsOf(a),
    ...bothRefs(a, b),
    ...bothTypes(a, b),
    ...bothValues(a, b),
    limits: bothLimits(a, b, wider),
    ...bothProperties(a, b, losses, depth, wider),
    required: [...new Set([...a.required, ...b.required])],
    patterns: bothMaps(a.patterns, b.patterns, losses, depth),
    ...bothItems(a, b, losses, depth, wider),
    ...bothUnions(a, b, wider),
    rest: bothMaps(a.rest, b.rest, losses, depth, wider),
    dependentSchemas: bothMaps(a.dependentSchemas, b.dependentSchemas, losses, depth),
  };
}

/**
 * The node without its reference: what the reference leads to, and what stands beside it. A circle of references
 * restricts nothing.
 */
export function resolved(node: Node, schema: Schema, losses: Losses): Node {
  let here = node;
  const seen = new Set<string>();
  while (here.ref !== undefined) {
    const { ref, ...beside } = here;
    const target = schema.parts.get(ref);
    if (!target || seen.has(ref)) return beside;
    seen.add(ref);
    here = merged({ ...beside, at: node.at }, target, losses);
  }
  return here;
}

/** The texts of a node that are there. */
export function textsOf(node: Node): Pick<Node, "title" | "description" | "default" | "examples"> {
  return {
    ...(node.title === undefined ? {} : { title: node.title }),
    ...(node.description === undefined ? {} : { description: node.description }),
    ...(node.default === undefined ? {} : { default: node.default }),
    ...(node.examples === undefined ? {} : { examples: node.examples }),
  };
}

type Wider = (what: string) => void;

/** A second reference goes under allOf, see `bothUnions`. */
function bothRefs(a: Node, b: Node): { ref?: string } {
  const ref = a.ref ?? b.ref;
  return ref === undefined ? {} : { ref };
}

function bothTypes(a: Node, b: Node): { types?: TypeName[] | readonly TypeName[] } {
  if (!a.types || !b.types) return a.types || b.types ? { types: (a.types ?? b.types) as readonly TypeName[] } : {};
  const within = (type: TypeName, list: readonly TypeName[]) =>
    list.includes(type) || (type === "integer" && list.includes("number"));
  const types = [...a.types.filter((t) => within(t, b.types ?? [])), ...b.types.filter((t) => within(t, a.types ?? []))];
  return { types: [...new Set(types)] };
}

/** Where no value is in both lists nothing is accepted, and no list is left. */
function bothValues(a: Node, b: Node): { values?: readonly Json[]; types?: readonly TypeName[] } {
  if (!a.values || !b.values) return a.values || b.values ? { values: (a.values ?? b.values) as readonly Json[] } : {};
  const values = a.values.filter((v) => b.values?.some((w) => equalJson(v, w)));
  return values.length > 0 ? { values } : { types: [] };
}

const HIGHER_WINS = new Set(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"]);
const LOWER_WINS = new Set(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"]);

function bothLimits(a: Node, b: Node, wider: Wider): Map<string, Json> {
  const limits = new Map(a.limits);
  for (const [keyword, theirs] of b.limits) {
    const ours = limits.get(keyword);
    if (ours === undefined || equalJson(ours, theirs)) limits.set(keyword, theirs);
    else if (HIGHER_WINS.has(keyword)) limits.set(keyword, Math.max(ours as number, theirs as number));
    else if (LOWER_WINS.has(keyword)) limits.set(keyword, Math.min(ours as number, theirs as number));
    else if (keyword === "dependentRequired" && isObject(ours) && isObject(theirs))
      limits.set(keyword, bothDependent(ours, theirs));
    else wider(`of two ${keyword}s that both hold one is left out`);
  }
  return limits;
}

function bothDependent(a: { readonly [key: string]: Json }, b: { readonly [key: string]: Json }): Json {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  const list = (from: { readonly [key: string]: Json }, key: string) =>
    (Object.hasOwn(from, key) ? from[key] : []) as readonly Json[];
  return Object.fromEntries([...keys].map((key) => [key, [...new Set([...list(a, key), ...list(b, key)])]]));
}

function bothProperties(a: Node, b: Node, losses: Losses, depth: number, wider: Wider) {
  const properties = bothMaps(a.properties, b.properties, losses, depth);
  const others = (node: Node) => typeof node.additional === "object" || node.additional === false;
  const missing = (from: Node, node: Node) => [...from.properties.keys()].some((key) => !node.properties.has(key));
  if ((others(a) && missing(b, a)) || (others(b) && missing(a, b)))
    wider("keys that one of two schemas forbids or restricts are taken as the other one describes them");
  const additional = bothAdditional(a, b, losses, depth);
  return { properties, ...(additional === undefined ? {} : { additional }) };
}

function bothAdditional(a: Node, b: Node, losses: Losses, depth: number): Node | boolean | undefined {
  if (a.additional === undefined || a.additional === true) return b.additional ?? a.additional;
  if (b.additional === undefined || b.additional === true) return a.additional;
  if (a.additional === false || b.additional === false) return false;
  return merged(a.additional, b.additional, losses, depth + 1);
}

function bothItems(a: Node, b: Node, losses: Losses, depth: number, wider: Wider): { prefix?: readonly Node[]; items?: Node | boolean } {
  if (a.prefix && b.prefix) wider("of two lists of item schemas that both hold one is left out");
  const prefix = a.prefix ?? b.prefix;
  const both =
    typeof a.items === "object" && typeof b.items === "object"
      ? merged(a.items, b.items, losses, depth + 1)
      : typeof a.items === "object"
        ? a.items
        : (b.items ?? a.items);
  // A false for the items behind a prefix would wrongly hold for a list that has no prefix of its own.
  const items = both === false && !prefix ? undefined : both;
  return { ...(prefix ? { prefix } : {}), ...(items === undefined ? {} : { items }) };
}

function bothUnions(a: Node, b: Node, wider: Wider): Pick<Node, "anyOf" | "oneOf" | "allOf"> {
  const allOf = [...(a.allOf ?? []), ...(b.allOf ?? [])];
  if (a.ref !== undefined && b.ref !== undefined && a.ref !== b.ref) allOf.push({ ...emptyNode(b.at), ref: b.ref });
  const found: { anyOf?: readonly Node[]; oneOf?: readonly Node[] } = {};
  for (const keyword of ["anyOf", "oneOf"] as const) {
    const [ours, theirs] = [a[keyword], b[keyword]];
    if (ours && theirs) allOf.push({ ...emptyNode(b.at), [keyword]: theirs });
    const list = ours ?? theirs;
    if (list) found[keyword] = list;
  }
  if (allOf.length > MOST_TOGETHER) wider(`more than ${MOST_TOGETHER} schemas hold here at once, and the others are left out`);
  return { ...found, ...(allOf.length > 0 ? { allOf: allOf.slice(0, MOST_TOGETHER) } : {}) };
}

function bothMaps(
  a: ReadonlyMap<string, Node>,
  b: ReadonlyMap<string, Node>,
  losses: Losses,
  depth: number,
  conflict?: Wider,
): Map<string, Node> {
  const both = new Map(a);
  for (const [key, theirs] of b) {
    const ours = both.get(key);
    if (!ours) both.set(key, theirs);
    else if (conflict) conflict(`of two ${key}s that both hold one is left out`);
    else both.set(key, merged(ours, theirs, losses, depth + 1));
  }
  return both;
}
