/** Answers of the gate as bytes: labels and definitions are put in as they are stored. */
import type { FindOutput, RankedTool, Reason, WithheldCause, WithheldTool } from "../gate/api.js";
import { formatRevision } from "../domain/revision.js";
import { Reason_Kind, WithheldTool_Cause } from "../gen/toolcrib/v1/gate_service_pb.js";
import { stubCodec } from "../store/codec/stub.js";
import { errorBytes, schemaParts } from "./answers.js";
import { WireWriter } from "./wire-writer.js";

const CAUSE: Readonly<Record<WithheldCause, WithheldTool_Cause>> = {
  unhealthy: WithheldTool_Cause.UNHEALTHY,
  scope: WithheldTool_Cause.SCOPE,
  precondition: WithheldTool_Cause.PRECONDITION,
  budget: WithheldTool_Cause.BUDGET,
};

/** An encoded FindToolsResponse. */
export function findAnswer(output: FindOutput): Buffer {
  const writer = new WireWriter();
  for (const tool of output.tools) writer.nested(1, ...rankedParts(tool));
  for (const tool of output.withheld) writer.nested(2, withheldBytes(tool));
  return writer
    .flag(3, output.weak)
    .int(4, output.answerTokens)
    .int(5, output.catalogueTokens)
    .int(6, output.catalogueTools)
    .text(7, formatRevision(output.position))
    .flag(8, output.stale)
    .finish();
}

function rankedParts({ tool, availability, score, margin, reasons, tokens, schema }: RankedTool): readonly Uint8Array[] {
  const rest = new WireWriter().double(2, score).double(3, margin);
  for (const reason of reasons) rest.nested(4, reasonBytes(reason));
  rest.int(5, tokens);
  if (schema?.loaded.kind === "schema") rest.nested(6, ...schemaParts(schema.loaded.schema, schema.view));
  if (schema?.loaded.kind === "fault") rest.nested(7, errorBytes(schema.loaded.fault));
  // A list's element is the field 1 of its message, and so is RankedTool.stub.
  return [stubCodec.frame(tool, availability), rest.finish()];
}

function reasonBytes(reason: Reason): Buffer {
  if (reason.kind === "exact-name") return new WireWriter().int(1, Reason_Kind.EXACT_NAME).finish();
  const writer = new WireWriter().int(1, Reason_Kind.MATCHED_WORDS);
  for (const word of reason.words) writer.text(2, word);
  return writer.finish();
}

function withheldBytes({ toolId, cause, why, substitutes, score }: WithheldTool): Buffer {
  const writer = new WireWriter().text(1, toolId).int(2, CAUSE[cause]).text(3, why);
  for (const id of substitutes) writer.text(4, id);
  return writer.double(5, score).finish();
}
