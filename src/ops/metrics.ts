/** Every metric of the registry. METRICS.md lists them for operators; a test compares the two. */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import { DurationHistogram } from "./durations.js";
import { gatewayMetrics } from "./gateway-metrics.js";
import { tallyCounter, tallyGauge } from "./tally.js";

/** Seconds: in memory a read takes well under a millisecond, a load up to 15 s. */
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15];

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * All metrics in a registry of their own, so that two registries can live in one process.
 * Labels are bounded: methods, codes, reasons, states; never a namespace, server, tool or address.
 */
export function createMetrics(version: string) {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name: `toolcrib_${name}`, help, labelNames: [...labelNames], registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge<L>({ name: `toolcrib_${name}`, help, labelNames: [...labelNames], registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Histogram<L>({ name: `toolcrib_${name}`, help, labelNames: [...labelNames], buckets: SECONDS, registers });

  collectDefaultMetrics({ register: registry, prefix: "toolcrib_" });
  gauge("build_info", "Always 1; the label tells what runs.", ["version"]).set({ version }, 1);

  return {
    registry,

    rpcRequests: tallyCounter({
      name: "toolcrib_rpc_requests_total",
      help: "Calls that ended, by method and gRPC status.",
      labelNames: ["method", "code"],
      registers,
    }),
    rpcDuration: new DurationHistogram({
      name: "toolcrib_rpc_duration_seconds",
      help: "Time to answer a unary call.",
      labelNames: ["method"],
      buckets: SECONDS,
      registers,
    }),
    rpcInFlight: tallyGauge({
      name: "toolcrib_rpc_in_flight",
      help: "Calls under way, open watches included.",
      labelNames: ["method"],
      registers,
    }),

    catalogueTools: gauge("catalogue_tools", "Tools listed in the catalogue."),
    quarantinedTools: gauge("quarantined_tools", "Tools withheld until somebody approves their definition."),
    catalogueServers: gauge("catalogue_servers", "Servers in the catalogue."),
    catalogueNamespaces: gauge("catalogue_namespaces", "Namespaces that hold a server."),
    registers: counter("registers_total", "Register calls that passed admission, by outcome.", ["outcome"]),

    shed: counter("shed_total", "Calls refused because this replica has too much to do, by what they asked for.", ["what"]),
    overloadLevel: gauge("overload_level", "How many kinds of calls are refused because of too much to do: 0 none, 3 all of them."),

    logRevision: gauge("log_revision", "Revision up to which this replica has folded the log.", ["partition"]),
    tailLagRevisions: gauge("tail_lag_revisions", "Revisions of the log that are not folded yet.", ["partition"]),
    tailLagSeconds: gauge("tail_lag_seconds", "Time since the log was last compared with what is folded.", [
      "partition",
    ]),
    stale: gauge("catalogue_stale", "1 while reads are answered from memory without the store."),
    relists: counter("log_relists_total", "Times the history was broken and the catalogue was loaded anew.", ["cause"]),
    restored: counter("standing_restored_total", "Standing servers that a broken log had lost, and that were committed again."),
    storeUp: gauge("store_up", "1 when the last call to the store succeeded."),
    commits: counter("commits_total", "Commits asked of the log, by result.", ["result"]),

    watchers: gauge("watchers", "Open watches: active ones keep up, lagging ones read from history.", ["state"]),
    watchMessages: counter("watch_messages_total", "Messages handed to watchers."),
    watchBytes: counter("watch_bytes_total", "Bytes handed to watchers."),
    watchEnded: counter("watch_ended_total", "Watches that ended, by reason; `client` when the watcher left.", [
      "reason",
    ]),

    schemaLoads: tallyCounter({
      name: "toolcrib_schema_loads_total",
      help: "Definitions asked for, by how they were answered.",
      labelNames: ["result"],
      registers,
    }),
    memoryBlobBytes: gauge("memory_blob_bytes", "Definitions held in memory, in bytes."),
    blobsSwept: counter("blobs_swept_total", "Definitions removed because nothing names them any more."),

    upstreamListings: counter("upstream_listings_total", "Walks of tools/list, by result.", ["result"]),
    upstreamListingDuration: histogram("upstream_listing_duration_seconds", "Time of a whole walk of tools/list."),
    serversKept: gauge("servers_kept", "Servers that this replica looks after, or stands by for.", ["state"]),
    probes: counter("probes_total", "Looks at instances of servers, by verdict.", ["verdict"]),
    probeDuration: histogram("probe_duration_seconds", "Time of one look at an instance."),
    breakers: gauge("servers_breaker", "Servers in the catalogue by the state of their breaker.", ["state"]),
    serversUnavailable: gauge("servers_unavailable", "Servers in the catalogue whose tools are unavailable."),
    availabilityChanges: counter("availability_changes_total", "Published changes of a server's availability.", ["to"]),
    panic: gauge("panic", "1 while most servers went bad at once and conditions are frozen."),

    finds: counter("find_answers_total", "Intents asked about, by how well the best tool fitted.", ["fit"]),
    findDuration: histogram("find_duration_seconds", "Time to choose the tools for an intent, without loading their schemas."),
    findWithheld: counter("find_withheld_total", "Tools that fitted an intent and were withheld, by cause.", ["cause"]),
    embeddings: counter("embeddings_total", "Requests for vectors, by what they are of and what came of them.", ["what", "result"]),
    outcomes: counter("outcomes_total", "Outcomes of calls that were reported, by what they taught.", ["what"]),
    outcomeSyncs: counter("outcome_syncs_total", "Exchanges of what is remembered with the store, by result.", ["result"]),
    outcomesUnsaved: gauge("outcomes_unsaved", "Reported outcomes that are not in the store yet."),
    toolsCollapsed: gauge("tools_collapsed", "Tools whose calls fail, as callers report."),
    toolCollapsed: gauge("tool_collapsed", "1 for each of these tools, the first 50 of them; absent again once it works.", ["namespace", "tool"]),
    gateTools: gauge("gate_tools", "Tools that the gate can find."),
    gateRulesValid: gauge("gate_rules_valid", "0 while a file of rules cannot be used and older rules are in force."),
    gateUnread: gauge("gate_definitions_waiting", "Tools whose definition the gate has not read yet, so that it finds them by their labels alone."),

    ...gatewayMetrics(registry),

    toolsets: counter("toolset_happenings_total", "What happened to toolsets.", ["what"]),

    toolsToMend: gauge("tools_to_mend", "Tools whose description has a fault, by what it is.", ["kind"]),

    leasesLive: gauge("leases_live", "Leases in the store, as of the last sweep."),
    leaseRenewals: counter("lease_renewals_total", "Leases asked to be renewed, by answer.", ["state"]),
    leaseExpirations: counter("lease_expirations_total", "Leases that ran out and were ended."),
    brakeEngaged: gauge("brake_engaged", "1 while the brake holds back mass expiry."),
    sweeps: counter("sweeps_total", "Sweeps for leases that ran out, by result.", ["result"]),
  };
}
