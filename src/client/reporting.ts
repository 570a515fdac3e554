import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorKind, type ReportOutcomeRequestSchema } from "../gen/toolcrib/v1/gate_service_pb.js";
import type { ErrorKindName } from "./calling/outcome.js";
import type { Found } from "./finding.js";

/** One call, and what came of it; a CallOutcome is one. */
export interface Outcome {
  readonly toolId: string;
  readonly success: boolean;
  readonly errorKind?: ErrorKindName;
  readonly latencyMs?: number;
}

export interface ReportOptions {
  /** What the call was made for: intent, history and label version are taken from it. */
  readonly found?: Found;
  /** The tool did what it does, and it was not what the intent needed. */
  readonly wrongTool?: boolean;
  /** Tools called with success just before it for the same task, the latest first. */
  readonly precedingTools?: readonly string[];
}

/** Tools before it that a report may name. */
const PRECEDING = 5;
const DAY_MS = 24 * 3_600_000;

export function outcomeRequest(
  namespace: string,
  { toolId, success, errorKind, latencyMs }: Outcome,
  { found, wrongTool = false, precedingTools = [] }: ReportOptions,
): MessageInitShape<typeof ReportOutcomeRequestSchema> {
  const good = success && !wrongTool;
  const kind = wrongTool ? "WRONG_TOOL" : errorKind;
  return {
    namespace,
    toolId,
    success: good,
    intent: found?.intent ?? "",
    history: [...(found?.history ?? [])],
    labelVersion: found?.tools.find((tool) => tool.toolId === toolId)?.labelVersion ?? "",
    precedingTools: precedingTools.slice(0, PRECEDING),
    ...(!good && kind && { errorKind: ErrorKind[kind] }),
    ...(latencyMs !== undefined && { latency: durationFromMs(Math.min(DAY_MS, Math.max(0, Math.round(latencyMs)))) }),
  };
}
