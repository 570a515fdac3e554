/** A selection as an agent takes it. */
import { type FindOptions, type Found, foundIn } from "../finding.js";
import type { Selection } from "./selection.js";

/** In `tools` stands what the model chose, in its order, or what the gate found. */
export interface Selected extends Found, Pick<Selection, "by" | "fallback" | "effort"> {
  /** Definitions that came along, by tool_id, byte for byte; what came too late is left out, and `load` has it. */
  readonly definitions: ReadonlyMap<string, Uint8Array>;
}

export function selectedIn({ answer, ...selection }: Selection, intent: string, options: Pick<FindOptions, "history">): Selected {
  const definitions = answer.tools.flatMap(({ stub, schema }): [string, Uint8Array][] =>
    stub && schema.case === "definition" ? [[stub.toolId, schema.value.definition]] : [],
  );
  return { ...foundIn(answer, intent, options), ...selection, definitions: new Map(definitions) };
}
