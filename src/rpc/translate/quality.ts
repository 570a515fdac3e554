/** What there is to mend in descriptions, between the use-cases' values and protobuf. */
import { create } from "@bufbuild/protobuf";
import type { LintOutput, LintQuery } from "../../catalogue/api.js";
import { LIMITS } from "../../domain/limits.js";
import type { QualityWarning, WarningKind } from "../../domain/quality/warning.js";
import { formatRevision } from "../../domain/revision.js";
import {
  type LintToolsRequest,
  type LintToolsResponse,
  LintToolsResponseSchema,
  QualityWarningSchema,
  QualityWarning_Kind as Kind,
  type QualityWarning as WireWarning,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import { Checks } from "./checks.js";

const KIND: Readonly<Record<WarningKind, Kind>> = {
  "no-purpose": Kind.NO_PURPOSE,
  "one-word": Kind.ONE_WORD,
  "undescribed-parameters": Kind.UNDESCRIBED_PARAMETERS,
  "no-example": Kind.NO_EXAMPLE,
  "duplicate-text": Kind.DUPLICATE_TEXT,
  "too-long": Kind.TOO_LONG,
};

export function fromWarnings(warnings: readonly QualityWarning[]): WireWarning[] {
  return warnings.map(({ kind, message }) => create(QualityWarningSchema, { kind: KIND[kind], message }));
}

export function toLintQuery(request: LintToolsRequest): LintQuery {
  const checks = new Checks();
  const namespace = checks.namespace(request.namespace);
  checks.count("server_ids", request.serverIds.length, LIMITS.filterServers);
  for (const [i, id] of request.serverIds.slice(0, LIMITS.filterServers).entries()) checks.name("server_id", `server_ids[${i}]`, id);
  const { maxTools } = request;
  if (maxTools < 0 || maxTools > LIMITS.lintTools)
    checks.add("max_tools", `1 to ${LIMITS.lintTools}, or 0 for ${LIMITS.lintToolsDefault}; ${maxTools} was sent`);
  const minRevision = checks.token("min_revision", request.minRevision);
  checks.done();
  return { namespace, serverIds: request.serverIds, maxTools: maxTools || LIMITS.lintToolsDefault, minRevision };
}

export function fromLintOutput(output: LintOutput): LintToolsResponse {
  return create(LintToolsResponseSchema, {
    tools: output.tools.map(({ toolId, warnings, definitionKnown }) => ({
      toolId,
      warnings: fromWarnings(warnings),
      definitionUnknown: !definitionKnown,
    })),
    counts: [...output.counts].map(([kind, tools]) => ({ kind: KIND[kind], tools })),
    toolCount: output.all,
    warnedCount: output.warned,
    unknownCount: output.unknown,
    revision: formatRevision(output.position),
    stale: output.stale,
  });
}
