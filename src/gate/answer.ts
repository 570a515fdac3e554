/** From the chosen tools to an answer: schemas loaded, tokens counted, the budget kept. */
import { LIMITS } from "../domain/limits.js";
import { labelVersionOf } from "../domain/overlay.js";
import { estimatedTokens } from "../domain/stub.js";
import type { FindQuery, RankedTool, SchemaChoice, WithheldTool } from "./api.js";
import type { Choosable } from "./find.js";
import type { LoadedSchema, LoadSchemas, SchemaView } from "./ports.js";

/** A definition of at most this many bytes comes whole where `auto` was asked for. */
const AUTO_FULL_BYTES = 2_048;

export interface Priced {
  readonly tools: readonly RankedTool[];
  /** Those that did not fit into the budget. */
  readonly withheld: readonly WithheldTool[];
  readonly tokens: number;
}

/**
 * Counts what each costs, in order; one that does not fit any more is withheld, and a smaller one after it may still fit. Exactly named
 * tools come first and always: without their schemas where those do not fit, and beyond the budget where nothing does. A tool that may
 * destroy is not answered without the room for the gentler one beside it.
 */
export async function price(
  query: FindQuery,
  kept: readonly Choosable[],
  load: LoadSchemas,
  deadlineMs: number | undefined,
): Promise<Priced> {
  const schemas = await schemasOf(query, kept, load, deadlineMs);
  const costs = kept.map((candidate, i) => costOf(candidate, schemas[i]));
  const purse = new Purse(query.tokenBudget);
  const taken = new Map<number, RankedTool>();
  const withheld: WithheldTool[] = [];
  const take = (i: number): void => {
    const { label, schema, all } = costs[i] as Cost;
    const named = isNamed(kept[i] as Choosable);
    // Whoever named it knows what it is; its schema can be had by its name.
    const bare = named && !purse.holds(all);
    const tokens = bare ? label : all;
    purse.spend(tokens);
    taken.set(i, rankedTool(kept[i] as Choosable, tokens, bare ? undefined : schema));
  };
  for (const [i, candidate] of kept.entries()) if (isNamed(candidate)) take(i);
  for (const [i, candidate] of kept.entries()) {
    if (taken.has(i)) continue;
    const { all } = costs[i] as Cost;
    const beside = gentlerBeside(kept, i);
    const room = all + (beside === undefined || taken.has(beside) ? 0 : (costs[beside] as Cost).all);
    if (purse.holds(room)) {
      take(i);
      if (beside !== undefined && !taken.has(beside)) take(beside);
    } else withheld.push(tooDear(candidate, all, room, purse));
  }
  const tools = [...taken].sort(([a], [b]) => a - b).map(([, tool]) => tool);
  return { tools, withheld, tokens: purse.spent };
}

interface Cost {
  readonly label: number;
  readonly all: number;
  readonly schema: RankedTool["schema"];
}

function costOf({ listed }: Choosable, schema: RankedTool["schema"]): Cost {
  const label = estimatedTokens(listed.tool.stub.byteLength);
  return { label, schema, all: label + schemaTokens(schema?.loaded) };
}

/** What is left of a budget; 0 = no bound. */
class Purse {
  spent = 0;

  constructor(readonly budget: number) {}

  get left(): number {
    return this.budget === 0 ? Number.POSITIVE_INFINITY : Math.max(0, this.budget - this.spent);
  }

  holds(tokens: number): boolean {
    return tokens <= this.left;
  }

  spend(tokens: number): void {
    this.spent += tokens;
  }
}

function isNamed({ reasons }: Choosable): boolean {
  return reasons.some(({ kind }) => kind === "exact-name");
}

/** The place of the sibling that was put beside a tool that may destroy. */
function gentlerBeside(kept: readonly Choosable[], i: number): number | undefined {
  const { toolId, mayDestroy } = kept[i] as Choosable;
  if (!mayDestroy) return undefined;
  const at = kept.findIndex((one) => !one.mayDestroy && one.reasons.some((reason) => reason.kind === "sibling" && reason.of === toolId));
  return at < 0 ? undefined : at;
}

function tooDear({ toolId, score }: Choosable, tokens: number, room: number, { left, budget }: Purse): WithheldTool {
  const with_ = room > tokens ? `, with the gentler one beside it ${room},` : "";
  const why = `it takes ${tokens} estimated tokens${with_} and ${left} of the budget of ${budget} were left`;
  return { toolId, cause: "budget", why, substitutes: [], score };
}

function rankedTool(candidate: Choosable, tokens: number, schema: RankedTool["schema"]): RankedTool {
  const { toolId, listed, score, margin, reasons, sideEffect } = candidate;
  const { tool, availability } = listed;
  return { toolId, tool, availability, score, margin, reasons, tokens, schema, sideEffect, labelVersion: labelVersionOf(tool) };
}

function schemaTokens(loaded: LoadedSchema | undefined): number {
  return loaded?.kind === "schema" ? estimatedTokens(loaded.schema.definition.byteLength) : 0;
}

/** One for each tool, in order. All are loaded side by side: at most two calls, one for each view that is wanted. */
async function schemasOf(
  { schemas, filter }: FindQuery,
  kept: readonly Choosable[],
  load: LoadSchemas,
  deadlineMs: number | undefined,
): Promise<readonly RankedTool["schema"][]> {
  if (schemas === "none" || kept.length === 0) return kept.map(() => undefined);
  const found = new Map<string, NonNullable<RankedTool["schema"]>>();
  const byView = new Map<SchemaView, string[]>();
  for (const { toolId, label } of kept) {
    const view = viewOf(schemas, label.sizeBytes);
    byView.set(view, [...(byView.get(view) ?? []), toolId]);
  }
  await Promise.all(
    [...byView].map(async ([view, ids]) => {
      const toolIds = ids.slice(0, LIMITS.batchTools);
      const results = await load(filter.namespace, toolIds, view, deadlineMs);
      for (const [i, loaded] of results.entries()) found.set(toolIds[i] as string, { view, loaded });
    }),
  );
  return kept.map(({ toolId }) => found.get(toolId));
}

function viewOf(choice: Exclude<SchemaChoice, "none">, sizeBytes: number): SchemaView {
  if (choice !== "auto") return choice;
  return sizeBytes > AUTO_FULL_BYTES ? "compact" : "full";
}
