import { serverKey } from "../../domain/ids.js";
import type { Quarantine } from "../../domain/quarantine.js";
import type { Fold } from "../partition.js";
import type { Logger } from "../ports.js";
import type { Decision, Writes } from "../writes.js";
import { quarantined } from "./keep.js";
import { quarantinesIn, QuarantineShelf } from "./shelf.js";

/** Between two looks at who is back. */
const LOOK_MS = 1_000;

interface Lost {
  readonly namespace: string;
  readonly serverId: string;
  readonly quarantines: readonly Quarantine[];
  kept: boolean;
}

/**
 * After a broken chain, puts back the quarantines that this replica remembers (P7): for servers that come back later, and on tools that
 * came back through a replica which remembers nothing. Goes on until all are back or the new catalogue has taken over.
 */
export async function healQuarantines(writes: Writes, folds: readonly Fold[], logger: Logger, signal: AbortSignal): Promise<void> {
  const { partition } = writes;
  const lost = lostIn(folds);
  const live = partition.live();
  while (lost.size > 0 && !signal.aborted && partition.live() === live) {
    const last = partition.state.kind !== "growing";
    let failed = false;
    for (const [key, one] of lost) {
      try {
        if (await putBack(writes, one)) lost.delete(key);
      } catch (err) {
        failed = true;
        logger.warn({ namespace: one.namespace, server: one.serverId, err }, "quarantines could not be restored yet; trying again");
      }
    }
    if (lost.size === 0 || (last && !failed)) return;
    await partition.deps.clock.sleep(LOOK_MS, signal);
  }
}

/** The newer record of a server is the one to restore. */
function lostIn(folds: readonly Fold[]): Map<string, Lost> {
  const lost = new Map<string, Lost>();
  for (const { history } of folds)
    for (const [namespace, { ordered }] of history.namespaces)
      for (const { serverId, record } of ordered) {
        const key = serverKey(namespace, serverId);
        const quarantines = quarantinesIn(record);
        if (quarantines.length > 0 && !lost.has(key)) lost.set(key, { namespace, serverId, quarantines, kept: false });
      }
  return lost;
}

/** Whether the server is back, with what it had been under. */
async function putBack(writes: Writes, lost: Lost): Promise<boolean> {
  const { namespace, serverId, quarantines } = lost;
  if (!lost.kept) await new QuarantineShelf(writes, namespace, serverId).putBack(quarantines);
  lost.kept = true;
  if (!writes.partition.live().history.server(namespace, serverId)) return false;
  const byName = new Map(quarantines.map((one) => [one.toolName, one]));
  const result = await writes.write(namespace, serverId, (record): Decision<boolean> => {
    if (!record) return { kind: "keep", value: false };
    const tools = record.tools.map((tool) => (tool.quarantine ? tool : quarantined(tool, byName.get(tool.name))));
    if (tools.every((tool, i) => tool === record.tools[i])) return { kind: "keep", value: true };
    return { kind: "commit", step: { cause: "quarantine", next: { header: record.header, tools }, leases: [] }, value: true };
  });
  return result.kind !== "not-due" && result.value;
}
