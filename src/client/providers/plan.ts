import type { Json, JsonObject } from "./json.js";
import { isObject, step } from "./json.js";
import { matches } from "./matches.js";

/** How values under an exported schema differ from values of the tool, and so how to go from one to the other. */
export type Plan =
  | { readonly kind: "same" }
  | ObjectPlan
  | { readonly kind: "list"; readonly prefix: readonly Plan[]; readonly rest: Plan }
  /** The first branch whose exported schema fits the value decides. */
  | { readonly kind: "union"; readonly branches: readonly { readonly schema: JsonObject; readonly plan: Plan }[] }
  /** The value is written as JSON text. */
  | { readonly kind: "text"; readonly takes: TextTakes }
  | { readonly kind: "part"; readonly name: string };

/** What may stand in JSON text: an object; an object, or else the text means itself; any value, or else the text itself. */
export type TextTakes = "object" | "object or text" | "any";

export interface ObjectPlan {
  readonly kind: "object";
  /** By exported key. */
  readonly members: ReadonlyMap<string, MemberPlan>;
  /** For keys that the schema does not name. */
  readonly rest: Plan;
}

export interface MemberPlan {
  readonly key: string;
  readonly plan: Plan;
  /** Strict mode makes the model send null where the tool wants the key left out. */
  readonly nullForAbsent: boolean;
}

export const SAME: Plan = { kind: "same" };

/** Says that a value is not what the exported schema asked for; `at` is a JSON pointer into the arguments. */
export class Unreadable extends Error {
  constructor(
    readonly at: string,
    message: string,
  ) {
    super(message);
  }
}

/** A plan without what changes nothing, so that most of a tool needs no walk. */
export function objectPlan(members: ReadonlyMap<string, MemberPlan>, rest: Plan): Plan {
  const idle = [...members].every(([name, m]) => name === m.key && !m.nullForAbsent && m.plan.kind === "same");
  return idle && rest.kind === "same" ? SAME : { kind: "object", members, rest };
}

export function listPlan(prefix: readonly Plan[], rest: Plan): Plan {
  return rest.kind === "same" && prefix.every((plan) => plan.kind === "same") ? SAME : { kind: "list", prefix, rest };
}

export function unionPlan(branches: readonly { readonly schema: JsonObject; readonly plan: Plan }[]): Plan {
  return branches.every((branch) => branch.plan.kind === "same") ? SAME : { kind: "union", branches };
}

/** Translates values between a tool and the schema that was exported for it. */
export class Translator {
  constructor(
    private readonly plan: Plan,
    private readonly parts: ReadonlyMap<string, Plan>,
    /** The exported schema, for its `$defs`. */
    private readonly document: JsonObject,
  ) {}

  /** What the model sent, as the tool wants it. Throws Unreadable. */
  toTool(value: Json): Json {
    return this.decode(this.plan, value, "");
  }

  /** What the tool takes, as the model sees it. */
  fromTool(value: Json): Json {
    return this.encode(this.plan, value);
  }

  private decode(plan: Plan, value: Json, at: string): Json {
    switch (plan.kind) {
      case "same":
        return value;
      case "part":
        return this.decode(this.parts.get(plan.name) ?? SAME, value, at);
      case "text":
        return parsedText(value, plan.takes, at);
      case "union": {
        const branch = plan.branches.find(({ schema }) => matches(schema, value, this.document));
        return branch ? this.decode(branch.plan, value, at) : value;
      }
      case "list":
        return Array.isArray(value)
          ? value.map((item: Json, i) => this.decode(plan.prefix[i] ?? plan.rest, item, step(at, i)))
          : value;
      case "object":
        return isObject(value) ? this.decodeObject(plan, value, at) : value;
    }
  }

  private decodeObject(plan: ObjectPlan, value: JsonObject, at: string): Json {
    const entries: [string, Json][] = [];
    for (const [name, item] of Object.entries(value)) {
      const member = plan.members.get(name);
      if (!member) entries.push([name, this.decode(plan.rest, item, step(at, name))]);
      else if (item !== null || !member.nullForAbsent)
        entries.push([member.key, this.decode(member.plan, item, step(at, name))]);
    }
    return Object.fromEntries(entries);
  }

  private encode(plan: Plan, value: Json): Json {
    switch (plan.kind) {
      case "same":
        return value;
      case "part":
        return this.encode(this.parts.get(plan.name) ?? SAME, value);
      case "text":
        return writtenText(value, plan.takes);
      case "union":
        return this.encodeUnion(plan.branches, value);
      case "list":
        return Array.isArray(value) ? value.map((item: Json, i) => this.encode(plan.prefix[i] ?? plan.rest, item)) : value;
      case "object":
        return isObject(value) ? this.encodeObject(plan, value) : value;
    }
  }

  private encodeUnion(branches: readonly { readonly schema: JsonObject; readonly plan: Plan }[], value: Json): Json {
    for (const { schema, plan } of branches) {
      const encoded = this.encode(plan, value);
      if (matches(schema, encoded, this.document)) return encoded;
    }
    return value;
  }

  private encodeObject(plan: ObjectPlan, value: JsonObject): Json {
    const names = new Map([...plan.members].map(([name, member]) => [member.key, name]));
    const entries = Object.entries(value).map(([key, item]): [string, Json] => {
      const name = names.get(key);
      const member = name === undefined ? undefined : plan.members.get(name);
      return [name ?? key, this.encode(member?.plan ?? plan.rest, item)];
    });
    for (const [name, member] of plan.members)
      if (member.nullForAbsent && !Object.hasOwn(value, member.key)) entries.push([name, null]);
    return Object.fromEntries(entries);
  }
}

/** A model that sends the value itself instead of its text is understood as well. */
function parsedText(value: Json, takes: TextTakes, at: string): Json {
  if (typeof value !== "string") return value;
  const parsed = parsedOr(value);
  if (takes === "any") return parsed === undefined ? value : parsed;
  if (isObject(parsed)) return parsed;
  if (takes === "object") throw new Unreadable(at, "must be a JSON object written as text");
  return typeof parsed === "string" && mistakable(parsed, takes) ? parsed : value;
}

function writtenText(value: Json, takes: TextTakes): Json {
  if (typeof value === "string") return takes !== "object" && mistakable(value, takes) ? JSON.stringify(value) : value;
  return takes === "any" || isObject(value) ? JSON.stringify(value) : value;
}

/** Whether a text that means itself would be taken for JSON, and so has to be written as JSON, too. */
function mistakable(text: string, takes: TextTakes): boolean {
  for (let parsed = parsedOr(text); parsed !== undefined; parsed = parsedOr(parsed)) {
    if (takes === "any" || isObject(parsed)) return true;
    if (typeof parsed !== "string") return false;
  }
  return false;
}

function parsedOr(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
