/** From an intent or a category to tools: what the gate answers, or all that a category holds. */
import { type FindToolsResponse, RegistryError, SchemaInclusion, type Selector } from "../../client/index.js";
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
  /** The registry has none of that name. */
  | { readonly kind: "no-category"; readonly category: string }
  /** Neither was said. */
  | { readonly kind: "nothing-asked" };

/** More tools at once help no agent; a larger category is looked into first. */
const CATEGORY_TOOLS = 40;
const MAP_TOKENS = 30_000;
/** For the map of a large category, which is read by a model: the least that shows all of its parts, for what is left out cannot be asked for. */
const SHOWN_TOKENS: readonly number[] = [600, 1_200, 2_400, 4_800];
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

type MapAnswer = Awaited<ReturnType<RegistryLink["moduleMap"]>>;

export class Finding {
  constructor(private readonly parts: FindingParts) {}

  get modelChooses(): boolean {
    return this.parts.modelChooses;
  }

  /** Rejects with RegistryError, and with RpcError when the caller gave up while a model was asked. */
  async find(caller: Caller, asked: FindArguments, toolset: Toolset | undefined, signal: AbortSignal): Promise<Found> {
    const { category } = asked;
    try {
      return await this.#find(caller, asked, toolset, signal);
    } catch (error) {
      if (category === "" || !isNotFound(error)) throw error;
      // The map of a large category ends in single tools, and agents ask for these as they ask for what stands above them.
      if (this.parts.catalogue.tool(category)) return { kind: "category", category, toolIds: [category], stale: false };
      return { kind: "no-category", category };
    }
  }

  async #find(caller: Caller, asked: FindArguments, toolset: Toolset | undefined, signal: AbortSignal): Promise<Found> {
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
    const { toolCount, modules, stale } = await this.#look(caller, category, MAP_TOKENS);
    if (toolCount > CATEGORY_TOOLS) return { kind: "large", category, tools: toolCount, map: await this.#shown(caller, category) };
    const toolIds = await this.#toolsOf(caller, category, modules, DEPTH);
    return { kind: "category", category, toolIds: [...new Set(toolIds)], stale };
  }

  async #shown(caller: Caller, category: string): Promise<string> {
    let shown = "";
    for (const tokens of SHOWN_TOKENS) {
      const { text, leftOut } = await this.#look(caller, category, tokens);
      shown = text;
      if (leftOut === 0) break;
    }
    return shown;
  }

  #look(caller: Caller, module: string, tokenBudget: number): Promise<MapAnswer> {
    return this.parts.registry.moduleMap(caller, { module, tokenBudget });
  }

  /** A module's parts are tools, or modules again. */
  async #toolsOf(caller: Caller, module: string, within: MapAnswer["modules"], depth: number): Promise<string[]> {
    const parts = await Promise.all(
      within.map(async ({ name, toolCount }) => {
        // A module may have the name of one of its tools.
        if (toolCount === 1 && this.parts.catalogue.tool(name)) return [name];
        if (name === module || depth === 0) return [];
        try {
          const { modules } = await this.#look(caller, name, MAP_TOKENS);
          return await this.#toolsOf(caller, name, modules, depth - 1);
        } catch (error) {
          // No module, so a tool that the registry has and this gateway has not heard of yet.
          if (isNotFound(error)) return [name];
          throw error;
        }
      }),
    );
    return parts.flat();
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof RegistryError && error.reason === "NOT_FOUND";
}

/** Tools that were called with success, the latest first. */
export function recentOf(toolset: Toolset | undefined): readonly string[] {
  return (toolset?.facts[FACTS.recent] ?? "").split(" ").filter((id) => id !== "");
}
