/** One replica's part in looking after servers: their health, and what they list. */
import type { LiveHealth } from "../catalogue/api.js";
import { type Dial, dialOf, type Upstream } from "../catalogue/upstream-port.js";
import type { Verdict } from "../domain/health/verdict.js";
import { serverKey } from "../domain/ids.js";
import type { Claims } from "./claims.js";
import { Monitor, type MonitorDeps } from "./monitor.js";
import { afterListing } from "./pace.js";
import type { Relist, ServerName } from "./ports.js";
import { createRounds } from "./rounds.js";
import { createSubscription } from "./subscription.js";

/** Servers that appear together, as at a start, begin this far apart so that they are not all dialled at once. */
const SPREAD_MS = 10;
const SPREAD_MAX_MS = 10_000;
/** Fewer than this begin at once. */
const SPREAD_FROM = 20;

export interface Keeper {
  /**
   * These servers changed in the catalogue, or went. Each one with an endpoint is looked after from now on: whichever replica holds its
   * claim probes its instances, and lists it at its pace and when it says that its list changed: an introspected one first of all, and at
   * once after a newer registration; a declared one more rarely. For a server that is gone everything stops.
   */
  servers(changed: readonly ServerName[]): void;
  /** The whole set, as after a start or a relist: servers that are not among these are gone. */
  reset(all: readonly ServerName[]): void;
  /** A listing, whoever asked for it, reached the server at this endpoint, or did not. */
  heard(namespace: string, serverId: string, endpoint: string, verdict: Verdict): void;
  /** Undefined while the claim is held elsewhere. */
  health(namespace: string, serverId: string): LiveHealth | undefined;
  /** Number of servers looked after, and of those whose claim this replica holds. */
  counts(): { readonly kept: number; readonly held: number };
  /** Ends everything and releases the claims. */
  stop(): Promise<void>;
}

export interface KeeperDeps extends Omit<MonitorDeps, "stretched"> {
  readonly relist: Relist;
  readonly upstream: Pick<Upstream, "subscribe" | "probe">;
  readonly claims: Claims;
}

/** Probes of one replica in a second: with more servers than that allows, each is looked at more rarely. */
const LOOKS_PER_SECOND = 100;

interface Kept {
  readonly name: ServerName;
  readonly stop: AbortController;
  /** The newest registration, and where it is reached. */
  registration: string;
  dial: Dial;
  /** Lists now, and follows the endpoint if it moved; does nothing while the claim is elsewhere. */
  renewed: () => void;
  /** Undefined while the claim is held elsewhere. */
  monitor: Monitor | undefined;
}

export function createKeeper(deps: KeeperDeps): Keeper {
  const { records, claims, clock, random } = deps;
  const kept = new Map<string, Kept>();
  const running = new Set<Promise<void>>();
  let stopped = false;

  function newest({ namespace, serverId }: ServerName): { registration: string; dial: Dial } | undefined {
    const record = records.server(namespace, serverId);
    const instance = record?.header.instances.findLast((i) => i.endpoint !== "");
    return (
      instance && { registration: `${instance.instanceId} ${instance.revision}`, dial: dialOf(namespace, instance) }
    );
  }

  const stretched = (intervalMs: number): number => Math.max(intervalMs, (held() / LOOKS_PER_SECOND) * 1_000);

  function held(): number {
    let count = 0;
    for (const { monitor } of kept.values()) if (monitor) count++;
    return count;
  }

  async function work(server: Kept, signal: AbortSignal, stillHeld: () => boolean): Promise<void> {
    const { namespace, serverId } = server.name;
    const monitor = new Monitor({ ...deps, stretched }, server.name, () => rounds.notice());
    const subscription = createSubscription({
      ...deps,
      upstream: { subscribe: whenReady(monitor, deps.upstream) },
      onNotice: () => rounds.notice(),
      server: server.name,
    });
    const introspected = records.server(namespace, serverId)?.header.source === "introspected";
    const rounds = createRounds({
      clock,
      random,
      relist: () => deps.relist(namespace, serverId),
      ready: (until) => monitor.ready(until),
      // A declared server is what its registrant says; its own list only shows whether that still holds.
      firstMs: introspected ? 0 : afterListing(undefined, () => random.next()),
      pending: () => records.server(namespace, serverId)?.header.pending ?? false,
      onListed: (listing) => subscription.follow(listing.listChanged ? server.dial : undefined),
    });
    server.renewed = () => {
      subscription.moved(server.dial);
      if (records.server(namespace, serverId)?.header.source === "introspected") rounds.notice();
    };
    server.monitor = monitor;
    try {
      await Promise.all([monitor.run(signal, stillHeld), rounds.run(signal), subscription.run(signal)]);
    } finally {
      server.monitor = undefined;
      server.renewed = () => undefined;
    }
  }

  function begin(name: ServerName, at: { registration: string; dial: Dial }, delayMs: number): void {
    const server: Kept = { name, ...at, stop: new AbortController(), renewed: () => undefined, monitor: undefined };
    kept.set(serverKey(name.namespace, name.serverId), server);
    const { signal } = server.stop;
    const run = clock
      .sleep(delayMs, signal)
      .then(() => claims.whileHeld(name.namespace, claimKey(name), signal, (held, stillHeld) => work(server, held, stillHeld)))
      .finally(() => running.delete(run));
    running.add(run);
  }

  function update(name: ServerName, delayMs: number): void {
    const key = serverKey(name.namespace, name.serverId);
    const server = kept.get(key);
    const at = newest(name);
    if (!at) {
      server?.stop.abort();
      kept.delete(key);
    } else if (!server) begin(name, at, delayMs);
    else if (server.registration !== at.registration) {
      Object.assign(server, at);
      server.renewed();
    }
    server?.monitor?.sync();
  }

  function servers(changed: readonly ServerName[]): void {
    if (stopped) return;
    const spanMs = changed.length < SPREAD_FROM ? 0 : Math.min(SPREAD_MAX_MS, changed.length * SPREAD_MS);
    for (const name of changed) update(name, spanMs * random.next());
  }

  return {
    servers,
    reset(all) {
      const names = new Map(all.map((n) => [serverKey(n.namespace, n.serverId), n]));
      const gone = [...kept.values()].map((k) => k.name).filter((n) => !names.has(serverKey(n.namespace, n.serverId)));
      servers([...names.values(), ...gone]);
    },
    heard(namespace, serverId, endpoint, verdict) {
      kept.get(serverKey(namespace, serverId))?.monitor?.heard(endpoint, verdict);
    },
    health: (namespace, serverId) => kept.get(serverKey(namespace, serverId))?.monitor?.view(),
    counts: () => ({ kept: kept.size, held: held() }),
    async stop() {
      stopped = true;
      for (const { stop } of kept.values()) stop.abort();
      kept.clear();
      await Promise.all(running);
    },
  };
}

/** Nobody opens a stream to a server whose breaker is open. */
function whenReady(monitor: Monitor, upstream: Pick<Upstream, "subscribe">): Upstream["subscribe"] {
  return async (endpoint, onChanged, signal, ...how) => {
    await monitor.ready(signal);
    if (!signal.aborted) await upstream.subscribe(endpoint, onChanged, signal, ...how);
  };
}

function claimKey({ namespace, serverId }: ServerName): string {
  return `claim/list/${namespace}/${serverId}`;
}
