import type { CallToolOptions } from "../calling/caller.js";
import type { CallOutcome } from "../calling/outcome.js";
import type { FindOptions, Found } from "../finding.js";
import type { Follower } from "../follower/follower.js";
import type { Load, LoadOptions, MissingTool, MissingWhy } from "../loader/load.js";
import type { RegistryError } from "../registry-error.js";
import type { Outcome, ReportOptions } from "../reporting.js";
import type { TurnTokens } from "./ledger.js";
import type { ToolDefinition } from "./material.js";
import type { InjectedTool, PromptMode } from "./prompt.js";
import type { Tokenizer } from "./tokens.js";

/** What an injector needs of its agent. */
export interface AgentSide {
  readonly follower: Pick<Follower, "stub" | "stubs">;
  find(intent: string, options?: FindOptions): Promise<Found>;
  load(toolIds: readonly string[], options?: LoadOptions): Promise<Load>;
  call(toolId: string, args: Record<string, unknown>, options?: CallToolOptions): Promise<CallOutcome>;
  report(outcome: Outcome, options?: ReportOptions): Promise<{ readonly remembered: boolean }>;
}

export interface InjectorOptions {
  /** Default `replace`. */
  readonly mode?: PromptMode;
  /** tool_ids that are always there: whole when chosen, in compact form otherwise. */
  readonly pinned?: readonly string[];
  /** Turns that a tool stays after the last one that chose it; default 0: it leaves at once. */
  readonly keepTurns?: number;
  /** Tools chosen a turn, 1 to 50; default 5. What the intent names, and what belongs to an answer, comes on top. */
  readonly topK?: number;
  /** Default: bytes divided by 4. See `gptTokenizer`. */
  readonly tokenizer?: Tokenizer;
  /** What the gate may use in every turn. */
  readonly scopes?: readonly string[];
  readonly filter?: FindOptions["filter"];
}

export interface TurnOptions extends Omit<FindOptions, "recentTools" | "tokenBudget"> {
  /** Tokens that the tools of this turn may have, by the injector's tokenizer: the least fitting are left out and named. Pinned ones stay. */
  readonly tokenBudget?: number;
  /** What loading definitions may take, ms; default the agent's. */
  readonly deadlineMs?: number;
  /** The whole catalogue would have spared this turn; default: whether a call was refused since the last one. */
  readonly extra?: boolean;
  /** Tokens of the rest of the prompt: counted where the turn is extra. */
  readonly contextTokens?: number;
}

export type RemovedWhy =
  | "not-chosen"
  /** Its server is away. */
  | "unavailable"
  /** It does not fit into the turn's budget of tokens. */
  | "over-budget"
  /** It is there in another form, or with another definition. */
  | "changed"
  | MissingWhy;

export interface RemovedTool {
  readonly tool: InjectedTool;
  readonly why: RemovedWhy;
}

/** What the prompt of one turn holds, and how it differs from the one before. */
export interface Turn {
  /** From 1. */
  readonly number: number;
  /** All tools of the prompt, in an order that does not change while they stay. */
  readonly tools: readonly InjectedTool[];
  /** The same for `toolcrib/providers`, whose calls then come back with a `toolId` that is the key here. */
  readonly inputs: readonly { readonly toolId: string; readonly definition: ToolDefinition }[];
  /** May be called from now on. */
  readonly add: readonly InjectedTool[];
  /** May not be called any more. In append mode they stay in `tools`. */
  readonly remove: readonly RemovedTool[];
  /** As many of `tools` are the last turn's, unchanged: a cache breakpoint belongs behind them. */
  readonly breakpoint: number;
  /** Left out, each with its reason and what is there in its place. */
  readonly missing: readonly MissingTool[];
  /** Chosen and loaded, and left out because the budget of tokens is spent on better ones. */
  readonly overBudget: readonly { readonly toolId: string; readonly tokens: number }[];
  /** Keys of tools of which nobody can say now whether they are still so. */
  readonly stale: readonly string[];
  readonly search: Search;
  readonly tokens: TurnTokens;
}

export type Search =
  | { readonly kind: "found"; readonly found: Found }
  /** The registry cannot be asked; what was chosen last stays chosen. */
  | { readonly kind: "away"; readonly error: RegistryError };

/** A call of what is not loaded. */
export interface RefusedCall {
  readonly kind: "refused";
  /** As it was called. */
  readonly key: string;
  readonly success: false;
  /** Fit for the model: what is wrong and what it can call instead. */
  readonly message: string;
  /** What is loaded, the most alike by name first, at most 5. */
  readonly nearest: readonly InjectedTool[];
  /** The tool is in the catalogue; the gate is asked for it by name in the next turn. */
  readonly registered: boolean;
}
