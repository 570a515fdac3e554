import { type Quarantine, sameQuarantine } from "../../domain/quarantine.js";
import type { ServerRecord, Tool } from "../../domain/server.js";

/**
 * The next tools of a server under the quarantines that operators put them under. A tool that is there keeps what it has, whatever its
 * registrant makes of it; the shelf is asked only where one is new, for it may have been there before.
 */
export async function withQuarantines(
  record: ServerRecord | undefined,
  next: readonly Tool[],
  shelf: () => Promise<ReadonlyMap<string, Quarantine>>,
): Promise<readonly Tool[]> {
  const known = new Map((record?.tools ?? []).map((tool) => [tool.name, tool]));
  const kept = next.every(({ name }) => known.has(name)) ? undefined : await shelf();
  return next.map((tool) => {
    const before = known.get(tool.name);
    return quarantined(tool, before ? before.quarantine : kept?.get(tool.name));
  });
}

/** The tool under this quarantine, or under none. */
export function quarantined(tool: Tool, quarantine: Quarantine | undefined): Tool {
  if (sameQuarantine(tool.quarantine, quarantine)) return tool;
  const { quarantine: _, ...rest } = tool;
  return quarantine ? { ...rest, quarantine } : rest;
}
