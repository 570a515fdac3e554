/** The heart of a replica without its listeners: catalogue, loader, keeper, and what they need of the world. */
import type { RegistryObserver } from "./catalogue/observer.js";
import type { Blob, Clock, Entry, Logger, Random, Store } from "./catalogue/ports.js";
import { Registry } from "./catalogue/registry.js";
import type { Config } from "./config/settings.js";
import type { EgressPolicy } from "./domain/admission/egress.js";
import { LIMITS } from "./domain/limits.js";
import { type GaugeDeps } from "./ops/gauges.js";
import { createMetrics, type Metrics } from "./ops/metrics.js";
import { createClaims } from "./probe/claims.js";
import { createIntake } from "./probe/intake.js";
import { createKeeper, type Keeper } from "./probe/keeper.js";
import { createWatchCodec } from "./rpc/watch-codec.js";
import { createDefinitions } from "./schemas/definitions.js";
import { createLister } from "./schemas/lister.js";
import { createLoader } from "./schemas/loader.js";
import type { Directory } from "./schemas/ports.js";
import { warm } from "./schemas/warm.js";
import { stubCodec } from "./store/codec/stub.js";
import { type Credentials } from "./upstream/credentials/credentials.js";
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

export interface Core {
  readonly registry: Registry;
  readonly metrics: Metrics;
  readonly kept: GaugeDeps["kept"];
  start(): void;
  stop(): Promise<void>;
}

export function assemble(
  config: Config,
  world: World,
  store: Store,
  policy: EgressPolicy,
  credentials: Credentials,
): Core {
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
  registry.useRefresher(relist);
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
  };
}

function observerOf(metrics: Metrics): RegistryObserver {
  // Gauges of a replica are sums over its partitions, each of which is swept by itself.
  const held = new Set<number>();
  const live = new Map<number, number>();
  return {
    commit: (result) => metrics.commits.inc({ result }),
    registered: (outcome) => metrics.registers.inc({ outcome }),
    relist: (cause) => metrics.relists.inc({ cause }),
    blobsSwept: (count) => metrics.blobsSwept.inc(count),
    renewed: (state) => metrics.leaseRenewals.inc({ state }),
    swept: (partition, { decision, leases, due, expired }) => {
      metrics.sweeps.inc({ result: decision.brake === "on" ? decision.reason : "ok" });
      // A brake that holds nothing back is no news.
      if (decision.brake === "on" && due > 0) held.add(partition);
      else held.delete(partition);
      metrics.brakeEngaged.set(held.size > 0 ? 1 : 0);
      live.set(partition, leases);
      metrics.leasesLive.set([...live.values()].reduce((sum, count) => sum + count, 0));
      metrics.leaseExpirations.inc(expired);
    },
  };
}
