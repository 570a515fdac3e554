import { splitToolId, toolId } from "../../domain/ids.js";
import type { Stub } from "../../gen/toolcrib/v1/stub_pb.js";
import type { Brought, LoadedTool, MissingTool } from "./load.js";

/** The tool_ids that can stand in for a tool, as its registrant named them: by tool_id, or by name within the server. */
export function substitutesOf(label: Stub | undefined): string[] {
  if (!label) return [];
  return label.substitutes.map((named) => (splitToolId(named) ? named : toolId(label.serverId, named)));
}

/** What is left out, each with what can be used in its place; nothing is offered twice. */
export function withInstead(
  lost: readonly Extract<Brought, { kind: "missing" }>[],
  taken: readonly LoadedTool[],
  candidatesFor: (lost: MissingTool, substitutes: readonly string[]) => readonly string[],
  find: (toolId: string) => LoadedTool | undefined,
): MissingTool[] {
  const used = new Set([...taken.map((t) => t.toolId), ...lost.map((l) => l.missing.toolId)]);
  return lost.map(({ missing, substitutes }) => {
    for (const candidate of candidatesFor(missing, substitutes)) {
      const instead = used.has(candidate) ? undefined : find(candidate);
      if (!instead) continue;
      used.add(candidate);
      return { ...missing, instead };
    }
    return missing;
  });
}
