import { hint, limitsFor, textsWith } from "./describe.js";
import type { Dialect } from "./dialects.js";
import type { Json, JsonObject } from "./json.js";
import { step } from "./json.js";
import { merged, resolved, textsOf } from "./merge.js";
import { nameKeys } from "./names.js";
import type { Node, Schema, TypeName } from "./node.js";
import { acceptsAll, emptyNode, isNever, recursiveParts } from "./node.js";
import type { Piece } from "./pieces.js";
import { nullable, oneText, typesTaken } from "./pieces.js";
import type { MemberPlan, Plan } from "./plan.js";
import { listPlan, objectPlan, SAME, unionPlan } from "./plan.js";
import type { Losses } from "./report.js";
import { exclusive, nullFits, typeOf } from "./unions.js";

/** Schemas written for one tool: references put in place may multiply. */
const MOST_NODES = 3_000;
/** A part inside itself is put in place once more, then it is taken as anything. */
const UNROLLED = 2;
/** Parts that lead around are put in place so many times in one tool: many of them multiply. */
const MOST_UNROLLED = 40;
/** allOf inside allOf is put together this far. */
const ROUNDS = 8;

export interface Pure {
  readonly schema: JsonObject;
  readonly plan: Plan;
  readonly parts: ReadonlyMap<string, Plan>;
  /** Why the schema cannot be said in this dialect; only a strict one refuses. */
  readonly refusals: readonly string[];
}

/** A flat root in a provider's reduced form of JSON Schema, and how its values differ from the tool's. */
export function emitPure(root: Node, schema: Schema, dialect: Dialect, losses: Losses): Pure {
  return new PureEmitter(schema, dialect, losses).emit(root);
}

class PureEmitter {
  readonly #recursive: ReadonlySet<string>;
  readonly #parts = new Map<string, Piece>();
  readonly #open: string[] = [];
  readonly #refusals = new Set<string>();
  #count = 0;
  #unrolled = 0;

  constructor(
    private readonly whole: Schema,
    private readonly dialect: Dialect,
    private readonly losses: Losses,
  ) {
    this.#recursive = recursiveParts(whole.parts);
  }

  emit(root: Node): Pure {
    const piece = this.object(root, 1, [], []);
    for (let name = this.#open.pop(); name !== undefined; name = this.#open.pop()) {
      const part = this.whole.parts.get(name);
      if (part) this.#parts.set(name, this.node(part, 2, [name]));
    }
    const parts = [...this.#parts].sort(([a], [b]) => (a < b ? -1 : 1));
    const defs: JsonObject = parts.length > 0 ? { $defs: Object.fromEntries(parts.map(([name, p]) => [name, p.schema])) } : {};
    return {
      schema: { ...piece.schema, ...defs },
      plan: piece.plan,
      parts: new Map(parts.map(([name, p]) => [name, p.plan])),
      refusals: [...this.#refusals],
    };
  }

  /** `depth` is that of the container that this schema would be; `inside` are the parts that lead here. */
  private node(given: Node, depth: number, inside: readonly string[]): Piece {
    if (++this.#count > MOST_NODES) return this.anything(given, `there are more than ${MOST_NODES} schemas`);
    if (given.ref !== undefined) return this.reference(given, given.ref, depth, inside);
    const node = this.simple(given, inside);
    if (isNever(node)) return this.anything(node, "nothing fits it");
    if (node.oneOf ?? node.anyOf) return this.union(node, depth, inside);
    const types = typesTaken(node, this.losses);
    const [type, second] = types;
    if (type === undefined) return this.anything(node);
    if (second !== undefined && this.mustSplit(node, types)) return this.split(node, types, depth, inside);
    const deep = depth > this.dialect.depth;
    if (type === "object") return deep ? this.tooDeep(node) : this.object(node, depth, inside);
    if (type === "array") return deep ? this.tooDeep(node) : this.list(node, depth, inside);
    return this.scalar(node, types);
  }

  private reference(given: Node, name: string, depth: number, inside: readonly string[]): Piece {
    const { ref: _ref, ...beside } = given;
    const part = this.whole.parts.get(name);
    if (!part) return this.anything(beside);
    if (this.dialect.parts && this.#recursive.has(name) && acceptsAll(beside)) {
      if (given.description !== undefined) this.losses.add(given.at, "a description beside a reference is left out", "text");
      if (!this.#parts.has(name) && !this.#open.includes(name) && !inside.includes(name)) this.#open.push(name);
      return { schema: { $ref: `#/$defs/${name}` }, plan: { kind: "part", name } };
    }
    const again = inside.filter((other) => other === name).length >= UNROLLED;
    if (again || (this.#recursive.has(name) && ++this.#unrolled > MOST_UNROLLED))
      return this.anything(beside, "it leads back to itself, and is taken as anything from here on");
    return this.node(merged(beside, part, this.losses), depth, [...inside, name]);
  }

  /** Without allOf and without what no reduced form can say. */
  private simple(given: Node, inside: readonly string[]): Node {
    let node = given;
    for (let round = 0; node.allOf && round < ROUNDS; round++) {
      const { allOf, ...plain } = node;
      node = plain;
      for (const branch of allOf) {
        const again = branch.ref !== undefined && inside.filter((name) => name === branch.ref).length >= UNROLLED;
        if (!again) node = merged(node, resolved(branch, this.whole, this.losses), this.losses);
        else this.wider(branch.at, "it leads back to itself and is left out");
      }
    }
    if (node.allOf) this.wider(node.at, "allOf nests too deep and is left out");
    for (const keyword of node.rest.keys()) this.wider(step(node.at, keyword), `${keyword} is left out`);
    if (node.dependentSchemas.size > 0) this.wider(node.at, "dependentSchemas is left out");
    return node;
  }

  private union(node: Node, depth: number, inside: readonly string[]): Piece {
    const { oneOf, anyOf, allOf: _allOf, title: _t, description: _d, default: _f, examples: _e, ...base } = node;
    const list = oneOf ?? anyOf ?? [];
    if (oneOf && anyOf) this.wider(step(node.at, "anyOf"), "anyOf beside oneOf is left out");
    const branches = list
      .map((b) => (acceptsAll(base) ? b : merged({ ...base, at: b.at }, resolved(b, this.whole, this.losses), this.losses)))
      .map((b) => (acceptsAll(base) ? b : { ...b, ...textsOf(b) }))
      .filter((b) => !isNever(b));
    if (oneOf && !exclusive(branches, this.whole)) this.wider(step(node.at, "oneOf"), "oneOf is taken as anyOf");
    return this.joined(node, branches.map((branch) => this.node(branch, depth, inside)));
  }

  private joined(node: Node, given: readonly Piece[]): Piece {
    const texts = textsWith(node, []);
    const flat = given.flatMap((piece) => (piece.plan.kind === "union" ? piece.plan.branches : [piece]));
    const pieces = oneText(node, flat, this.losses);
    const different = [...new Map(pieces.map((piece) => [JSON.stringify(piece.schema), piece])).values()];
    const [only, second] = different;
    if (!only) return this.anything(node, "nothing fits it");
    if (second) return { schema: { ...texts, anyOf: different.map((p) => p.schema) }, plan: unionPlan(different) };
    if (only.schema["$ref"] !== undefined) return only;
    return { schema: { ...only.schema, ...texts }, plan: only.plan };
  }

  private mustSplit(node: Node, types: readonly TypeName[]): boolean {
    const nullListed = node.values?.includes(null) === true && !this.dialect.listed.includes("null");
    return !this.dialect.typeLists || nullListed || types.includes("object") || types.includes("array");
  }

  private split(node: Node, types: readonly TypeName[], depth: number, inside: readonly string[]): Piece {
    const { title: _t, description: _d, default: _f, examples: _e, ...bare } = node;
    const fits = (type: TypeName) => (v: Json) => typeOf(v) === type || (type === "number" && typeof v === "number");
    const pieces = types.flatMap((type) => {
      const values = node.values?.filter(fits(type));
      if (values?.length === 0) return [];
      if (type === "null") return [{ schema: { type }, plan: SAME }];
      return [this.node({ ...bare, types: [type], ...(values ? { values } : {}) }, depth, inside)];
    });
    return this.joined(node, pieces);
  }

  private scalar(node: Node, types: readonly TypeName[]): Piece {
    const hints: string[] = [];
    const limits = limitsFor(node, types, this.dialect, hints, this.losses);
    const listed = this.listed(node, types, hints);
    if (types[0] === "null" && !this.dialect.typeLists) this.wider(node.at, "null alone is taken as a text or null");
    const type = types.length === 1 ? (types[0] as string) : types;
    return { schema: { type, ...textsWith(node, hints), ...listed, ...limits }, plan: SAME };
  }

  private listed(node: Node, types: readonly TypeName[], hints: string[]): JsonObject {
    if (!node.values) return {};
    const usable = (v: Json) => this.dialect.listed.includes(typeOf(v)) && v !== "";
    if (types.every((type) => this.dialect.listed.includes(type)) && (this.dialect.strict || node.values.every(usable)))
      return { enum: node.values };
    if (!types.includes("null") || types.length > 1) {
      hints.push(hint("One of", node.values));
      this.wider(node.at, "the list of values is only in the description");
    }
    return {};
  }

  private list(node: Node, depth: number, inside: readonly string[]): Piece {
    const hints: string[] = [];
    const limits = limitsFor(node, ["array"], this.dialect, hints, this.losses);
    this.noValues(node, hints);
    if (node.prefix) return this.tuple(node, node.prefix, depth, inside, { ...textsWith(node, hints), ...limits });
    const items = this.node(typeof node.items === "object" ? node.items : emptyNode(step(node.at, "items")), depth + 1, inside);
    if (node.items === false) this.wider(step(node.at, "items"), "a list that must be empty may hold anything");
    const schema = { type: "array", ...textsWith(node, hints), ...limits, items: items.schema };
    return { schema, plan: listPlan([], items.plan) };
  }

  private tuple(node: Node, prefix: readonly Node[], depth: number, inside: readonly string[], texts: JsonObject): Piece {
    const heads = prefix.map((item) => this.node(item, depth + 1, inside));
    const tail = typeof node.items === "object" ? this.node(node.items, depth + 1, inside) : undefined;
    const most: JsonObject = node.items === false ? { maxItems: Math.min(prefix.length, Number(texts["maxItems"] ?? prefix.length)) } : {};
    if (this.dialect.tuples) {
      const schema = { type: "array", ...texts, prefixItems: heads.map((h) => h.schema), items: tail?.schema ?? {}, ...most };
      return { schema, plan: listPlan(heads.map((h) => h.plan), tail?.plan ?? SAME) };
    }
    this.refuse(node.at, "a list whose items differ by their place");
    this.wider(node.at, "items that differ by their place may stand anywhere");
    const open = node.items === undefined || node.items === true ? [this.anything(emptyNode(node.at))] : [];
    const any = this.joined(emptyNode(node.at), [...heads, ...(tail ? [tail] : []), ...open]);
    return { schema: { type: "array", ...texts, items: any.schema, ...most }, plan: listPlan([], any.plan) };
  }

  private object(node: Node, depth: number, inside: readonly string[], hints: string[] = []): Piece {
    const { dialect } = this;
    const limits = limitsFor(node, ["object"], dialect, hints, this.losses);
    this.noValues(node, hints);
    const all = new Map([...this.givable(node), ...this.undeclared(node)]);
    if (all.size === 0 && depth > 1 && !dialect.free) return this.freeObject(node, hints);
    if (node.patterns.size > 0) this.wider(step(node.at, "patternProperties"), "patternProperties is left out");

    const others = this.others(node, depth, inside);
    const names = nameKeys(all.keys(), dialect.keys);
    const members = new Map<string, MemberPlan>();
    const properties: [string, JsonObject][] = [];
    const required: string[] = [];
    for (const [key, child] of all) {
      const name = names.get(key) ?? key;
      const needed = node.required.includes(key);
      const piece = this.node(child, depth + 1, inside);
      const forced = dialect.strict && !needed;
      if (forced && nullFits(child, this.whole))
        this.refuse(child.at, "a property that may be left out or be null, which strict mode cannot tell apart");
      properties.push([name, forced ? nullable(piece.schema) : piece.schema]);
      members.set(name, { key, plan: piece.plan, nullForAbsent: forced });
      if (needed || forced) required.push(name);
    }
    const schema = {
      type: "object",
      ...textsWith(node, hints),
      ...limits,
      properties: Object.fromEntries(properties),
      ...(required.length > 0 || dialect.strict ? { required } : {}),
      ...others.schema,
    };
    return { schema, plan: objectPlan(members, others.plan) };
  }

  /** Properties without those that must not be given. */
  private givable(node: Node): [string, Node][] {
    const never = [...node.properties.values()].filter(isNever);
    if (node.additional !== false || node.patterns.size > 0)
      for (const child of never) this.wider(child.at, "a property that must not be given may be");
    return [...node.properties].filter(([, child]) => !isNever(child));
  }

  /** Keys that are required, but only described by what holds for any other key. */
  private undeclared(node: Node): [string, Node][] {
    const keys = node.required.filter((key) => !node.properties.has(key));
    if (keys.length > 0 && node.additional === false)
      this.wider(node.at, "a key is required that is not allowed: it may be given");
    const others = node.patterns.size === 0 && typeof node.additional === "object" ? node.additional : undefined;
    return keys.map((key) => [key, others ?? emptyNode(step(node.at, key))]);
  }

  private others(node: Node, depth: number, inside: readonly string[]): Piece {
    const at = step(node.at, "additionalProperties");
    const { additional } = node;
    // What holds for other keys would also hold for those that a pattern was for.
    const open = node.patterns.size > 0 && additional !== undefined ? true : additional;
    if (this.dialect.strict) {
      if (open !== undefined && open !== false) this.refuse(node.at, "an object that takes keys which it does not name");
      if (open === undefined) this.losses.add(at, "keys that are not named are not taken", "narrower");
      return { schema: { additionalProperties: false }, plan: SAME };
    }
    if (!this.dialect.others) {
      if (open !== undefined && open !== true) this.wider(at, "what holds for keys that are not named is left out");
      return { schema: {}, plan: SAME };
    }
    if (typeof open !== "object") return { schema: open === undefined ? {} : { additionalProperties: open }, plan: SAME };
    const piece = this.node(open, depth + 1, inside);
    return { schema: { additionalProperties: piece.schema }, plan: piece.plan };
  }

  /** An object whose keys nobody names: as text where the dialect cannot say it. */
  private freeObject(node: Node, hints: readonly string[]): Piece {
    this.refuse(node.at, "an object whose keys are not named");
    this.wider(node.at, "an object whose keys are not named is written as JSON text");
    const all = ["A JSON object, written as text", ...hints];
    return { schema: { type: "string", ...textsWith(node, all) }, plan: { kind: "text", takes: "object" } };
  }

  private anything(node: Node, why?: string): Piece {
    if (why !== undefined) this.wider(node.at, why);
    if (this.dialect.strict) this.refuse(node.at, why ?? "a value of any type");
    if (this.dialect.free) return { schema: textsWith(node, []), plan: SAME };
    if (why === undefined) this.wider(node.at, "a value of any type is written as JSON text");
    return { schema: { type: "string", ...textsWith(node, ["Any JSON value, written as text"]) }, plan: { kind: "text", takes: "any" } };
  }

  private tooDeep(node: Node): Piece {
    return this.anything(node, `it nests deeper than ${this.dialect.depth} levels`);
  }

  private noValues(node: Node, hints: string[]): void {
    if (!node.values) return;
    hints.push(hint("One of", node.values));
    this.refuse(node.at, "a list of allowed objects or lists");
    this.wider(node.at, "the list of values is only in the description");
  }

  private wider(at: string, what: string): void {
    this.losses.add(at, what, "wider");
  }

  private refuse(at: string, what: string): void {
    if (this.dialect.strict && this.#refusals.size < 20) this.#refusals.add(`${at || "/"}: ${what}`);
  }
}
