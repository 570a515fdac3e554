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

/** Counts what each costs, in order; one that does not fit any more is withheld, and a smaller one after it may still fit. */
export async function price(
  query: FindQuery,
  kept: readonly Choosable[],
  load: LoadSchemas,
  deadlineMs: number | undefined,
): Promise<Priced> {
  const schemas = await schemasOf(query, kept, load, deadlineMs);
  const tools: RankedTool[] = [];
  const withheld: WithheldTool[] = [];
  let left = query.tokenBudget === 0 ? Number.POSITIVE_INFINITY : query.tokenBudget;
  let spent = 0;
  for (const [i, candidate] of kept.entries()) {
    const { toolId, listed, score } = candidate;
    const schema = schemas[i];
    const tokens = estimatedTokens(listed.tool.stub.byteLength) + schemaTokens(schema?.loaded);
    if (tokens > left) {
      const why = `it takes ${tokens} estimated tokens and ${left} of the budget of ${query.tokenBudget} were left`;
      withheld.push({ toolId, cause: "budget", why, substitutes: [], score });
      continue;
    }
    left -= tokens;
    spent += tokens;
    const { margin, reasons, sideEffect } = candidate;
    const { tool, availability } = listed;
    tools.push({ toolId, tool, availability, score, margin, reasons, tokens, schema, sideEffect, labelVersion: labelVersionOf(tool) });
  }
  return { tools, withheld, tokens: spent };
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
