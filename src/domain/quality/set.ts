/** The tools of one registration, judged together. */
import { toolId } from "../ids.js";
import { judgeDefinition } from "./definition.js";
import { duplicateWarning, type JudgedLabel, judgeLabel, textKeyOf } from "./label.js";
import { gathered, type QualityWarning } from "./warning.js";

export interface JudgedTool {
  readonly label: JudgedLabel;
  /** Undefined while it is not known: its parameters are judged another time. */
  readonly definition: Uint8Array | undefined;
}

/** What there is to mend of each tool, by name; a tool without a fault is left out. */
export function judgeSet(serverId: string, tools: readonly JudgedTool[]): ReadonlyMap<string, readonly QualityWarning[]> {
  const alike = new Map<string, string[]>();
  for (const { label } of tools) {
    const key = textKeyOf(label);
    if (key !== "") alike.set(key, [...(alike.get(key) ?? []), toolId(serverId, label.name)]);
  }
  const found = new Map<string, readonly QualityWarning[]>();
  for (const { label, definition } of tools) {
    const others = (alike.get(textKeyOf(label)) ?? []).filter((id) => id !== toolId(serverId, label.name));
    const same = others.length > 0 ? [duplicateWarning(others)] : [];
    const warnings = gathered(judgeLabel(label), same, definition ? judgeDefinition(definition) : []);
    if (warnings.length > 0) found.set(label.name, warnings);
  }
  return found;
}
