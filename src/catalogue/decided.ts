import type { ServerRecord, Tool } from "../domain/server.js";
import { withOverlays } from "./overlays/lay.js";
import { Shelf } from "./overlays/shelf.js";
import { withQuarantines } from "./quarantine/keep.js";
import { QuarantineShelf } from "./quarantine/shelf.js";
import type { Writes } from "./writes.js";

/** The next tools of a server, given as their registrant has them, with what operators decided for them. */
export async function asDecided(
  writes: Writes,
  namespace: string,
  serverId: string,
  record: ServerRecord | undefined,
  next: readonly Tool[],
): Promise<readonly Tool[]> {
  const { stubs } = writes.partition.deps;
  const laid = await withOverlays(record, next, stubs, () => new Shelf(writes, namespace, serverId).readWhole());
  return withQuarantines(record, laid, () => new QuarantineShelf(writes, namespace, serverId).readWhole());
}
