/** Where a namespace lives. */
import { createHash } from "node:crypto";

/** A number of 32 bits that is a namespace's for ever, in 8 hex digits. */
export function placementOf(namespace: string): string {
  return createHash("sha256").update(namespace).digest("hex").slice(0, 8);
}

/** Namespaces are spread by hash; the number of partitions is fixed when a store is created, so this never moves one. */
export function partitionIndex(namespace: string, partitions: number): number {
  if (partitions === 1) return 0;
  return Number.parseInt(placementOf(namespace), 16) % partitions;
}
