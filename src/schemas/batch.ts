/** The bounds of a batch. */
import type { SchemaResult } from "../catalogue/api.js";
import { Fault, invalidRequest } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";

export function admitBatch(toolIds: readonly string[]): void {
  if (toolIds.length <= LIMITS.batchTools) return;
  const description = `${toolIds.length} tools asked for, the limit is ${LIMITS.batchTools}: split the batch`;
  throw invalidRequest([{ field: "tool_ids", description }]);
}

/** Keeps, in order, what fits into LIMITS.batchBytes together; whatever does not fit becomes a fault that says so. */
export function cutBatch(toolIds: readonly string[], results: readonly SchemaResult[]): readonly SchemaResult[] {
  let left: number = LIMITS.batchBytes;
  return results.map((result, i) => {
    if (result.kind === "fault") return result;
    const bytes = result.schema.definition.byteLength;
    if (bytes <= left) {
      left -= bytes;
      return result;
    }
    return { kind: "fault", fault: overBudget(toolIds[i] ?? "", bytes, left) };
  });
}

function overBudget(toolId: string, bytes: number, left: number): Fault {
  const text =
    `a batch answers at most ${LIMITS.batchBytes} bytes of definitions; ${toolId} has ${bytes} and ${left} were left: ` +
    "ask for it in another call";
  return new Fault("QUOTA_EXCEEDED", text, {
    metadata: { tool: toolId, limit: String(LIMITS.batchBytes), bytes: String(bytes) },
  });
}
