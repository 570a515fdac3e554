import type { Change } from "../domain/change.js";
import { isWithheld } from "../domain/quarantine.js";
import type { Instance, ServerRecord } from "../domain/server.js";

/** What an operator reads in the log of a change: a line for each, never for a renewal. */
export interface News {
  readonly message: string;
  readonly fields: object;
}

/**
 * Who came, who left, whose tools changed. Undefined for what is no coming and going: health, definitions that became known.
 * Isolation is told where an operator asked for it.
 */
export function newsOf(before: ServerRecord | undefined, change: Change, revision: number): News | undefined {
  const message = messageOf(before, change);
  if (message === undefined) return undefined;
  const { namespace, serverId, header } = change;
  const arrived = arrivalOf(before, header);
  const fields = {
    namespace,
    server: serverId,
    revision,
    ...(arrived && { instance_id: arrived.instanceId }),
    instances: header?.instances.length ?? 0,
    ...countsOf(change),
  };
  return { message, fields };
}

function messageOf(before: ServerRecord | undefined, { cause, header, tools }: Change): string | undefined {
  const were = before?.header.instances.length ?? 0;
  const left = were > (header?.instances.length ?? 0);
  switch (cause) {
    case "register":
      if (!before) return "a server registered";
      return arrivalOf(before, header) ? "an instance of a server registered" : "a server registered other content";
    case "deregister":
      if (!header) return "a server was deregistered";
      return left ? "an instance of a server was deregistered" : "a tool was deregistered";
    case "expire":
      return header ? "an instance of a server left: its lease expired" : "a server left: its last lease expired";
    case "listing":
      return tools.length > 0 ? "a server lists other tools" : undefined;
    default:
      return undefined;
  }
}

function arrivalOf(before: ServerRecord | undefined, header: Change["header"]): Instance | undefined {
  const known = new Set(before?.header.instances.map(({ instanceId }) => instanceId));
  return header?.instances.find(({ instanceId }) => !known.has(instanceId));
}

/** Only what is not zero: most lines are about one kind. */
function countsOf({ tools, cause }: Change): object {
  const added = tools.filter(({ before }) => !before).length;
  const removed = tools.filter(({ after }) => !after).length;
  const changed = tools.length - added - removed;
  const resting = cause === "overlay" ? 0 : tools.filter(({ before, after }) => before?.overlay && after && !after.overlay).length;
  const withheld = tools.filter(({ before, after }) => after && isWithheld(after) && !(before && isWithheld(before))).length;
  return {
    ...(added > 0 && { tools_added: added }),
    ...(removed > 0 && { tools_removed: removed }),
    ...(changed > 0 && { tools_changed: changed }),
    // Approved labels that do not fit any more: an operator may want to have them proposed anew.
    ...(resting > 0 && { overlays_resting: resting }),
    ...(withheld > 0 && { tools_quarantined: withheld }),
  };
}
