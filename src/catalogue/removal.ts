import type { Cause } from "../domain/change.js";
import type { ServerRecord } from "../domain/server.js";
import type { LeaseEffect } from "./ports.js";
import type { Step } from "./writes.js";

/**
 * The step that takes instances away. Their set stays the server's set until somebody registers another; the server leaves
 * with its last instance.
 */
export function withoutInstances(
  record: ServerRecord,
  leaseIds: readonly string[],
  cause: Cause,
  buried: boolean,
): Step {
  const instances = record.header.instances.filter((i) => !leaseIds.includes(i.leaseId));
  const leases = leaseIds.map((leaseId): LeaseEffect => ({ kind: "end", leaseId, buried }));
  if (instances.length === 0) return { cause, next: null, leases };
  const retention = instances.some((i) => i.leaseId === "") ? "standing" : "leased";
  return { cause, next: { header: { ...record.header, instances, retention }, tools: record.tools }, leases };
}

/** The step that takes a whole server away, on purpose. */
export function withoutServer(record: ServerRecord): Step {
  const ids = record.header.instances.map((i) => i.leaseId).filter((id) => id !== "");
  const leases = ids.map((leaseId): LeaseEffect => ({ kind: "end", leaseId, buried: true }));
  return { cause: "deregister", next: null, leases, bury: true };
}
