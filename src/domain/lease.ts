/** Lease ids and the pace of renewals. An id names its partition, so that a Renew can be routed without a lookup. */

const LEASE_ID = /^l(0|[1-9]\d{0,4})-[0-9a-f]{32}$/;

/** `l<partition>-<id>`; `id` is 32 unguessable hex digits, so no lease id ever recurs. */
export function makeLeaseId(partition: number, id: string): string {
  const leaseId = `l${partition}-${id}`;
  if (!LEASE_ID.test(leaseId)) throw new Error(`a lease id is l<partition>-<32 hex digits>, not ${leaseId}`);
  return leaseId;
}

/** The partition that a lease id names; undefined if the registry cannot have made it. */
export function leasePartition(leaseId: string): number | undefined {
  const partition = LEASE_ID.exec(leaseId)?.[1];
  return partition === undefined ? undefined : Number(partition);
}

/**
 * When to renew: a third of the TTL, so that two renewals may be lost, ± 10 % so that processes started together drift
 * apart. `random01` is in [0, 1).
 */
export function renewAfterMs(ttlMs: number, random01: number): number {
  return Math.round((ttlMs / 3) * (0.9 + 0.2 * random01));
}
