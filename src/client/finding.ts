import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Bundle,
  type FindToolsRequestSchema,
  type FindToolsResponse,
  type Reason,
  Reason_Kind,
  SideEffect,
  type WithheldTool,
  WithheldTool_Cause,
} from "../gen/toolcrib/v1/gate_service_pb.js";
import type { Stub, StubFilterSchema } from "../gen/toolcrib/v1/stub_pb.js";

/** What the gate is told besides the intent. */
export interface FindOptions {
  /** What the user said before, oldest first. */
  readonly history?: readonly string[];
  /** Calls made before. */
  readonly recentTools?: readonly { readonly toolId: string; readonly success: boolean; readonly turnsAgo: number }[];
  /** Facts of the agent's state, `name` or `name=value`. */
  readonly state?: readonly string[];
  /** Scopes granted to the agent. */
  readonly scopes?: readonly string[];
  /** Only these tools; `category` is a module of the module map. Default: what the agent follows. */
  readonly filter?: MessageInitShape<typeof StubFilterSchema>;
  /** At most this many, 1 to 50; default 5. */
  readonly topK?: number;
  /** Estimated tokens that they may have together. */
  readonly tokenBudget?: number;
  /** tool_ids that are wanted besides, at most 50: answered if the caller may use them, or withheld with the cause. */
  readonly namedTools?: readonly string[];
  /** Default 10 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type ReasonKind = keyof typeof Reason_Kind;
export type SideEffectName = keyof typeof SideEffect;
export type WithheldCause = keyof typeof WithheldTool_Cause;

export interface FoundTool {
  readonly toolId: string;
  readonly stub: Stub;
  /** 0 to 1: its share of what an ideal tool for this intent would have. */
  readonly score: number;
  /** How far it is ahead of the next candidate. */
  readonly margin: number;
  readonly reasons: readonly { readonly kind: ReasonKind; readonly words: readonly string[]; readonly detail: string }[];
  readonly sideEffect: SideEffectName;
  /** To be sent along in a report; `report` does. */
  readonly labelVersion: string;
}

export interface WithheldFinding {
  readonly toolId: string;
  readonly cause: WithheldCause;
  /** A sentence that names what is missing. */
  readonly why: string;
  readonly substitutes: readonly string[];
  readonly score: number;
}

/** Which tools fit an intent. */
export interface Found {
  readonly intent: string;
  readonly history: readonly string[];
  /** The best first. */
  readonly tools: readonly FoundTool[];
  /** Would have been among them. */
  readonly withheld: readonly WithheldFinding[];
  /** No tool really fits. */
  readonly weak: boolean;
  /** Sequences that are often used together. */
  readonly bundles: readonly Pick<Bundle, "toolIds" | "description" | "share">[];
  /** All definitions of the namespace in a prompt: bytes divided by 4. */
  readonly catalogueTokens: number;
  readonly catalogueTools: number;
  readonly revision: string;
  /** The registry's store is away; this is the last that it knows. */
  readonly stale: boolean;
}

export function findRequest(namespace: string, intent: string, options: FindOptions): MessageInitShape<typeof FindToolsRequestSchema> {
  const { history = [], recentTools = [], state = [], scopes = [], filter, topK = 0, tokenBudget = 0, namedTools = [] } = options;
  return {
    namespace,
    intent,
    history: [...history],
    recentTools: recentTools.map((tool) => ({ ...tool })),
    state: [...state],
    scopes: [...scopes],
    ...(filter && { filter }),
    topK,
    tokenBudget,
    namedTools: [...namedTools],
  };
}

/** An answer of FindTools, or of the selector, as `find` gives it: what `Injector.turn` takes. */
export function foundIn(answer: FindToolsResponse, intent: string, { history = [] }: Pick<FindOptions, "history"> = {}): Found {
  const { weak, catalogueTools, revision, stale } = answer;
  return {
    intent,
    history,
    tools: answer.tools.flatMap((tool) => (tool.stub ? [foundTool(tool, tool.stub)] : [])),
    withheld: answer.withheld.map(withheldFinding),
    weak,
    bundles: answer.bundles.map(({ toolIds, description, share }) => ({ toolIds, description, share })),
    catalogueTokens: Number(answer.catalogueTokens),
    catalogueTools,
    revision,
    stale,
  };
}

function foundTool({ score, margin, reasons, sideEffect, labelVersion }: FindToolsResponse["tools"][number], stub: Stub): FoundTool {
  return {
    toolId: stub.toolId,
    stub,
    score,
    margin,
    reasons: reasons.map(reasonOf),
    // A newer registry may send a word that this version does not know.
    sideEffect: (SideEffect[sideEffect] ?? "UNSPECIFIED") as SideEffectName,
    labelVersion,
  };
}

function reasonOf({ kind, words, detail }: Reason): FoundTool["reasons"][number] {
  return { kind: (Reason_Kind[kind] ?? "UNSPECIFIED") as ReasonKind, words, detail };
}

function withheldFinding({ toolId, cause, why, substitutes, score }: WithheldTool): WithheldFinding {
  return { toolId, cause: (WithheldTool_Cause[cause] ?? "UNSPECIFIED") as WithheldCause, why, substitutes, score };
}
