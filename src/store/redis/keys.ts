/** Names of a partition's keys. All carry one hash tag, so that one script, and one slot of a Redis Cluster, has them all. */

export interface PartitionKeys {
  /** Hash: revision, chain, base, base_chain, bytes. */
  readonly head: string;
  /** Stream with ids `<revision>-0`: body, prev, chain, at. */
  readonly log: string;
  /** Hash by server key: `revision:record`. */
  readonly records: string;
  /** Hash by server key: revision. Beside the records, so that an expectation is checked without reading one. */
  readonly revisions: string;
  /** Sorted set of lease ids by end. */
  readonly lease: string;
  /** Hash by lease id: `ttl:` and JSON. */
  readonly leaseFacts: string;
  /** Set of lease ids. */
  readonly braked: string;
  /** Sorted sets by the end of the tombstone: lease ids, server keys. */
  readonly ended: string;
  readonly buried: string;
  /** Set of namespaces with blobs. */
  readonly blobNamespaces: string;
  /** Hash by digest: `fetched-at:bytes`. */
  blobs(namespace: string): string;
  /** Sorted set of digests by last put or touch. */
  blobRefs(namespace: string): string;
  /** String `version:bytes` with an expiry. */
  note(key: string): string;
  readonly noteVersion: string;
}

/** `prefix` holds no braces: the first pair in a key is its hash tag. */
export function partitionKeys(prefix: string, partition: number): PartitionKeys {
  const at = `${prefix}{${prefix}p${partition}}:`;
  return {
    head: `${at}head`,
    log: `${at}log`,
    records: `${at}rec`,
    revisions: `${at}rev`,
    lease: `${at}lease`,
    leaseFacts: `${at}leaseinfo`,
    braked: `${at}braked`,
    ended: `${at}tomb`,
    buried: `${at}buried`,
    blobNamespaces: `${at}blobns`,
    blobs: (namespace) => `${at}blob:${namespace}`,
    blobRefs: (namespace) => `${at}blobref:${namespace}`,
    note: (key) => `${at}note:${key}`,
    noteVersion: `${at}notever`,
  };
}

/** Hash: what was fixed when the store was created. */
export function metaKey(prefix: string): string {
  return `${prefix}meta`;
}
