/** One replica's part in keeping introspected servers' lists current. */
import type { Clock, Logger, Random } from "../catalogue/ports.js";
import { type Dial, dialOf, type Upstream } from "../catalogue/upstream-port.js";
import { serverKey } from "../domain/ids.js";
import type { ServerRecord } from "../domain/server.js";
import type { Claims } from "./claims.js";
import type { Records, Relist, ServerName } from "./ports.js";
import { createRounds } from "./rounds.js";
import { createSubscription } from "./subscription.js";

/** Servers that appear together, as at a start, begin this far apart so that they are not all dialled at once. */
const SPREAD_MS = 10;
const SPREAD_MAX_MS = 10_000;
/** Fewer than this begin at once. */
const SPREAD_FROM = 20;

export interface Keeper {
  /**
   * These servers changed in the catalogue, or went. Each introspected one with an endpoint is looked after from now on:
   * whichever replica holds its claim lists it first, then at its pace and when it says that its list changed. A newer
   * registration is listed at once. For a server that is gone, or no longer introspected, everything stops.
   */
  servers(changed: readonly ServerName[]): void;
  /** The whole set, as after a start or a relist: servers that are not among these are gone. */
  reset(all: readonly ServerName[]): void;
  /** Number of servers looked after, and of those whose claim this replica holds. */
  counts(): { readonly kept: number; readonly held: number };
  /** Ends everything and releases the claims. */
  stop(): Promise<void>;
}

export interface KeeperDeps {
  readonly records: Records;
  readonly relist: Relist;
  readonly upstream: Pick<Upstream, "subscribe">;
  readonly claims: Claims;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

interface Kept {
  readonly name: ServerName;
  readonly stop: AbortController;
  /** The newest registration, and where it is reached. */
  registration: string;
  dial: Dial;
  /** Lists now, and follows the endpoint if it moved; does nothing while the claim is elsewhere. */
  renewed: () => void;
  held: boolean;
}

export function createKeeper(deps: KeeperDeps): Keeper {
  const { records, claims, clock, random } = deps;
  const kept = new Map<string, Kept>();
  const running = new Set<Promise<void>>();
  let stopped = false;

  function newest({ namespace, serverId }: ServerName): { registration: string; dial: Dial } | undefined {
    const record = records.server(namespace, serverId);
    const instance = record?.header.source === "introspected" ? lastDialled(record) : undefined;
    return (
      instance && { registration: `${instance.instanceId} ${instance.revision}`, dial: dialOf(namespace, instance) }
    );
  }

  async function work(server: Kept, held: AbortSignal): Promise<void> {
    const { namespace, serverId } = server.name;
    const subscription = createSubscription({ ...deps, onNotice: () => rounds.notice(), server: server.name });
    const rounds = createRounds({
      clock,
      random,
      relist: () => deps.relist(namespace, serverId),
      pending: () => records.server(namespace, serverId)?.header.pending ?? false,
      onListed: (listing) => subscription.follow(listing.listChanged ? server.dial : undefined),
    });
    server.renewed = () => {
      subscription.moved(server.dial);
      rounds.notice();
    };
    server.held = true;
    try {
      await Promise.all([rounds.run(held), subscription.run(held)]);
    } finally {
      server.held = false;
      server.renewed = () => undefined;
    }
  }

  function begin(name: ServerName, at: { registration: string; dial: Dial }, delayMs: number): void {
    const server: Kept = { name, ...at, stop: new AbortController(), renewed: () => undefined, held: false };
    kept.set(serverKey(name.namespace, name.serverId), server);
    const { signal } = server.stop;
    const run = clock
      .sleep(delayMs, signal)
      .then(() => claims.whileHeld(name.namespace, claimKey(name), signal, (held) => work(server, held)))
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
    counts: () => ({ kept: kept.size, held: [...kept.values()].filter((k) => k.held).length }),
    async stop() {
      stopped = true;
      for (const { stop } of kept.values()) stop.abort();
      kept.clear();
      await Promise.all(running);
    },
  };
}

/** The newest instance that can be dialled. */
function lastDialled({ header }: ServerRecord): ServerRecord["header"]["instances"][number] | undefined {
  return [...header.instances].reverse().find((i) => i.endpoint !== "");
}

function claimKey({ namespace, serverId }: ServerName): string {
  return `claim/list/${namespace}/${serverId}`;
}
