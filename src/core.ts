/** The heart of a replica without its listeners: catalogue, loader, keeper, and what they need of the world. */
import type { Blob, Clock, Entry, Logger, Random, Store } from "./catalogue/ports.js";
import { Registry } from "./catalogue/registry.js";
import type { ToolsetsApi } from "./catalogue/toolsets/api.js";
import { Toolsets } from "./catalogue/toolsets/toolsets.js";
import type { Config } from "./config/setting.js";
import type { EgressPolicy } from "./domain/admission/egress.js";
import { LIMITS } from "./domain/limits.js";
import { FirstIndex } from "./first-index.js";
import { assembleGate } from "./gate-assembly.js";
import { type GateRules, NO_GATE_RULES } from "./gate-rules.js";
import { assembleMeaning, type EmbedderFiles } from "./meaning-assembly.js";
import type { GateApi } from "./gate/api.js";
import { levelsFrom } from "./domain/overload.js";
import { type GaugeDeps } from "./ops/gauges.js";
import { watchLoad } from "./ops/load.js";
import { createNotices } from "./notices.js";
import { createMetrics, type Metrics } from "./ops/metrics.js";
import { createClaims } from "./probe/claims.js";
import { createIntake } from "./probe/intake.js";
import { createKeeper, type Keeper } from "./probe/keeper.js";
import { observerOf } from "./observer.js";
import { createPanic } from "./probe/panic.js";
import { createSlots } from "./probe/slots.js";
import { assembleOutcomes } from "./outcomes-assembly.js";
import { createWatchCodec } from "./rpc/watch-codec.js";
import { createDefinitions } from "./schemas/definitions.js";
import { createLister } from "./schemas/lister.js";
import { createLoader } from "./schemas/loader.js";
import type { Directory } from "./schemas/ports.js";
import { rescue } from "./schemas/rescue.js";
import { warm } from "./schemas/warm.js";
import { stubCodec } from "./store/codec/stub.js";
import { type Credentials } from "./upstream/credentials/credentials.js";
import type { Env } from "./upstream/credentials/file.js";
import type { Resolve } from "./upstream/egress.js";
import { createUpstream } from "./upstream/upstream.js";
import { assembleOverlayOutcomes, assembleQuality } from "./quality-assembly.js";

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

/** What the settings name outside of the store. */
export interface Opened {
  readonly credentials: Credentials;
  /** Undefined where no embedder is set. */
  readonly embedder?: EmbedderFiles | undefined;
  /** None if unsaid. */
  readonly rules?: GateRules;
}

export interface Core {
  readonly registry: Registry;
  readonly gate: GateApi;
  readonly firstIndex: FirstIndex;
  readonly toolsets: ToolsetsApi;
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
  { credentials, embedder, rules = NO_GATE_RULES }: Opened,
): Core {
  const { clock, random, log: logger, version } = world;
  const metrics = createMetrics(version);
  const upstream = createUpstream({ clock, logger, version, policy, resolve: world.resolve, credentials });
  const panic = createPanic({ clock, logger, onChange: (on) => metrics.panic.set(on ? 1 : 0) });
  const notices = createNotices(() => registry, panic, clock);
  const load = watchLoad({ clock, logger, levelsMs: levelsFrom(config.maxLateness), onLevel: (level) => metrics.overloadLevel.set(level) });
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
    observer: observerOf(metrics, notices),
    ring: { revisions: LIMITS.windowRevisions, bytes: LIMITS.windowBytes },
    maxWatchers: config.maxWatchers,
    pressure: () => load.level,
    quotas: {
      servers: config.maxServers,
      tools: config.maxTools,
      watchersPerPrincipal: config.maxWatchersPerPrincipal,
      registersPerSecond: config.registerRate,
    },
  });
  const storeOf = (namespace: string) => registry.partitionOf(namespace).deps.store;
  const directory = directoryOf(registry);
  const definitions = createDefinitions({ blobsOf: (ns) => storeOf(ns).blobs, clock, logger });
  prime = (namespace, blobs) => definitions.prime(namespace, blobs);
  for (const partition of registry.partitions) {
    partition.onHistory((_, lost) => void rescue(definitions, lost.map((fold) => fold.history)));
  }
  // The lister tells the intake, and the intake may ask the lister again: one of the two has to be named before it is.
  const relist: ReturnType<typeof createLister>["relist"] = (ns, id) => lister.relist(ns, id);
  const heard: Keeper["heard"] = (...said) => keeper.heard(...said);
  const intake = createIntake({ writer: registry.listings, records: directory, relist, heard, clock, random, logger });
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
  const keeper = createKeeper({
    records: directory,
    relist,
    upstream,
    claims,
    writer: registry.listings,
    panic,
    slots: createSlots(LIMITS.probesAtOnce),
    rules: {
      intervalMs: config.probeInterval,
      timeoutMs: config.probeTimeout,
      fall: config.probeFall,
      rise: config.probeRise,
    },
    onLook: (verdict, tookMs) => {
      metrics.probes.inc({ verdict });
      metrics.probeDuration.observe(tookMs / 1_000);
    },
    clock,
    random,
    logger,
  });
  registry.useHealth(keeper.health, notices.of);
  follow(registry, keeper, intake, metrics);
  const overlayOutcomes = assembleOverlayOutcomes({ registry, clock, logger });
  const quality = assembleQuality({ registry, monotonic: () => clock.monotonic(), logger });
  const notesOf = (namespace: string) => storeOf(namespace).notes;
  const meaning = embedder && assembleMeaning({ config, files: embedder, notesOf, clock, random, logger, metrics });
  const outcomes = assembleOutcomes({ config, notesOf, clock, random, logger, metrics });
  const gate = assembleGate({
    registry,
    clock,
    logger,
    metrics,
    rules,
    meaning,
    outcomes,
    onDefinition: (...known) => quality.learned(...known),
    onReport: ({ namespace, toolId, labelVersion, success }) => overlayOutcomes.count(namespace, toolId, labelVersion, success),
  });
  const toolsets = new Toolsets({
    notesOf: (namespace) => storeOf(namespace).notes,
    clock,
    random,
    logger,
    quotas: { perNamespace: config.maxToolsets, perPrincipal: config.maxToolsetsPerPrincipal },
    onHappening: (what) => metrics.toolsets.inc({ what }),
  });
  const stopping = new AbortController();
  return {
    registry,
    gate,
    firstIndex: new FirstIndex(gate, () => clock.monotonic()),
    toolsets,
    metrics,
    kept: () => ({ ...keeper.counts(), memoryBytes: definitions.memoryBytes, findable: gate.tools, unread: gate.unread, unsaved: outcomes?.unsaved ?? 0, collapsed: outcomes?.collapsed() ?? [], toMend: quality.counts() }),
    start() {
      registry.start();
      void warm({ loader, clock, logger }, config.warm, stopping.signal);
    },
    async stop() {
      stopping.abort();
      load.stop();
      await keeper.stop();
      lister.stop();
      await intake.stop();
      await registry.stop();
      await gate.stop();
      await quality.stop();
      await overlayOutcomes.stop();
      await upstream.close();
    },
  };
}

/** The keeper looks after what the catalogue holds. */
function follow(
  registry: Registry,
  keeper: Keeper,
  intake: { forget(namespace: string, serverId: string): void },
  metrics: Metrics,
): void {
  registry.onEntry(({ change }: Entry) => {
    const { namespace, serverId, header } = change;
    if (header && change.availabilityBefore !== null && change.availabilityBefore !== header.availability)
      metrics.availabilityChanges.inc({ to: header.availability });
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
