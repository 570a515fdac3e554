import type { Json } from "./json.js";
import { equalJson } from "./json.js";
import { merged, resolved } from "./merge.js";
import type { Node, Schema } from "./node.js";
import { emptyNode, isNever } from "./node.js";
import type { Losses } from "./report.js";

/** Combinators inside combinators are followed this far. */
const DEPTH = 8;
/** Schemas looked at for one root: references may make a small one endless. */
const STEPS = 2_000;
/** Groups of arguments that a note lists. */
const GROUPS = 12;

const NOTHING_FITS = "the schema contradicts itself and accepts no arguments at all: what contradicts is left out";

export interface Flat {
  /** Without reference, allOf, anyOf, oneOf, if, not and what else combines schemas; of type object. */
  readonly node: Node;
  /** Sentences for the tool's description: what the schema no longer says. */
  readonly notes: readonly string[];
}

/**
 * The root of an inputSchema as one plain object: no provider takes combinators there. Accepts at least what the root
 * accepts: the properties of all alternatives, required only what every one of them requires.
 */
export function flattened(schema: Schema, losses: Losses): Flat {
  const notes: string[] = [];
  const node = new Flattener(schema, losses, notes).flat(schema.root, 0);
  if (node.types && !node.types.includes("object")) losses.add("", NOTHING_FITS, "wider");
  const { values, ...open } = node;
  if (values) losses.add("", "a list of whole sets of arguments is left out", "wider");
  return { node: { ...open, at: "", types: ["object"] }, notes };
}

class Flattener {
  #steps = 0;

  constructor(
    private readonly schema: Schema,
    private readonly losses: Losses,
    private readonly notes: string[],
  ) {}

  flat(given: Node, depth: number): Node {
    const { allOf = [], anyOf, oneOf, rest, dependentSchemas, ...plain } = resolved(given, this.schema, this.losses);
    let node: Node = { ...plain, rest: new Map(), dependentSchemas: new Map() };
    if (depth > DEPTH || ++this.#steps > STEPS) {
      this.lose(node.at, "combinators nest too deep here and are left out");
      return node;
    }
    const closed = rest.get("unevaluatedProperties");
    for (const branch of allOf) node = merged(node, this.flat(branch, depth + 1), this.losses);
    if (oneOf) node = this.alternatives(node, oneOf, "exactly one", depth);
    if (anyOf) node = this.alternatives(node, anyOf, "at least one", depth);
    node = this.conditions(node, rest, depth);
    for (const [key, dependent] of dependentSchemas) {
      this.note(node, `If ${key} is given, more may be required: `, [dependent], depth);
      node = this.optional(node, [dependent], depth);
    }
    if (closed && isNever(closed) && node.additional === undefined) node = { ...node, additional: false };
    return node;
  }

  private alternatives(node: Node, list: readonly Node[], how: string, depth: number): Node {
    const branches = list
      .map((branch) => this.flat(branch, depth + 1))
      .filter((branch) => !branch.types || branch.types.includes("object"));
    const [only, second] = branches;
    if (!only) {
      this.lose(node.at, NOTHING_FITS);
      return node;
    }
    if (!second) return merged(node, only, this.losses);
    this.lose(node.at, `the arguments must fit ${how} of ${branches.length} alternatives: only the description says so`);
    this.describe(node, branches, how);
    return joined(node, branches, this.losses);
  }

  private conditions(given: Node, rest: ReadonlyMap<string, Node>, depth: number): Node {
    let node = given;
    const [when, then, otherwise] = [rest.get("if"), rest.get("then"), rest.get("else")];
    if (when && (then || otherwise)) {
      const condition = groupText(resolved(when, this.schema, this.losses), []);
      if (then) this.note(node, `If ${condition || "a condition holds"}: `, [then], depth);
      if (otherwise) this.note(node, `Unless ${condition || "a condition holds"}: `, [otherwise], depth);
      node = this.optional(node, [then, otherwise].filter((n): n is Node => n !== undefined), depth);
    }
    for (const keyword of rest.keys())
      if (!["if", "then", "else", "unevaluatedProperties"].includes(keyword))
        this.lose(node.at, `${keyword} at the root is left out`);
    return node;
  }

  /** Takes over the properties of schemas that hold only sometimes; requires nothing of them. */
  private optional(node: Node, list: readonly Node[], depth: number): Node {
    const branches = list.map((branch) => this.flat(branch, depth + 1));
    return joined(node, [...branches, emptyNode(node.at)], this.losses);
  }

  private note(node: Node, start: string, list: readonly Node[], depth: number): void {
    this.lose(node.at, "a condition on the arguments is only in the description");
    const texts = list.map((n) => groupText(this.flat(n, depth + 1), node.required)).filter((t) => t !== "");
    if (texts.length > 0) this.add(`${start}${texts.join("; ")}.`);
  }

  private describe(node: Node, branches: readonly Node[], how: string): void {
    const texts = [...new Set(branches.map((branch) => groupText(branch, node.required)))].filter((t) => t !== "");
    if (texts.length < 2) return;
    const listed = texts.slice(0, GROUPS).map((text, i) => `(${i + 1}) ${text}`);
    const more = texts.length > GROUPS ? `; and ${texts.length - GROUPS} more` : "";
    this.add(`Give ${how} of these groups of arguments: ${listed.join("; ")}${more}.`);
  }

  private add(note: string): void {
    if (this.notes.length < GROUPS && !this.notes.includes(note)) this.notes.push(note);
  }

  private lose(at: string, what: string): void {
    this.losses.add(at, what, "wider");
  }
}

/** What a group of arguments asks for, beyond what is required anyway. */
function groupText(node: Node, always: readonly string[]): string {
  const fixed = [...node.properties].filter(([, value]) => value.values?.length === 1);
  const texts = fixed.map(([key, value]) => `${key} = ${JSON.stringify(value.values?.[0]).slice(0, 60)}`);
  const named = new Set(fixed.map(([key]) => key));
  const required = node.required.filter((key) => !always.includes(key) && !named.has(key));
  return [...texts, ...required].slice(0, 20).join(", ");
}

/** One object that takes what the node and any of the branches take. */
function joined(node: Node, branches: readonly Node[], losses: Losses): Node {
  const keys = new Set(branches.flatMap((branch) => [...branch.properties.keys()]));
  const properties = new Map(node.properties);
  for (const key of keys) {
    const given = branches.flatMap((branch) => branch.properties.get(key) ?? []);
    const ours = properties.get(key);
    const everywhere = given.length === branches.length;
    if (!ours && !everywhere)
      losses.add(node.at, "a key that only some alternatives describe is always taken as they describe it", "narrower");
    if (!ours) properties.set(key, unionOf(given));
    else if (everywhere) properties.set(key, merged(ours, unionOf(given), losses));
  }
  const [first, ...others] = branches;
  const common = first?.required.filter((key) => others.every((branch) => branch.required.includes(key))) ?? [];
  const closed = node.additional === undefined && branches.every((branch) => branch.additional === false);
  return {
    ...node,
    properties,
    required: [...new Set([...node.required, ...common])],
    ...(closed ? { additional: false as const } : {}),
  };
}

/** What accepts what any of the schemas accepts; lists of values become one list. */
function unionOf(given: readonly Node[]): Node {
  const nodes = [...new Map(given.map((node) => [spelled(node), node])).values()];
  const first = nodes[0];
  if (!first) throw new Error("a union of nothing was asked for");
  if (nodes.length === 1) return first;
  if (nodes.every(isValueList)) {
    const values: Json[] = [];
    for (const value of nodes.flatMap((node) => node.values ?? []))
      if (!values.some((other) => equalJson(value, other))) values.push(value);
    const types = [...new Set(nodes.flatMap((node) => node.types ?? []))];
    const { types: _types, ...rest } = first;
    return { ...rest, values, ...(nodes.every((node) => node.types) ? { types } : {}) };
  }
  return { ...emptyNode(first.at), anyOf: nodes };
}

function isValueList(node: Node): boolean {
  return node.values !== undefined && node.limits.size === 0 && node.ref === undefined && !node.anyOf && !node.oneOf && !node.allOf;
}

/** Equal for schemas that say the same, wherever they stand. */
function spelled(node: Node): string {
  return JSON.stringify(node, (key, value: unknown) =>
    key === "at" ? undefined : value instanceof Map ? [...value] : value,
  );
}
