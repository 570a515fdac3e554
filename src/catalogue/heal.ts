import type { Instance, ServerRecord } from "../domain/server.js";
import { overlaysIn, Shelf } from "./overlays/shelf.js";
import type { Fold } from "./partition.js";
import type { Logger } from "./ports.js";
import type { Decision, Writes } from "./writes.js";

/** Between two tries when the store fails in the middle. */
const RETRY_MS = 1_000;

/**
 * After a broken chain, commits the standing servers that this replica held and the new log lacks, unless they were
 * removed on purpose (P7). Nobody renews those, so nobody else would bring them back; leased ones register again
 * themselves. Tries until it is through, or until yet another history begins, whose turn it is then.
 */
export async function healStanding(
  writes: Writes,
  lost: readonly Fold[],
  logger: Logger,
  onRestored: (servers: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { partition } = writes;
  const { live } = partition.state.kind === "starting" ? { live: undefined } : partition.state;
  while (!signal.aborted && partition.live() === live) {
    try {
      let restored = 0;
      for (const old of lost) restored += await restoreStanding(writes, old);
      if (restored > 0) {
        onRestored(restored);
        logger.warn(
          { partition: partition.index, servers: restored },
          "standing servers were lost in the store; restored",
        );
      }
      return;
    } catch (error) {
      logger.warn(
        { partition: partition.index, err: error },
        "standing servers could not be restored yet; trying again",
      );
      await partition.deps.clock.sleep(RETRY_MS, signal);
    }
  }
}

async function restoreStanding(writes: Writes, old: Fold): Promise<number> {
  let restored = 0;
  for (const [namespace, ns] of old.history.namespaces) {
    for (const { record } of ns.ordered) {
      if (record.header.retention !== "standing") continue;
      if (await restore(writes, namespace, record)) restored++;
    }
  }
  return restored;
}

async function restore(writes: Writes, namespace: string, record: ServerRecord): Promise<boolean> {
  const { serverId } = record.header;
  if (await writes.partition.deps.store.leases.buried(namespace, serverId)) return false;
  // Leases did not survive, so their instances come back by registering again.
  const instances = record.header.instances.filter((i) => i.leaseId === "").map((i) => ({ ...i, revision: 0 }));
  const header = { ...record.header, instances };
  const result = await writes.write(namespace, serverId, (now): Decision<boolean> => {
    const next = now ? withStanding(now, instances) : { header, tools: record.tools };
    if (!next) return { kind: "keep", value: false };
    return { kind: "commit", step: { cause: "register", next, leases: [] }, value: true };
  });
  if (overlaysIn(record).length > 0) await new Shelf(writes, namespace, serverId).readWhole();
  return result.kind === "committed";
}

/** A leased instance of the server was quicker to register again: its set stays the server's set, and the standing ones keep the server. */
function withStanding(now: ServerRecord, standing: readonly Instance[]) {
  const there = new Set(now.header.instances.map((i) => i.instanceId));
  const missing = standing.filter((i) => !there.has(i.instanceId));
  if (missing.length === 0) return undefined;
  const instances = [...missing, ...now.header.instances];
  return { header: { ...now.header, instances, retention: "standing" as const }, tools: now.tools };
}
