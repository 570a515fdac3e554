/** Answers of the gate as bytes: labels and definitions are put in as they are stored. */
import type { FindOutput, Meaning, RankedTool, Reason, Sequence, SideEffect, WithheldCause, WithheldTool } from "../gate/api.js";
import { formatRevision } from "../domain/revision.js";
import { MeaningState, Reason_Kind, SideEffect as SideEffectOnWire, WithheldTool_Cause } from "../gen/toolcrib/v1/gate_service_pb.js";
import { stubCodec } from "../store/codec/stub.js";
import { errorBytes, schemaParts } from "./answers.js";
import { WireWriter } from "./wire-writer.js";

const CAUSE: Readonly<Record<WithheldCause, WithheldTool_Cause>> = {
  unhealthy: WithheldTool_Cause.UNHEALTHY,
  scope: WithheldTool_Cause.SCOPE,
  precondition: WithheldTool_Cause.PRECONDITION,
  budget: WithheldTool_Cause.BUDGET,
  quarantined: WithheldTool_Cause.QUARANTINED,
  rule: WithheldTool_Cause.RULE,
};

const SIDE_EFFECT: Readonly<Record<SideEffect, SideEffectOnWire>> = {
  unknown: SideEffectOnWire.UNSPECIFIED,
  "read-only": SideEffectOnWire.READ_ONLY,
  additive: SideEffectOnWire.ADDITIVE,
  destructive: SideEffectOnWire.DESTRUCTIVE,
};

const MEANING: Readonly<Record<Meaning, MeaningState>> = {
  none: MeaningState.UNSPECIFIED,
  used: MeaningState.USED,
  late: MeaningState.LATE,
  failed: MeaningState.FAILED,
  building: MeaningState.BUILDING,
};

const REASON: Readonly<Record<Reason["kind"], Reason_Kind>> = {
  "matched-words": Reason_Kind.MATCHED_WORDS,
  "exact-name": Reason_Kind.EXACT_NAME,
  remembered: Reason_Kind.REMEMBERED,
  service: Reason_Kind.SERVICE,
  rule: Reason_Kind.RULE,
  companion: Reason_Kind.COMPANION,
  sibling: Reason_Kind.SIBLING,
  meaning: Reason_Kind.MEANING,
};

/** An encoded FindToolsResponse. */
export function findAnswer(output: FindOutput): Buffer {
  const writer = new WireWriter();
  for (const tool of output.tools) writer.nested(1, ...rankedParts(tool));
  for (const tool of output.withheld) writer.nested(2, withheldBytes(tool));
  writer
    .flag(3, output.weak)
    .int(4, output.answerTokens)
    .int(5, output.catalogueTokens)
    .int(6, output.catalogueTools)
    .text(7, formatRevision(output.position))
    .flag(8, output.stale);
  for (const bundle of output.bundles) writer.nested(9, bundleBytes(bundle));
  return writer.int(10, MEANING[output.meaning]).finish();
}

function rankedParts(ranked: RankedTool): readonly Uint8Array[] {
  const { tool, availability, score, margin, reasons, tokens, schema, sideEffect, labelVersion } = ranked;
  const rest = new WireWriter().double(2, score).double(3, margin);
  for (const reason of reasons) rest.nested(4, reasonBytes(reason));
  rest.int(5, tokens);
  if (schema?.loaded.kind === "schema") rest.nested(6, ...schemaParts(schema.loaded.schema, schema.view));
  if (schema?.loaded.kind === "fault") rest.nested(7, errorBytes(schema.loaded.fault));
  rest.int(8, SIDE_EFFECT[sideEffect]).text(9, labelVersion);
  // A list's element is the field 1 of its message, and so is RankedTool.stub.
  return [stubCodec.frame(tool, availability), rest.finish()];
}

function reasonBytes(reason: Reason): Buffer {
  const writer = new WireWriter().int(1, REASON[reason.kind]);
  if (reason.kind === "matched-words") for (const word of reason.words) writer.text(2, word);
  return writer.text(3, detailOf(reason)).finish();
}

function detailOf(reason: Reason): string {
  switch (reason.kind) {
    case "service":
      return reason.service;
    case "rule":
      return reason.rule;
    case "companion":
    case "sibling":
      return reason.of;
    default:
      return "";
  }
}

function bundleBytes({ toolIds, description, share }: Sequence): Buffer {
  const writer = new WireWriter();
  for (const id of toolIds) writer.text(1, id);
  return writer.text(2, description).double(3, share).finish();
}

function withheldBytes({ toolId, cause, why, substitutes, score }: WithheldTool): Buffer {
  const writer = new WireWriter().text(1, toolId).int(2, CAUSE[cause]).text(3, why);
  for (const id of substitutes) writer.text(4, id);
  return writer.double(5, score).finish();
}
