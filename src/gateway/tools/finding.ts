/** From an intent or a category to tools: what the gate answers, or all that a category holds. */
import { type FindToolsResponse, SchemaInclusion, type Selector } from "../../client/index.js";
import type { Catalogue } from "../catalogue.js";
import type { GatewayObserver } from "../observer.js";
import { ASK_MS, type RegistryLink } from "../registry.js";
import { FACTS, type Caller, RpcError, type Toolset } from "../words.js";
import type { FindArguments } from "./arguments.js";

export type Found =
  /** By intent; the best first. `fallback` says why the model did not choose though it was meant to; empty otherwise. */
  | { readonly kind: "ranked"; readonly toolIds: readonly string[]; readonly answer: FindToolsResponse; readonly fallback: string }
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
/** As JSON-RPC's neighbours, such as LSP, have it; whoever gave up does not read it. */
const REQUEST_CANCELLED = -32_800;

export interface FindingParts {
  readonly registry: RegistryLink;
  readonly catalogue: Catalogue;
  /** Without a model it answers with the gate's choice, and says so. */
  readonly selector: Selector;
  /** A model is set, and chooses where the caller does not say who does. */
  readonly modelChooses: boolean;
  /** Granted to every agent that asks through this gateway. */
  readonly scopes: readonly string[];
  readonly observer: GatewayObserver;
}

export class Finding {
  constructor(private readonly parts: FindingParts) {}

  get modelChooses(): boolean {
    return this.parts.modelChooses;
  }

  /** Rejects with RegistryError, and with RpcError when the caller gave up while a model was asked. */
  async find(caller: Caller, asked: FindArguments, toolset: Toolset | undefined, signal: AbortSignal): Promise<Found> {
    const { intent, category, limit, by, state } = asked;
    const { registry, modelChooses, scopes, observer, catalogue } = this.parts;
    // What is found is told, and what is in a category is known, by the list that a gateway that has just started still waits for.
    await catalogue.arrived(ASK_MS);
    if (intent === "") {
      observer.found(category === "" ? "nothing" : "category");
      return category === "" ? { kind: "nothing-asked" } : this.#category(caller, category);
    }
    const recentTools = recentOf(toolset).map((toolId, turnsAgo) => ({ toolId, success: true, turnsAgo }));
    const question = { topK: limit, filter: { category }, recentTools, state: [...state], scopes: [...scopes] };
    const byModel = by === "model" || (by === "" && modelChooses);
    const { answer, fallback } = byModel
      ? await this.#selected(caller, intent, question, signal)
      : { answer: await registry.findTools(caller, { ...question, intent }), fallback: "" };
    observer.found(!byModel ? "search" : fallback === "" ? "model" : "fallback");
    const ranked = answer.tools.flatMap(({ stub }) => (stub ? [stub.toolId] : []));
    const bundled = answer.bundles.flatMap(({ toolIds }) => toolIds);
    return { kind: "ranked", toolIds: [...new Set([...ranked, ...bundled])], answer, fallback };
  }

  async #selected(caller: Caller, intent: string, question: Parameters<Selector["select"]>[1], signal: AbortSignal) {
    try {
      const more = { token: caller.token, timeoutMs: ASK_MS, schemas: SchemaInclusion.NONE, signal };
      const { answer, fallback } = await this.parts.selector.select(intent, { ...question, ...more });
      return { answer, fallback: fallback?.message ?? "" };
    } catch (error) {
      if (signal.aborted) throw new RpcError(REQUEST_CANCELLED, "the call was cancelled while tools were chosen");
      throw error;
    }
  }

  async #category(caller: Caller, category: string): Promise<Found> {
    const { toolCount, text, modules, stale } = await this.parts.registry.moduleMap(caller, { module: category, tokenBudget: MAP_TOKENS });
    if (toolCount > CATEGORY_TOOLS) {
      const short = await this.parts.registry.moduleMap(caller, { module: category, tokenBudget: SHOWN_TOKENS });
      return { kind: "large", category, tools: toolCount, map: short.text || text };
    }
    const toolIds = await this.#toolsOf(caller, category, modules.map(({ name }) => name), DEPTH);
    return { kind: "category", category, toolIds: [...new Set(toolIds)], stale };
  }

  /** A module's parts are tools, or modules again. */
  async #toolsOf(caller: Caller, module: string, names: readonly string[], depth: number): Promise<string[]> {
    const parts = await Promise.all(
      names.map(async (name) => {
        if (this.parts.catalogue.tool(name)) return [name];
        if (name === module || depth === 0) return [];
        const { modules } = await this.parts.registry.moduleMap(caller, { module: name, tokenBudget: MAP_TOKENS });
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
