import { hash } from "node:crypto";
import { compareText } from "./ids.js";
import type { Availability, Tool } from "./server.js";

/** Which tools a reader wants; every given part must match. Lists are sorted and without repeats. */
export interface Filter {
  readonly namespace: string;
  readonly tagsAny: readonly string[];
  readonly tagsAll: readonly string[];
  readonly serverIds: readonly string[];
  readonly namePrefix: string;
  readonly availability: Availability | undefined;
}

export function everything(namespace: string): Filter {
  return { namespace, tagsAny: [], tagsAll: [], serverIds: [], namePrefix: "", availability: undefined };
}

export function sortedSet(values: readonly string[]): string[] {
  return [...new Set(values)].sort(compareText);
}

/** 16 hex digits that two filters share only when they select the same, namespace included. */
export function filterHash(f: Filter): string {
  const text = JSON.stringify([f.namespace, f.tagsAny, f.tagsAll, f.serverIds, f.namePrefix, f.availability ?? ""]);
  return hash("sha256", text, "hex").slice(0, 16);
}

export function matchesTool(f: Filter, tool: Tool): boolean {
  if (f.namePrefix !== "" && !tool.name.startsWith(f.namePrefix)) return false;
  if (f.tagsAny.length > 0 && !f.tagsAny.some((t) => tool.tags.includes(t))) return false;
  return f.tagsAll.every((t) => tool.tags.includes(t));
}

export function matchesServer(f: Filter, namespace: string, serverId: string): boolean {
  return f.namespace === namespace && (f.serverIds.length === 0 || f.serverIds.includes(serverId));
}

export function matchesAvailability(f: Filter, availability: Availability): boolean {
  return f.availability === undefined || f.availability === availability;
}
