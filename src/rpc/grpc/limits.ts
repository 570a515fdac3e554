/** Tunables of the gRPC listener that no caller sees as a limit of the registry, each with its reason. */
export const GRPC = {
  /** Pings on a quiet connection, and the wait for their answer: a dead peer's watches go within 40 s. */
  keepaliveTimeMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  /** A connection without a call has this long to leave by itself when the listener closes. */
  goawayMs: 200,
} as const;
