/** What came of a call: protobuf → the gate's report. */
import type { Duration } from "@bufbuild/protobuf/wkt";
import { LIMITS } from "../../domain/limits.js";
import type { ErrorKind, OutcomeReport } from "../../gate/api.js";
import { ErrorKind as ErrorKindOnWire, type ReportOutcomeRequest } from "../../gen/toolcrib/v1/gate_service_pb.js";
import { Checks } from "./checks.js";

const KINDS: Readonly<Record<ErrorKindOnWire, ErrorKind>> = {
  [ErrorKindOnWire.UNSPECIFIED]: "unsaid",
  [ErrorKindOnWire.TIMEOUT]: "timeout",
  [ErrorKindOnWire.UNREACHABLE]: "unreachable",
  [ErrorKindOnWire.INVALID_ARGUMENTS]: "invalid-arguments",
  [ErrorKindOnWire.UNAUTHORIZED]: "unauthorized",
  [ErrorKindOnWire.TOOL_ERROR]: "tool-error",
  [ErrorKindOnWire.WRONG_TOOL]: "wrong-tool",
  [ErrorKindOnWire.CANCELLED]: "cancelled",
};

/** Throws INVALID_REQUEST with every violation. */
export function toReport(request: ReportOutcomeRequest): OutcomeReport {
  const checks = new Checks();
  const { history, precedingTools, success, errorKind } = request;
  checks.count("history", history.length, LIMITS.historyTurns);
  checks.count("preceding_tools", precedingTools.length, LIMITS.precedingTools);
  if (success && errorKind !== ErrorKindOnWire.UNSPECIFIED)
    checks.add("error_kind", "is set beside success; a call that succeeded has none");
  const report: OutcomeReport = {
    caller: "",
    namespace: checks.namespace(request.namespace),
    toolId: checks.toolId("tool_id", request.toolId),
    intent: checks.length("intent", request.intent, LIMITS.intentLength),
    history: history
      .slice(0, LIMITS.historyTurns)
      .map((turn, i) => checks.length(`history[${i}]`, turn, LIMITS.intentLength)),
    success,
    // A kind that a newer client knows says that the call failed, and not how.
    errorKind: KINDS[errorKind] ?? "unsaid",
    latencyMs: toLatency(request.latency, checks),
    preceding: precedingTools
      .slice(0, LIMITS.precedingTools)
      .map((toolId, i) => checks.toolId(`preceding_tools[${i}]`, toolId)),
    labelVersion: checks.length("label_version", request.labelVersion, LIMITS.labelVersionLength),
  };
  checks.done();
  return report;
}

function toLatency(latency: Duration | undefined, checks: Checks): number | undefined {
  if (!latency) return undefined;
  const ms = Number(latency.seconds) * 1_000 + latency.nanos / 1e6;
  if (ms < 0 || ms > LIMITS.latencyMs) checks.add("latency", `0 to ${LIMITS.latencyMs / 3_600_000} h; ${ms / 1_000} s was sent`);
  return ms;
}
