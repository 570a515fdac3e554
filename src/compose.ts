/** Puts one replica together: the only place that knows every room. */
import type { RegistryObserver } from "./catalogue/observer.js";
import type { Blob, Clock, Entry, Logger, Random, Store } from "./catalogue/ports.js";
import { Registry } from "./catalogue/registry.js";
import { hasIdentity } from "./config/config.js";
import type { Config } from "./config/settings.js";
import { isLoopback } from "./config/values.js";
import type { EgressPolicy, Own } from "./domain/admission/egress.js";
import { LIMITS } from "./domain/limits.js";
import { type GaugeDeps, keepGauges } from "./ops/gauges.js";
import { createMetrics, type Metrics } from "./ops/metrics.js";
import { type OpsServer, startOps } from "./ops/server.js";
import { machineAddresses } from "./ops/system.js";
import { createClaims } from "./probe/claims.js";
import { createIntake } from "./probe/intake.js";
import { createKeeper, type Keeper } from "./probe/keeper.js";
import { type HttpServer, startHttp } from "./rpc/connect/server.js";
import { type GrpcServer, startGrpc } from "./rpc/grpc/server.js";
import { createDoor, type Door } from "./rpc/identity/door.js";
import { openIdentity } from "./rpc/identity/open.js";
import { openTls, type Tls } from "./rpc/tls.js";
import { createWatchCodec } from "./rpc/watch-codec.js";
import { createDefinitions } from "./schemas/definitions.js";
import { createLister } from "./schemas/lister.js";
import { createLoader } from "./schemas/loader.js";
import type { Directory } from "./schemas/ports.js";
import { warm } from "./schemas/warm.js";
import { stubCodec } from "./store/codec/stub.js";
import { openStore } from "./store/open.js";
import { type Credentials, NO_CREDENTIALS, watchCredentials } from "./upstream/credentials/credentials.js";
import type { Env } from "./upstream/credentials/file.js";
import type { Resolve } from "./upstream/egress.js";
import { createUpstream } from "./upstream/upstream.js";

export interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly version: string;
  /** Names of MCP servers → addresses; the system's resolver if unsaid. */
  readonly resolve?: Resolve;
  /** Where values of upstream credentials may be; empty if unsaid. */
  readonly env?: Env;
}

/** A running replica. */
export interface Replica {
  readonly grpcAddress: { readonly host: string; readonly port: number };
  /** Undefined when it is off. */
  readonly httpAddress: { readonly host: string; readonly port: number } | undefined;
  readonly opsAddress: { readonly host: string; readonly port: number };
  /** Refuses what is new, lets what is under way end, leaves the store tidy. Safe to call twice. */
  stop(): Promise<void>;
}

/** Rejects with one clear sentence when the store, the folder or a port cannot be had; nothing is left open then. */
export async function startReplica(config: Config, world: World): Promise<Replica> {
  const { clock, log } = world;
  const opened: { close(): Promise<void> }[] = [];
  try {
    const setting = config.store.kind === "redis" ? config.store.url : config.store.kind;
    const store = await openStore(setting, {
      ...world,
      logger: log,
      dataDir: config.dataDir,
      keyPrefix: config.redisPrefix,
    });
    opened.push(store);
    const own = storePlace(config);
    const credentials = openCredentials(config, world);
    opened.push({ close: async () => credentials.close() });
    const core = assemble(config, world, store, egressPolicy(config, own), credentials);
    const access = openAccess(config, world, core.registry);
    opened.push(access);
    const { door, tls } = access;
    const ready = (): readonly string[] => notReady(core.registry);
    const ops = await startOps({ address: config.opsAddress, ready, metrics: core.metrics.registry, log, tls });
    opened.push(ops);
    own.push({ what: "the registry's own ops listener", ...ops.address });
    const cached = core.metrics.schemaLoads.cell({ result: "cached" });
    const grpc = await startGrpc({
      address: config.grpcAddress,
      door,
      tls,
      log,
      metrics: core.metrics,
      onRepeated: (method) => {
        if (method.endsWith("/GetFullSchema")) cached.value++;
      },
      graceMs: config.graceMs,
    });
    opened.push(grpc);
    own.push({ what: "the registry's own gRPC listener", ...grpc.address });
    const http = await httpOf(config, world, core.metrics, access);
    if (http) {
      opened.push(http);
      own.push({ what: "the registry's own HTTP listener", ...http.address });
    }
    const stopGauges = keepGauges({
      registry: core.registry,
      metrics: core.metrics,
      clock,
      onReady: (is) => grpc.setReady(is),
      kept: core.kept,
    });
    core.start();
    return replicaOf(core, store, access, ops, grpc, http, stopGauges);
  } catch (error) {
    for (const one of opened.reverse()) await one.close();
    throw error;
  }
}

function replicaOf(
  core: Core,
  store: Store,
  access: Access,
  ops: OpsServer,
  grpc: GrpcServer,
  http: HttpServer | undefined,
  stopGauges: () => void,
): Replica {
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    grpc.drain();
    http?.drain();
    core.registry.drain();
    await Promise.all([grpc.close(), http?.close()]);
    stopGauges();
    await core.stop();
    await ops.close();
    await access.close();
    await store.close();
  };
  return {
    grpcAddress: grpc.address,
    httpAddress: http?.address,
    opsAddress: ops.address,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** Who is let in, and over what. */
interface Access {
  readonly door: Door;
  readonly tls: Tls | undefined;
  close(): Promise<void>;
}

function openAccess(config: Config, { log, clock }: World, registry: Registry): Access {
  const { tokensFile, jwtJwks, certificatesFile, tlsCert, tlsKey, tlsClientCa } = config;
  const jwt = { issuer: config.jwtIssuer, audience: config.jwtAudience, algorithms: config.jwtAlgorithms };
  const identity = openIdentity({ tokensFile, jwtJwks, jwt, certificatesFile }, log, () => clock.now());
  try {
    const tls = tlsCert === "" ? undefined : openTls({ cert: tlsCert, key: tlsKey, clientCa: tlsClientCa }, log);
    const close = async (): Promise<void> => {
      identity.close();
      tls?.close();
    };
    return { door: createDoor(registry, identity), tls, close };
  } catch (error) {
    identity.close();
    throw error;
  }
}

async function httpOf(
  config: Config,
  { log, version }: World,
  metrics: Metrics,
  access: Access,
): Promise<HttpServer | undefined> {
  const { httpAddress, corsOrigins, graceMs } = config;
  if (httpAddress === "off") return undefined;
  const identified = hasIdentity(config);
  return startHttp({ ...access, address: httpAddress, log, version, metrics, identified, corsOrigins, graceMs });
}

/** Who can reach the registry decides what it may reach: registrants of this machine may name what they reach themselves. */
function egressPolicy(config: Config, own: readonly Own[]): EgressPolicy {
  const local = [config.grpcAddress, config.httpAddress, config.opsAddress].every(
    (a) => a === "off" || isLoopback(a.host),
  );
  return { inside: local ? "open" : "closed", allow: config.egressAllow, own: () => own, machine: machineAddresses };
}

function openCredentials({ upstreamCredentials }: Config, { env = {}, log }: World): Credentials {
  return upstreamCredentials === "" ? NO_CREDENTIALS : watchCredentials(upstreamCredentials, env, log);
}

function storePlace({ store }: Config): Own[] {
  if (store.kind !== "redis") return [];
  const { hostname, port } = new URL(store.url);
  return [{ what: "the registry's own store", host: hostname, port: Number(port || 6_379) }];
}

interface Core {
  readonly registry: Registry;
  readonly metrics: Metrics;
  readonly kept: GaugeDeps["kept"];
  start(): void;
  stop(): Promise<void>;
}

function assemble(config: Config, world: World, store: Store, policy: EgressPolicy, credentials: Credentials): Core {
  const { clock, random, log: logger, version } = world;
  const metrics = createMetrics(version);
  const upstream = createUpstream({ clock, logger, version, policy, resolve: world.resolve, credentials });
  let prime: (namespace: string, blobs: readonly Blob[]) => void = () => undefined;
  const registry = new Registry({
    deps: {
      logger,
      stubs: stubCodec,
      upstream,
      now: () => clock.now(),
      onDefinitions: (ns, blobs) => prime(ns, blobs),
    },
    store,
    clock,
    random,
    watchCodec: createWatchCodec(stubCodec),
    observer: observerOf(metrics),
    ring: { revisions: LIMITS.windowRevisions, bytes: LIMITS.windowBytes },
    maxWatchers: config.maxWatchers,
  });
  const storeOf = (namespace: string) => registry.partitionOf(namespace).deps.store;
  const directory = directoryOf(registry);
  const definitions = createDefinitions({ blobsOf: (ns) => storeOf(ns).blobs, clock, logger });
  prime = (namespace, blobs) => definitions.prime(namespace, blobs);
  // The lister tells the intake, and the intake may ask the lister again: one of the two has to be named before it is.
  const relist: ReturnType<typeof createLister>["relist"] = (ns, id) => lister.relist(ns, id);
  const intake = createIntake({ writer: registry.listings, records: directory, relist, clock, random, logger });
  const lister = createLister({
    upstream,
    directory,
    intake,
    definitions,
    clock,
    logger,
    onListing: (result, durationMs) => {
      metrics.upstreamListings.inc({ result });
      metrics.upstreamListingDuration.observe(durationMs / 1_000);
    },
  });
  const onLoad = (result: string): void => metrics.schemaLoads.inc({ result });
  const loader = createLoader({ definitions, directory, lister, codec: stubCodec, clock, onLoad });
  registry.useLoader(loader);
  const claims = createClaims({ notesOf: (ns) => storeOf(ns).notes, replicaId: random.id(), clock, random, logger });
  const keeper = createKeeper({ records: directory, relist, upstream, claims, clock, random, logger });
  follow(registry, keeper, intake);
  const stopping = new AbortController();
  return {
    registry,
    metrics,
    kept: () => ({ ...keeper.counts(), memoryBytes: definitions.memoryBytes }),
    start() {
      registry.start();
      void warm({ loader, clock, logger }, config.warm, stopping.signal);
    },
    async stop() {
      stopping.abort();
      await keeper.stop();
      lister.stop();
      await intake.stop();
      await registry.stop();
      await upstream.close();
    },
  };
}

/** The keeper looks after what the catalogue holds. */
function follow(
  registry: Registry,
  keeper: Keeper,
  intake: { forget(namespace: string, serverId: string): void },
): void {
  registry.onEntry(({ change: { namespace, serverId, header } }: Entry) => {
    keeper.servers([{ namespace, serverId }]);
    if (!header) intake.forget(namespace, serverId);
  });
  for (const partition of registry.partitions) {
    partition.onHistory(() => {
      const all = registry.partitions.flatMap((p) => {
        const namespaces = p.state.kind === "starting" ? [] : [...p.live().history.namespaces.values()];
        return namespaces.flatMap((ns) => ns.ordered.map((s) => s.record.header));
      });
      keeper.reset(all.map(({ namespace, serverId }) => ({ namespace, serverId })));
    });
  }
}

/** Memory only. While a new catalogue grows, what it lacks is still answered from the old one. */
function directoryOf(registry: Registry): Directory {
  const folds = (namespace: string) => {
    const { state } = registry.partitionOf(namespace);
    if (state.kind === "starting") return [];
    return state.kind === "growing" ? [state.live, state.old] : [state.live];
  };
  return {
    server(namespace, serverId) {
      for (const { history } of folds(namespace)) {
        const view = history.server(namespace, serverId);
        if (view) return view.record;
      }
      return undefined;
    },
    holderOf(namespace, digest) {
      for (const { history } of folds(namespace)) {
        const held = history.namespace(namespace)?.holderOf(digest);
        const record = held && history.server(namespace, held.serverId)?.record;
        if (held && record) return { record, toolName: held.toolName };
      }
      return undefined;
    },
    stale: (namespace) => registry.partitionOf(namespace).stale,
    partitionOf: (namespace) => registry.partitionOf(namespace).index,
  };
}

function observerOf(metrics: Metrics): RegistryObserver {
  return {
    commit: (result) => metrics.commits.inc({ result }),
    registered: (outcome) => metrics.registers.inc({ outcome }),
    relist: (cause) => metrics.relists.inc({ cause }),
    blobsSwept: (count) => metrics.blobsSwept.inc(count),
    renewed: (state) => metrics.leaseRenewals.inc({ state }),
    swept: (_partition, { decision, leases, expired }) => {
      metrics.sweeps.inc({ result: decision.brake === "on" ? decision.reason : "ok" });
      metrics.brakeEngaged.set(decision.brake === "on" && decision.reason !== "clocks-disagree" ? 1 : 0);
      metrics.leasesLive.set(leases);
      metrics.leaseExpirations.inc(expired);
    },
  };
}

/** Why this replica should get no traffic. A store lost after a good start is no reason: reads go on from memory (P8). */
function notReady(registry: Registry): readonly string[] {
  return registry.partitions.flatMap(({ state, index }) =>
    state.kind === "starting" ? [`partition ${index}: ${state.problem}`] : [],
  );
}
