import type { Dialect } from "./dialects.js";
import { OPENAI_STRICT } from "./dialects.js";
import { emitFull } from "./emit-full.js";
import { emitPure } from "./emit-pure.js";
import { flattened } from "./flatten.js";
import { geminiSchema } from "./gemini-schema.js";
import type { JsonObject } from "./json.js";
import { shortened } from "./json.js";
import type { KeyRule } from "./names.js";
import { nameKeys } from "./names.js";
import type { Node, Schema } from "./node.js";
import { objectPlan, SAME, Translator } from "./plan.js";
import { readSchema, TooLarge } from "./read-schema.js";
import type { SourceTool } from "./read-tool.js";
import type { Loss } from "./report.js";
import { Losses } from "./report.js";
import { strictSizeReasons } from "./strict.js";

/** When a strict schema is asked for: where it can be said, where nothing is narrowed besides, or never. */
export type Strictness = "auto" | "exact" | "off";

/** How a provider takes schemas. */
export type Form =
  /** JSON Schema; strict where it can be and is wanted. */
  | { readonly kind: "full"; readonly keys?: KeyRule; readonly strict: Strictness }
  /** A reduced form of JSON Schema. */
  | { readonly kind: "reduced"; readonly dialect: Dialect; readonly message: boolean };

/** One tool in a provider's terms. */
export interface ExportedTool {
  readonly toolId: string;
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
  readonly strict: boolean;
  readonly notStrict: readonly string[];
  readonly losses: readonly Loss[];
  readonly translator: Translator;
}

export type ExportResult =
  | { readonly ok: true; readonly tool: ExportedTool }
  | { readonly ok: false; readonly reasons: readonly string[] };

/** Exports one tool. `descriptionLength` is in UTF-16 code units. */
export function exportTool(source: SourceTool, name: string, form: Form, descriptionLength: number): ExportResult {
  const losses = new Losses();
  try {
    const schema = readSchema(source.inputSchema, losses);
    const flat = flattened(schema, losses);
    const description = described(source.description, flat.notes, descriptionLength, losses);
    const wanted = form.kind === "full" ? form.strict : "off";
    const strict = wanted === "off" ? undefined : strictly(flat.node, schema, wanted);
    const written = strict?.written ?? write(flat.node, schema, form);
    const { losses: also, ...rest } = written;
    return {
      ok: true,
      tool: {
        toolId: source.toolId,
        name,
        description,
        ...rest,
        strict: strict?.written !== undefined,
        notStrict: strict?.refusals ?? [],
        losses: [...losses.done(), ...also],
      },
    };
  } catch (error) {
    if (error instanceof TooLarge) return { ok: false, reasons: [error.message] };
    throw error;
  }
}

interface Written {
  readonly schema: JsonObject;
  readonly translator: Translator;
  readonly losses: readonly Loss[];
}

function write(root: Node, schema: Schema, form: Form): Written {
  if (form.kind === "reduced") {
    const losses = new Losses();
    const pure = emitPure(root, schema, form.dialect, losses);
    const translator = new Translator(pure.plan, pure.parts, pure.schema);
    return { schema: form.message ? geminiSchema(pure.schema) : pure.schema, translator, losses: losses.done() };
  }
  const losses = new Losses();
  const keys = nameKeys([...root.properties.keys(), ...root.required], form.keys);
  const renamed = [...keys].some(([key, name]) => key !== name);
  const node = renamed ? withoutKeyRules(root, losses) : root;
  const members = new Map([...keys].map(([key, name]) => [name, { key, plan: SAME, nullForAbsent: false }]));
  const out = emitFull(node, schema, keys);
  return { schema: out, translator: new Translator(objectPlan(members, SAME), new Map(), out), losses: losses.done() };
}

/** Rules about keys would speak of the keys before they were renamed. */
function withoutKeyRules(root: Node, losses: Losses): Node {
  const limits = new Map([...root.limits].filter(([keyword]) => keyword !== "dependentRequired"));
  if (limits.size === root.limits.size && root.patterns.size === 0) return root;
  losses.add("", "rules about keys are left out, because keys had to be renamed", "wider");
  const { additional, ...rest } = root;
  return {
    ...rest,
    limits,
    patterns: new Map(),
    // What holds for other keys would also hold for those that a pattern was for.
    ...(additional === undefined || additional === false || root.patterns.size > 0 ? {} : { additional }),
  };
}

function strictly(root: Node, schema: Schema, wanted: Strictness): { written?: Written; refusals: readonly string[] } {
  const losses = new Losses();
  const pure = emitPure(root, schema, OPENAI_STRICT, losses);
  const narrowed = losses.done().filter((loss) => wanted === "exact" && loss.effect === "narrower");
  const narrower = narrowed.map((loss) => `${loss.at || "/"}: ${loss.what}`);
  const refusals = [...pure.refusals, ...strictSizeReasons(pure.schema), ...narrower];
  if (refusals.length > 0) return { refusals };
  const translator = new Translator(pure.plan, pure.parts, pure.schema);
  return { written: { schema: pure.schema, translator, losses: losses.done() }, refusals };
}

/** Notes stand at the end and are kept whole: they say what the schema no longer does. */
function described(text: string, notes: readonly string[], length: number, losses: Losses): string {
  const tail = shortened(notes.join(" "), Math.floor(length / 2));
  const room = tail === "" ? length : length - tail.length - 2;
  const head = shortened(text, room);
  if (head.length < text.length && head !== text)
    losses.add("", `the description has ${text.length} characters and is shortened to ${length}`, "text");
  if (tail.length < notes.join(" ").length)
    losses.add("", "the notes on groups of arguments are too long and shortened", "text");
  return [head, tail].filter((part) => part !== "").join("\n\n");
}
