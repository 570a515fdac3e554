/** Tunables of the gRPC listener that no caller sees as a limit of the registry, each with its reason. */
export const GRPC = {
  /** Longest answer to a unary call whose caller set no deadline: twice the longest load. */
  unaryDeadlineMs: 30_000,
  /** A watcher's bytes that are handed over and not taken yet: two messages of LIMITS.watchChunkBytes. */
  watchHighBytes: 64 * 1024,
  /** Taken down to this, the watcher gets more. */
  watchLowBytes: 16 * 1024,
  /** How long a watcher that does not read may take to receive why its watch ended. */
  lingerMs: 10_000,
  /** Pings on a quiet connection, and the wait for their answer: a dead peer's watches go within 40 s. */
  keepaliveTimeMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  /** A connection without a call has this long to leave by itself when the listener closes. */
  goawayMs: 200,
} as const;
