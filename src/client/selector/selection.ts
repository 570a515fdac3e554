/** What came of a selection. */
import type { FindToolsResponse, RankedTool } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { Reason_Kind } from "../../gen/toolcrib/v1/gate_service_pb.js";
import type { ModelFailure } from "./model.js";

/**
 * Why the gate answered instead: no endpoint is set; the model failed as ModelFailure says, or did so often that it is left alone for a
 * while; it named nothing that there is; there is nothing to show it, or no room in the token budget to show it in.
 */
export type FallbackWhy = "no-endpoint" | ModelFailure | "resting" | "nonsense" | "nothing" | "budget";

export interface Fallback {
  readonly why: FallbackWhy;
  /** One sentence, for a log or a prompt. */
  readonly message: string;
}

/** What the model was asked, whether or not its choice was taken. */
export interface Effort {
  readonly calls: number;
  /** As the endpoint counted them, estimated where it does not say. */
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Modules that the model chose to look into; empty where all labels fitted into one question. */
  readonly modules: readonly string[];
  /** Labels that it was shown, and those of its modules for which the budget had no room. */
  readonly shown: number;
  readonly leftOut: number;
  /** Names that it gave and that the catalogue does not have; they were dropped. */
  readonly unknown: number;
}

export interface Selection {
  readonly by: "model" | "gate";
  /** Present where the gate chose. */
  readonly fallback?: Fallback;
  /**
   * What the gate says of the chosen tools, schemas included where they were asked for: in the model's order, each with what has to stand
   * beside it, and what is withheld of them with its cause. Where the gate chose, its whole answer.
   */
  readonly answer: FindToolsResponse;
  readonly effort: Effort;
}

export interface Chosen {
  readonly answer: FindToolsResponse;
  /** Chosen, and neither answered nor withheld. */
  readonly absent: number;
}

/** Of an answer in which all chosen tools are named, what belongs to the choice. */
export function chosenOf(answer: FindToolsResponse, ids: readonly string[]): Chosen {
  const place = new Map(ids.map((id, i) => [id, i]));
  const chosen = answer.tools.filter((tool) => place.has(idOf(tool))).sort((a, b) => (place.get(idOf(a)) ?? 0) - (place.get(idOf(b)) ?? 0));
  const there = new Set(chosen.map(idOf));
  const beside = answer.tools.filter((tool) => !there.has(idOf(tool)) && tool.reasons.some((reason) => BESIDE.has(reason.kind) && there.has(reason.detail)));
  const tools = [...chosen, ...beside];
  const withheld = answer.withheld.filter(({ toolId }) => place.has(toolId));
  const answerTokens = tools.reduce((sum, tool) => sum + tool.estimatedTokens, 0);
  const known = new Set([...there, ...withheld.map(({ toolId }) => toolId)]);
  return {
    answer: { ...answer, tools, withheld, bundles: [], answerTokens, weak: chosen.length === 0 },
    absent: ids.filter((id) => !known.has(id)).length,
  };
}

/** A tool that another needs, or must not be confused with. */
const BESIDE: ReadonlySet<Reason_Kind> = new Set([Reason_Kind.COMPANION, Reason_Kind.SIBLING]);

function idOf({ stub }: RankedTool): string {
  return stub?.toolId ?? "";
}
