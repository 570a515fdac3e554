/** Replicas inside this process, recorded: the real catalogue, loader, hub and store, with parts that a mutant may replace. */
import type { RegistryApi } from "../../src/catalogue/api.js";
import type { Clock, PartitionStore, Random, Store } from "../../src/catalogue/ports.js";
import { Registry } from "../../src/catalogue/registry.js";
import { type Upstream, UpstreamError } from "../../src/catalogue/upstream-port.js";
import { createIntake } from "../../src/probe/intake.js";
import { createWatchCodec } from "../../src/rpc/watch-codec.js";
import { createDefinitions } from "../../src/schemas/definitions.js";
import { createLister } from "../../src/schemas/lister.js";
import { createLoader } from "../../src/schemas/loader.js";
import type { Directory } from "../../src/schemas/ports.js";
import { rescue } from "../../src/schemas/rescue.js";
import { stubCodec } from "../../src/store/codec/stub.js";
import { type Listings, listingOf } from "../support/replica.js";
import { silentLogger } from "../support/upstream.js";
import { Client } from "./client.js";
import { linkInside } from "./links.js";
import type { Recorder } from "./recorder.js";

export interface SiteParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly recorder: Recorder;
  readonly ring?: { readonly revisions: number; readonly bytes: number };
  /** Runs what may have to wait for time to pass. */
  readonly drive?: <T>(work: Promise<T>) => Promise<T>;
}

/** Parts of a replica that are not the real ones. */
export interface Broken {
  readonly store?: (real: PartitionStore) => Partial<PartitionStore>;
  readonly api?: (real: RegistryApi, site: Site) => Partial<RegistryApi>;
}

const ignore = (): void => undefined;
const UNHEARD = {
  commit: ignore,
  registered: ignore,
  relist: ignore,
  renewed: ignore,
  swept: ignore,
  blobsSwept: ignore,
  shed: ignore,
  restored: ignore,
};

export class Site {
  /** Endpoint → what the MCP server there lists. */
  readonly listings: Listings = new Map();
  readonly replicas: Registry[] = [];
  readonly upstream: Upstream;
  readonly #stops: (() => Promise<void>)[] = [];

  constructor(readonly parts: SiteParts) {
    const { recorder } = parts;
    this.upstream = {
      list: async (endpoint) => {
        recorder.upstream(endpoint, "tools/list");
        const tools = this.listings.get(endpoint);
        if (!tools) throw new UpstreamError("connect", `${endpoint} does not answer`);
        return listingOf(tools, parts.clock.now());
      },
      subscribe: () => new Promise(() => undefined),
      probe: async (dial) => recorder.upstream(dial.endpoint, "ping"),
      credentialRefusal: () => undefined,
      refusal: () => undefined,
    };
  }

  /** A replica with its client. The catalogue is loaded once time has passed. */
  replica(name: string, store: Store, broken: Broken = {}): Client {
    const { clock, random, recorder, ring = { revisions: 10_000, bytes: 1 << 26 }, drive } = this.parts;
    const used = broken.store ? { ...store, partitions: store.partitions.map((p) => replaced(p, broken.store?.(p) ?? {})) } : store;
    let prime: ReturnType<typeof createDefinitions>["prime"] = ignore;
    const registry = new Registry({
      deps: { logger: silentLogger, stubs: stubCodec, upstream: this.upstream, now: () => clock.now(), onDefinitions: (ns, blobs) => prime(ns, blobs) },
      store: used,
      clock,
      random,
      watchCodec: createWatchCodec(stubCodec),
      observer: UNHEARD,
      ring,
      maxWatchers: 1_000,
    });
    prime = this.#load(registry);
    registry.start();
    this.replicas.push(registry);
    const api = broken.api ? withChanges(registry, broken.api(registry, this)) : registry;
    return new Client(name, recorder.listen(name, linkInside(api)), drive);
  }

  /** The lazy loader, wired as in a real replica. */
  #load(registry: Registry): ReturnType<typeof createDefinitions>["prime"] {
    const { clock, random } = this.parts;
    const logger = silentLogger;
    const directory = directoryOf(registry);
    const definitions = createDefinitions({ blobsOf: (ns) => registry.partitionOf(ns).deps.store.blobs, clock, logger });
    const relist: ReturnType<typeof createLister>["relist"] = (ns, id) => lister.relist(ns, id);
    const intake = createIntake({ writer: registry.listings, records: directory, relist, heard: ignore, clock, random, logger });
    const lister = createLister({ upstream: this.upstream, directory, intake, definitions, clock, logger });
    registry.useLoader(createLoader({ definitions, directory, lister, codec: stubCodec, clock }));
    registry.useRefresher(relist);
    for (const partition of registry.partitions) {
      partition.onHistory((_, lost) => void rescue(definitions, lost.map((fold) => fold.history)));
    }
    this.#stops.push(async () => {
      lister.stop();
      await intake.stop();
    });
    return definitions.prime;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#stops.map((stop) => stop()), ...this.replicas.map((r) => r.stop())]);
  }
}

/** Methods of the parts are not bound to them, so each part is copied whole. */
function replaced(real: PartitionStore, changes: Partial<PartitionStore>): PartitionStore {
  return { partition: real.partition, log: real.log, leases: real.leases, blobs: real.blobs, notes: real.notes, ...changes };
}

function withChanges(real: RegistryApi, changes: Partial<RegistryApi>): RegistryApi {
  return new Proxy(real, {
    get(target, key) {
      const changed = Reflect.get(changes, key) as unknown;
      if (changed !== undefined) return changed;
      const value = Reflect.get(target, key, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function directoryOf(registry: Registry): Directory {
  const histories = (namespace: string) => {
    const { state } = registry.partitionOf(namespace);
    if (state.kind === "starting") return [];
    return state.kind === "growing" ? [state.live.history, state.old.history] : [state.live.history];
  };
  return {
    server: (namespace, serverId) =>
      histories(namespace)
        .map((h) => h.server(namespace, serverId)?.record)
        .find((record) => record !== undefined),
    holderOf(namespace, digest) {
      for (const history of histories(namespace)) {
        const held = history.namespace(namespace)?.holderOf(digest);
        const record = held && history.server(namespace, held.serverId)?.record;
        if (held && record) return { record, toolName: held.toolName };
      }
      return undefined;
    },
    stale: (namespace) => registry.partitionOf(namespace).stale,
  };
}
