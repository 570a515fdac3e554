/** Tunables that all listeners share and that no caller sees as a limit of the registry, each with its reason. */
export const RPC = {
  /** Longest answer to a unary call whose caller set no deadline: twice the longest load. */
  unaryDeadlineMs: 30_000,
  /** A watcher's bytes that are handed over and not taken yet: two messages of LIMITS.watchChunkBytes. */
  watchHighBytes: 64 * 1024,
  /** Taken down to this, the watcher gets more. */
  watchLowBytes: 16 * 1024,
  /** How long a watcher that does not read may take to receive why its watch ended. */
  lingerMs: 10_000,
} as const;
