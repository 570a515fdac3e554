import { type Change, sameListed, type ToolChange } from "../../domain/change.js";
import { type Filter, matchesAvailability, matchesServer, matchesTool } from "../../domain/filter.js";
import { compareText } from "../../domain/ids.js";
import { isWithheld } from "../../domain/quarantine.js";
import type { Availability, Tool } from "../../domain/server.js";
import type { WatchEvent } from "../api.js";

/**
 * What a change means to a watcher with this filter: AVAILABILITY_CHANGED first, then one event per tool in name order.
 * Computed from the entry, so every replica says the same about any entry it can still read (P4). `toolsAfter` answers the
 * server's whole list just after this change; it is asked only when the availability changed.
 */
export function eventsOf(change: Change, filter: Filter, toolsAfter: () => readonly Tool[]): WatchEvent[] {
  if (!matchesServer(filter, change.namespace, change.serverId)) return [];
  const before = change.availabilityBefore;
  const after = change.header?.availability ?? null;
  const events: WatchEvent[] = [];
  let tools = change.tools;
  if (before !== null && after !== null && before !== after) {
    // A filter on availability makes every tool of the server enter or leave; other filters hear of the server.
    if (filter.availability !== undefined) tools = withUnchanged(tools, toolsAfter());
    else if (toolsAfter().some((t) => seen(filter, t, after))) events.push(availabilityChanged(change.serverId, after));
  }
  for (const tool of tools) {
    const event = toolEvent(change, tool, filter, before, after);
    if (event) events.push(event);
  }
  return events;
}

function withUnchanged(changes: readonly ToolChange[], toolsAfter: readonly Tool[]): ToolChange[] {
  const changed = new Set(changes.map((c) => c.name));
  const unchanged = toolsAfter.filter((t) => !changed.has(t.name)).map((t) => ({ name: t.name, before: t, after: t }));
  return [...changes, ...unchanged].sort((a, b) => compareText(a.name, b.name));
}

function availabilityChanged(serverId: string, availability: Availability): WatchEvent {
  return {
    type: "AVAILABILITY_CHANGED",
    serverId,
    toolName: "",
    tool: undefined,
    availability,
    oldDigest: "",
    newDigest: "",
  };
}

function toolEvent(
  change: Change,
  tool: ToolChange,
  filter: Filter,
  availabilityBefore: Availability | null,
  availabilityAfter: Availability | null,
): WatchEvent | undefined {
  const before = seen(filter, tool.before, availabilityBefore);
  const after = seen(filter, tool.after, availabilityAfter);
  if (!before && !after) return undefined;
  if (before && after && before !== after && sameListed(before, after)) return undefined;
  return {
    type: typeOf(change, tool, before, after),
    serverId: change.serverId,
    toolName: tool.name,
    tool: after,
    availability: availabilityAfter ?? "unavailable",
    oldDigest: before?.digest ?? "",
    newDigest: after?.digest ?? "",
  };
}

/** The tool as far as the filter lets it be seen; a withheld one never is. */
function seen(filter: Filter, tool: Tool | undefined, availability: Availability | null): Tool | undefined {
  if (!tool || availability === null || isWithheld(tool)) return undefined;
  return matchesAvailability(filter, availability) && matchesTool(filter, tool) ? tool : undefined;
}

function typeOf(change: Change, whole: ToolChange, before: Tool | undefined, after: Tool | undefined): WatchEvent["type"] {
  if (!before) return whole.before && isWithheld(whole.before) ? "RELEASED" : "REGISTERED";
  if (!after) {
    // Whatever the filter makes of it: that it is withheld is what matters to whoever has it.
    if (whole.after && isWithheld(whole.after)) return "QUARANTINED";
    return change.cause === "expire" ? "EXPIRED" : "DEREGISTERED";
  }
  // A known digest that changed, or is not known any more, invalidates whatever else changed with it.
  return before.digest !== "" && before.digest !== after.digest ? "SCHEMA_INVALIDATED" : "UPDATED";
}
