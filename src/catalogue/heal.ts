import type { ServerRecord } from "../domain/server.js";
import type { Fold } from "./partition.js";
import type { Logger } from "./ports.js";
import type { Decision, Writes } from "./writes.js";

/**
 * After a broken chain, commits the standing servers that this replica held and the new log lacks, unless they were
 * removed on purpose (P7). Nobody renews those, so nobody else would bring them back. Leased ones register again themselves.
 */
export async function restoreStanding(writes: Writes, old: Fold, logger: Logger): Promise<number> {
  let restored = 0;
  for (const [namespace, ns] of old.history.namespaces) {
    for (const { record } of ns.ordered) {
      if (record.header.retention !== "standing") continue;
      if (await restore(writes, namespace, record)) restored++;
    }
  }
  if (restored > 0)
    logger.warn(
      { partition: writes.partition.index, servers: restored },
      "standing servers were lost in the store and restored",
    );
  return restored;
}

async function restore(writes: Writes, namespace: string, record: ServerRecord): Promise<boolean> {
  const { serverId } = record.header;
  if (await writes.partition.deps.store.leases.buried(namespace, serverId)) return false;
  // Leases did not survive, so their instances come back by registering again.
  const instances = record.header.instances.filter((i) => i.leaseId === "").map((i) => ({ ...i, revision: 0 }));
  const header = { ...record.header, instances };
  const result = await writes.write(namespace, serverId, (now): Decision<boolean> => {
    if (now) return { kind: "keep", value: false };
    return {
      kind: "commit",
      step: { cause: "register", next: { header, tools: record.tools }, leases: [] },
      value: true,
    };
  });
  return result.kind === "committed";
}
