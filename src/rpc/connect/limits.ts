/** Tunables of the HTTP listener that no caller sees as a limit of the registry, each with its reason. */
export const HTTP = {
  /** Answers from here on are compressed for callers that ask for it: below, the saving is less than the work. */
  compressMinBytes: 4 * 1024,
  /** Headers that are read at all: more than LIMITS.metadataBytes, so that a caller with too many hears it in its own protocol. */
  headerBytes: 128 * 1024,
  /** A caller that dawdles over its headers, or over its whole request, is holding a connection for nothing. */
  headersMs: 10_000,
  requestMs: 60_000,
  /** A quiet connection is kept this long for the next call; longer than most proxies' own 60 s. */
  keepAliveMs: 65_000,
  /** TCP asks a quiet peer whether it lives: a dead one's watches go. */
  tcpKeepAliveMs: 30_000,
  /** How long a browser may remember what a preflight allowed: the most that any browser takes. */
  preflightSeconds: 7_200,
  /** The longest delay of a timer, 2^31 - 1 ms; a caller that sets more has no deadline worth a timer. */
  timerMs: 2_147_483_647,
} as const;
