/** From an intent or a category to tools: what the gate answers, or all that a category holds. */
import type { FindToolsResponse } from "../../client/index.js";
import type { Catalogue } from "../catalogue.js";
import type { RegistryLink } from "../registry.js";
import { FACTS, type Caller, type Toolset } from "../words.js";
import type { FindArguments } from "./arguments.js";

export type Found =
  /** By intent; the best first. */
  | { readonly kind: "ranked"; readonly toolIds: readonly string[]; readonly answer: FindToolsResponse }
  /** All of a category. */
  | { readonly kind: "category"; readonly category: string; readonly toolIds: readonly string[]; readonly stale: boolean }
  /** A category with too many tools to load: what is in it. */
  | { readonly kind: "large"; readonly category: string; readonly tools: number; readonly map: string }
  /** Neither was said. */
  | { readonly kind: "nothing-asked" };

/** More tools at once help no agent; a larger category is looked into first. */
const CATEGORY_TOOLS = 40;
const MAP_TOKENS = 30_000;
/** For the map of a large category, which is read by a model. */
const SHOWN_TOKENS = 600;
/** How deep modules nest is the registry's business; this only ends a walk that would not. */
const DEPTH = 4;

export class Finding {
  constructor(
    private readonly registry: RegistryLink,
    private readonly catalogue: Catalogue,
  ) {}

  /** Rejects with RegistryError. */
  async find(caller: Caller, { intent, category, limit }: FindArguments, toolset: Toolset | undefined): Promise<Found> {
    if (intent === "") return category === "" ? { kind: "nothing-asked" } : this.#category(caller, category);
    const recentTools = recentOf(toolset).map((toolId, turnsAgo) => ({ toolId, success: true, turnsAgo }));
    const answer = await this.registry.findTools(caller, { intent, topK: limit, filter: { category }, recentTools });
    const ranked = answer.tools.flatMap(({ stub }) => (stub ? [stub.toolId] : []));
    const bundled = answer.bundles.flatMap(({ toolIds }) => toolIds);
    return { kind: "ranked", toolIds: [...new Set([...ranked, ...bundled])], answer };
  }

  async #category(caller: Caller, category: string): Promise<Found> {
    const { toolCount, text, modules, stale } = await this.registry.moduleMap(caller, { module: category, tokenBudget: MAP_TOKENS });
    if (toolCount > CATEGORY_TOOLS) {
      const short = await this.registry.moduleMap(caller, { module: category, tokenBudget: SHOWN_TOKENS });
      return { kind: "large", category, tools: toolCount, map: short.text || text };
    }
    const toolIds = await this.#toolsOf(caller, category, modules.map(({ name }) => name), DEPTH);
    return { kind: "category", category, toolIds: [...new Set(toolIds)], stale };
  }

  /** A module's parts are tools, or modules again. */
  async #toolsOf(caller: Caller, module: string, names: readonly string[], depth: number): Promise<string[]> {
    const parts = await Promise.all(
      names.map(async (name) => {
        if (this.catalogue.tool(name)) return [name];
        if (name === module || depth === 0) return [];
        const { modules } = await this.registry.moduleMap(caller, { module: name, tokenBudget: MAP_TOKENS });
        return this.#toolsOf(caller, name, modules.map((m) => m.name), depth - 1);
      }),
    );
    return parts.flat();
  }
}

/** Tools that were called with success, the latest first. */
export function recentOf(toolset: Toolset | undefined): readonly string[] {
  return (toolset?.facts[FACTS.recent] ?? "").split(" ").filter((id) => id !== "");
}
