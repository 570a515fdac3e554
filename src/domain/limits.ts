/** Every limit of the registry, each with its reason. A refusal names the limit and the actual value. */
export const LIMITS = {
  /** Longest server_id and namespace: fits a DNS label, so it can become a host or a metric label. */
  slugLength: 63,
  /** Longest tool name: MCP's own. */
  toolNameLength: 128,
  /** Longest title: one line on any screen. */
  titleLength: 200,
  /** Longest brief description: two sentences; more belongs to the definition. */
  briefLength: 600,
  /** Longest reason of an isolation: what an operator writes to the others in one go. */
  whyLength: 600,
  /** Longest use_when. */
  useWhenLength: 400,
  /** Longest schema_uri and endpoint: common proxies refuse longer URLs. */
  urlLength: 2_048,
  /** Tags of a server or a tool, and of a filter: each is an index entry. */
  tags: 32,
  /** Longest tag. */
  tagLength: 63,
  /** Keywords of a stub. */
  keywords: 32,
  /** Longest keyword. */
  keywordLength: 64,
  /** Preconditions of a stub. */
  requires: 16,
  /** Longest precondition. */
  requireLength: 200,
  /** Substitutes of a stub. */
  substitutes: 8,
  /** Tools of one server: eight times the largest real server. */
  toolsPerServer: 10_000,
  /** All stubs of one server in bytes: one record in the store, one value in a script. */
  stubBytesPerServer: 4 * 1024 * 1024,
  /** One stub in bytes: an event must fit into a message of a watch, with the server's tags. */
  stubBytes: 16 * 1024,
  /** One definition in bytes. */
  definitionBytes: 1024 * 1024,
  /** Nesting of a definition: deeper than any real one, shallow enough to walk by recursion. */
  schemaDepth: 64,
  /** One gRPC message, both ways: the default receive limit of every gRPC client. */
  messageBytes: 4 * 1024 * 1024,
  /** Metadata of a call: grpc-js itself takes 100 KB. */
  metadataBytes: 16 * 1024,
  /** Answer of a batch: leaves room under messageBytes. */
  batchBytes: 3 * 1024 * 1024,
  /** Tools of a batch. */
  batchTools: 100,
  /** One page of stubs: above 128 KiB the C allocator maps and unmaps memory for each answer. */
  pageBytes: 120 * 1024,
  /** Stubs of a page, and the default. */
  pageStubs: 1_000,
  pageStubsDefault: 500,
  /** Servers of a page, and the default. */
  pageServers: 500,
  pageServersDefault: 100,
  /** One message of a watch: small enough that a slow reader holds little. */
  watchChunkBytes: 32 * 1024,
  /** Open watches of one replica: each holds about 10 KB. */
  watchers: 10_000,
  /** Server ids of a filter. */
  filterServers: 100,
  /** Tools that FindTools answers, and the default: more than an agent tells apart. Exactly named ones come on top. */
  findTools: 50,
  findToolsDefault: 5,
  /** Withheld tools that an answer names. */
  withheldTools: 20,
  /** Longest intent, and longest earlier turn: a long message of a user. Of all together, the newest 8,192 characters are read. */
  intentLength: 16_384,
  /** Earlier turns of an intent. */
  historyTurns: 50,
  /** Recent tools, facts of the state, and scopes of an intent, each. */
  intentFacts: 100,
  /** Longest fact and scope: as long as the precondition that it may fulfil. */
  factLength: 200,
  /** Tools named in a report as called just before: longer sequences are not learned. */
  precedingTools: 5,
  /** Longest reported time of a call: a day is no latency any more. */
  latencyMs: 24 * 3_600_000,
  /** Longest version of a label: a digest with its prefix fits. */
  labelVersionLength: 80,
  /** Estimated tokens of a module map: the default, the least that says anything, and about one page of stubs. */
  mapTokensDefault: 500,
  mapTokensLeast: 20,
  mapTokens: 30_000,
  /** Longest name of a module: a server_id, a slash and a part of a tool's name. */
  moduleLength: 192,
  /** Tools of a toolset: far more than an agent tells apart, as many as a large module may have. */
  toolsetTools: 512,
  /** Facts of a toolset, and all of them together: what a gateway keeps of a session. */
  toolsetFacts: 32,
  toolsetFactBytes: 16 * 1024,
  /** Idle time of a toolset: longer than a call may take, at most a week of an agent that sleeps; and the default. */
  toolsetIdleMinMs: 1_000,
  toolsetIdleMaxMs: 7 * 24 * 3_600_000,
  toolsetIdleDefaultMs: 3_600_000,
  /** Overlays of one approval: each is a label of a few hundred bytes. */
  overlaysAtOnce: 1_000,
  /** All overlays, and all quarantines, kept of one server in bytes: one note each. */
  overlayShelfBytes: 4 * 1024 * 1024,
  /** What an operator approved is kept until it is withdrawn; notes need an end, and nobody waits for this one. */
  overlayKeepMs: 10 * 365 * 24 * 3_600_000,
  /** Tools that LintTools answers, and the default: a screen of them. */
  lintTools: 1_000,
  lintToolsDefault: 20,
  /** Leases of one Renew. */
  renewLeases: 1_000,
  /** Rejected tools kept and shown per server. */
  rejectedKept: 100,
  /** Instances of one server. */
  instancesPerServer: 256,
  /** Lease lengths. */
  leaseMinMs: 10_000,
  leaseMaxMs: 3_600_000,
  leaseDefaultMs: 30_000,
  /** A tombstone tells late renewals that the end was meant. */
  tombstoneMs: 3_600_000,
  /** History kept for resuming: the log's window and the ring in memory. */
  windowRevisions: 10_000,
  windowBytes: 64 * 1024 * 1024,
  /** Longest wait of a read for `min_revision`. */
  minRevisionWaitMs: 5_000,
  /** Longest wait of a write for its own fold. */
  foldWaitMs: 1_000,
  /** Deadline of a caller of GetFullSchema for a load; the load itself goes on. */
  loadCallerMs: 200,
  /** Tools that a start may be told to load. */
  warmTools: 1_000,
  /** Deadline of the load itself. */
  loadMs: 15_000,
  /** A failed load is not tried again within this. */
  loadNegativeMs: 2_000,
  /** Definitions kept in memory. */
  memoryDefinitionBytes: 64 * 1024 * 1024,
  /** Bytes of one upstream response (one page of a listing). */
  upstreamBytes: 32 * 1024 * 1024,
  /** Bytes of one upstream answer that is no list: handshakes and probes. */
  answerBytes: 1024 * 1024,
  /** Bytes of one answer to tools/call: images and files come inside it. */
  callAnswerBytes: 8 * 1024 * 1024,
  /** Bytes of everything that comes on the way to such an answer: progress, mostly. */
  callStreamBytes: 32 * 1024 * 1024,
  /** Arguments of one tools/call, as JSON. */
  callArgumentBytes: 4 * 1024 * 1024,
  /** Nesting of arguments: deeper than any definition describes. */
  callArgumentDepth: 128,
  /** Deadline of a tools/call whose caller names none, and the longest that one may name. */
  callMs: 60_000,
  callMaxMs: 3_600_000,
  /** Calls of one server under way at once, and waiting: each holds a connection, or a caller. */
  callsPerServer: 32,
  callsWaiting: 128,
  /** A session with a server that nobody used for this long is ended. */
  sessionIdleMs: 600_000,
  /** All headers of one upstream response: what Node's client takes by default, whatever its flags say. */
  upstreamHeaderBytes: 16 * 1024,
  /** All pages of one listing together: many listings may be held at once. */
  listingBytes: 64 * 1024 * 1024,
  /** Pages of one listing. */
  listingPages: 500,
  /** A bookmark at least this often. */
  bookmarkMs: 10_000,
  /** A published condition of one server at most this often. */
  conditionEveryMs: 10_000,
  /** Probes under way at once, over all servers of a replica. */
  probesAtOnce: 64,
  /** An unreferenced definition goes after this. */
  blobKeepMs: 24 * 3_600_000,
  /** Pace of listing an introspected server when it names none, and the clamp on what it names. */
  relistDefaultMs: 300_000,
  relistMinMs: 30_000,
  relistMaxMs: 3_600_000,
  /** Longest request id, etag and token. */
  requestIdLength: 64,
  tokenLength: 512,
  /** HTTP/2 streams of one connection. */
  streamsPerConnection: 1_000,
  /** Logs of one store: each replica holds a connection for each. */
  partitions: 256,
  /** Grace of a shutdown. */
  graceMs: 10_000,
} as const;
