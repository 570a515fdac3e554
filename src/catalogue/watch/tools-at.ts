import { applyTools, type ToolChange } from "../../domain/change.js";
import type { Tool } from "../../domain/server.js";
import type { History } from "../history.js";

/**
 * A server's tools just after a revision that the ring still holds: today's list with the later entries undone. Entries
 * carry whole values before and after, so undoing is applying them the other way round.
 */
export function toolsAt(history: History, namespace: string, serverId: string, revision: number): readonly Tool[] {
  let tools = history.server(namespace, serverId)?.record.tools ?? [];
  for (let r = history.head.revision; r > revision; r--) {
    const change = history.ring.at(r)?.change;
    if (change?.namespace !== namespace || change.serverId !== serverId) continue;
    tools = applyTools(tools, change.tools.map(undo));
  }
  return tools;
}

function undo(change: ToolChange): ToolChange {
  return {
    name: change.name,
    ...(change.after && { before: change.after }),
    ...(change.before && { after: change.before }),
  };
}
