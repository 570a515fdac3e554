/** The gate's use-cases as transports see them: plain values in, plain values and stored bytes out, `Fault` thrown. */
import type { Filter } from "../domain/filter.js";
import type { Position } from "../domain/revision.js";
import type { Availability, Tool } from "../domain/server.js";
import type { ModuleMap } from "./module-map.js";
import type { LoadedSchema, SchemaView } from "./ports.js";

export interface RecentTool {
  readonly toolId: string;
  readonly success: boolean;
  /** 0 = this turn. */
  readonly turnsAgo: number;
}

/** `auto`: full where it is small, compact where it is large. */
export type SchemaChoice = "none" | "auto" | SchemaView;

export interface FindQuery {
  /** Who asks: a principal's id, put in by the guard; unsaid where nobody is identified. */
  readonly caller?: string;
  readonly intent: string;
  /** tool_ids that are wanted as if the intent named them, without any word of theirs. */
  readonly named?: readonly string[];
  /** Earlier user turns, oldest first. */
  readonly history: readonly string[];
  readonly recent: readonly RecentTool[];
  /** `name` or `name=value`. */
  readonly state: readonly string[];
  readonly scopes: readonly string[];
  /** Which tools; its namespace is the one that is searched. */
  readonly filter: Filter;
  /** A module of the map, as `server` or `server/module`; empty = all. */
  readonly category: string;
  /** 0 = LIMITS.findToolsDefault. */
  readonly topK: number;
  /** 0 = no bound. */
  readonly tokenBudget: number;
  readonly schemas: SchemaChoice;
  readonly minRevision: string;
}

export type Reason =
  /** Words of the intent that the tool has, the rarest first. */
  | { readonly kind: "matched-words"; readonly words: readonly string[] }
  | { readonly kind: "exact-name" }
  /** Used with success for intents like this one. */
  | { readonly kind: "remembered" }
  /** The words fit its server as a whole. */
  | { readonly kind: "service"; readonly service: string }
  | { readonly kind: "rule"; readonly rule: string }
  /** It goes with the tool `of`, or often follows it. */
  | { readonly kind: "companion"; readonly of: string }
  /** It does something else to the same thing as `of`. */
  | { readonly kind: "sibling"; readonly of: string }
  | { readonly kind: "meaning" };

/** What a call may do, as the annotations say; `unknown` where they say nothing. */
export type SideEffect = "unknown" | "read-only" | "additive" | "destructive";

export interface RankedTool {
  readonly toolId: string;
  readonly tool: Tool;
  readonly availability: Availability;
  /** 0 to 1. */
  readonly score: number;
  /** How far it is ahead of the next candidate. */
  readonly margin: number;
  readonly reasons: readonly Reason[];
  /** Label and schema together, estimated. */
  readonly tokens: number;
  /** Undefined where no schema was asked for. */
  readonly schema: { readonly view: SchemaView; readonly loaded: LoadedSchema } | undefined;
  readonly sideEffect: SideEffect;
  /** Empty for the registrant's own label. */
  readonly labelVersion: string;
}

export type WithheldCause = "unhealthy" | "scope" | "precondition" | "budget" | "quarantined" | "rule";

export interface WithheldTool {
  readonly toolId: string;
  readonly cause: WithheldCause;
  /** A sentence that names what is missing. */
  readonly why: string;
  readonly substitutes: readonly string[];
  readonly score: number;
}

export interface FindOutput {
  readonly tools: readonly RankedTool[];
  readonly withheld: readonly WithheldTool[];
  /** Nothing really fits. */
  readonly weak: boolean;
  readonly answerTokens: number;
  /** All definitions of the namespace, estimated. */
  readonly catalogueTokens: number;
  readonly catalogueTools: number;
  readonly bundles: readonly Sequence[];
  readonly meaning: Meaning;
  readonly position: Position;
  readonly stale: boolean;
}

/** Tools that are often used one after the other. */
export interface Sequence {
  readonly toolIds: readonly string[];
  readonly description: string;
  /** Of all uses of its first tool, 0 to 1. */
  readonly share: number;
}

/** Whether vectors took part; `none` where no embedder is set. */
export type Meaning = "none" | "used" | "late" | "failed" | "building";

export interface MapQuery {
  readonly namespace: string;
  /** 0 = LIMITS.mapTokensDefault. */
  readonly tokenBudget: number;
  /** `server` or `server/module`; empty = the whole catalogue. */
  readonly module: string;
  readonly minRevision: string;
}

export interface MapOutput extends ModuleMap {
  /** Tools of rules that match every question, as far as they may be offered to anybody. */
  readonly alwaysIncluded: readonly string[];
  /** Facts of an agent's state that rules look at, sorted. */
  readonly stateFacts: readonly string[];
  readonly position: Position;
  readonly stale: boolean;
}

/** How a call failed; `unsaid` also for one that did not. */
export type ErrorKind =
  | "unsaid"
  | "timeout"
  | "unreachable"
  | "invalid-arguments"
  | "unauthorized"
  | "tool-error"
  | "wrong-tool"
  | "cancelled";

/** What came of a call. */
export interface OutcomeReport {
  /** Who reports: a principal's id, put in by the guard; one for all where nobody is identified. */
  readonly caller: string;
  readonly namespace: string;
  readonly toolId: string;
  /** As it was said to `find`; empty: only the outcome counts. */
  readonly intent: string;
  readonly history: readonly string[];
  readonly success: boolean;
  readonly errorKind: ErrorKind;
  readonly latencyMs: number | undefined;
  /** Tools called with success just before it for the same task, the latest first. */
  readonly preceding: readonly string[];
  /** RankedTool.labelVersion of the answer that was used. */
  readonly labelVersion: string;
}

export interface GateApi {
  /**
   * Answers whether the intent was remembered. Throws Fault NOT_FOUND for a tool that is not
   * registered, QUOTA_EXCEEDED for a caller that reports too fast, and those of a read.
   */
  report(report: OutcomeReport): Promise<{ readonly remembered: boolean }>;
  /** The catalogue in a few hundred tokens. Throws Fault NOT_FOUND for a module that is not there, and those of a read. */
  map(query: MapQuery): Promise<MapOutput>;
  /** `deadlineMs`: what the caller still has for loading schemas; undefined = none said. Throws Fault NOT_READY and those of a read. */
  find(query: FindQuery, deadlineMs: number | undefined): Promise<FindOutput>;
}
