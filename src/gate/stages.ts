/** What the stages between candidates and answer say of a tool. Each stage is a part of its own; without one, its neutral answer holds. */
import type { Tool } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery, Reason, Sequence } from "./api.js";
import type { Intent } from "./intent.js";
import type { Cut, ListedTool } from "./ports.js";

/** The operators' rules of one namespace. */
export interface Rules {
  /** What the rules that match this question say. */
  judge(query: FindQuery, intent: Intent): Ruling;
  /** Names of the declared categories, in their order. */
  readonly categories: readonly string[];
  /** Facts of the agent's state that conditions look at, sorted, without repeats. */
  readonly stateFacts: readonly string[];
  /** Whether a tool is a member of a declared category; undefined where none is declared under that name. Always the same function. */
  category(name: string): ((serverId: string, tool: Pick<Tool, "name" | "tags">) => boolean) | undefined;
}

export interface Ruling {
  /** Why it may not be offered here, as a sentence that names the rule. */
  denial(serverId: string, tool: Tool): string | undefined;
  preference(serverId: string, tool: Tool): Preference | undefined;
  /** Tools that are among the answers of every question that the rule matches. */
  readonly always: readonly { readonly toolId: string; readonly rule: string }[];
  /** tool_ids, and names on any server, that are preferred whatever words they have: they are candidates, too. */
  readonly sought: readonly string[];
}

export interface Preference {
  /** How much more its score counts, 1 or more. */
  readonly factor: number;
  /** What its score is at least, where the best by words alone has 1. */
  readonly least: number;
  readonly rule: string;
}

export const NO_RULING: Ruling = { denial: () => undefined, preference: () => undefined, always: [], sought: [] };
export const NO_RULES: Rules = { judge: () => NO_RULING, categories: [], stateFacts: [], category: () => undefined };

/** Frequency, recency and reliability of a tool in one namespace. */
export interface Priority {
  /** A tool's score counts this much: 0.8 to 1.2, and 1 for a tool that was never used. Far below only where its calls fail. */
  factorOf(toolId: string): number;
}

export const NO_PRIORITY: Priority = { factorOf: () => 1 };

/** A tool that stands beside an answer. */
export interface Beside {
  readonly toolId: string;
  readonly reason: Extract<Reason, { readonly kind: "companion" | "sibling" }>;
}

/** What goes with the chosen tools. */
export interface Related {
  /** In the order in which they are appended; the caller has not judged yet whether they may be offered. */
  beside(chosen: readonly { readonly toolId: string; readonly listed: ListedTool; readonly label: StubFields }[], cut: Cut): readonly Beside[];
  sequences(chosen: readonly string[]): readonly Sequence[];
}

export const NO_RELATED: Related = { beside: () => [], sequences: () => [] };
