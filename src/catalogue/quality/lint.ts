import { notFound } from "../../domain/fault.js";
import type { LintOutput, LintQuery } from "../api.js";
import type { Partition } from "../partition.js";
import type { QualityBook } from "./book.js";

/** Those of the asked servers that have the most to mend, from memory (P11). */
export async function readLint(
  partition: Partition,
  book: Pick<QualityBook, "caughtUp" | "worst">,
  { namespace, serverIds, maxTools, minRevision }: LintQuery,
): Promise<LintOutput> {
  const { fold, stale } = await partition.at(minRevision);
  const absent = serverIds.find((id) => !fold.history.server(namespace, id));
  if (absent !== undefined) throw notFound("server", absent);
  await book.caughtUp();
  const asked = new Set(serverIds);
  const accept = (serverId: string): boolean => asked.size === 0 || asked.has(serverId);
  return { ...book.worst(namespace, accept, maxTools), position: fold.history.head, stale };
}
