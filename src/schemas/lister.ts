/** Listings of servers, one at a time for each server, shared by whoever asks. */
import type { Clock, Logger } from "../catalogue/ports.js";
import type { Dial, Listing, Upstream, UpstreamErrorKind } from "../catalogue/upstream-port.js";
import { dialOf, sameDial, UpstreamError } from "../catalogue/upstream-port.js";
import type { ListingIntake } from "../catalogue/writer-port.js";
import { within } from "../catalogue/within.js";
import { Fault, notFound } from "../domain/fault.js";
import { serverKey } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { ServerRecord } from "../domain/server.js";
import type { Definitions } from "./definitions.js";
import type { Directory } from "./ports.js";

/** Instances asked in one listing: they share its deadline, so more would leave each too little. */
const INSTANCES_ASKED = 3;

export interface Lister {
  /**
   * The server's list, as soon as it was received: the one under way, or a new one. Rejects with UpstreamError, at once
   * when the last listing failed less than LIMITS.loadNegativeMs ago; with Fault LOAD_FAILED when no instance is ever
   * dialled; with Fault NOT_FOUND when there is no such server.
   */
  list(namespace: string, serverId: string): Promise<Listing>;
  /**
   * A listing that starts after this call, whatever failed before. Settles like `list`, once the intake has taken it in.
   */
  relist(namespace: string, serverId: string): Promise<Listing>;
  /** Resolves when the intake has taken in the listing under way, if there is one. */
  settled(namespace: string, serverId: string): Promise<void>;
  /** Ends the listings under way, which says nothing about their servers, and refuses new ones. */
  stop(): void;
}

export interface ListerDeps {
  readonly upstream: Pick<Upstream, "list">;
  readonly directory: Pick<Directory, "server">;
  readonly intake: ListingIntake;
  readonly definitions: Pick<Definitions, "keep">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Metric hook: how each listing ended, and how long it took. */
  readonly onListing?: (result: "ok" | UpstreamErrorKind, durationMs: number) => void;
}

interface Flight {
  readonly listing: Promise<Listing>;
  /** Resolves when the intake is through, whatever came of it. */
  readonly done: Promise<void>;
}

interface Failure {
  readonly error: UpstreamError;
  readonly atMs: number;
  /** The registration that failed: a newer one is worth a try at once. */
  readonly of: string;
}

type Walked =
  | { readonly kind: "listed"; readonly listing: Listing; readonly endpoint: string }
  | { readonly kind: "failed"; readonly error: UpstreamError; readonly endpoint: string };

export function createLister(deps: ListerDeps): Lister {
  const { upstream, directory, intake, definitions, clock, logger, onListing } = deps;
  const flights = new Map<string, Flight>();
  const nexts = new Map<string, Promise<Flight>>();
  const failures = new Map<string, Failure>();
  const asking = new Set<AbortController>();
  let stopped = false;

  async function ask({ endpoint, credential, transport }: Dial, budgetMs: number): Promise<Listing> {
    const cut = new AbortController();
    asking.add(cut);
    try {
      const result = await within(clock, budgetMs, upstream.list(endpoint, cut.signal, credential, transport));
      if (result.kind === "done") return result.value;
      cut.abort();
      throw new UpstreamError("timeout", `no complete answer to tools/list within ${Math.round(budgetMs)} ms`);
    } finally {
      asking.delete(cut);
    }
  }

  /** Newest instance first; the error told is its own, as its set is the server's set. */
  async function walk(dials: readonly Dial[]): Promise<Walked> {
    const endsAt = clock.monotonic() + LIMITS.loadMs;
    let failed: Walked | undefined;
    for (const [i, dial] of dials.entries()) {
      const { endpoint } = dial;
      const budgetMs = (endsAt - clock.monotonic()) / (dials.length - i);
      try {
        return { kind: "listed", endpoint, listing: await ask(dial, budgetMs) };
      } catch (err) {
        failed ??= { kind: "failed", endpoint, error: asUpstreamError(err, logger) };
      }
    }
    if (!failed) throw new Error("a listing needs somebody to dial");
    return failed;
  }

  function begin(namespace: string, serverId: string): Flight {
    if (stopped) throw new Fault("DRAINING", "this replica is stopping; go on at another one", { retryAfterMs: 0 });
    const key = serverKey(namespace, serverId);
    const record = directory.server(namespace, serverId);
    if (!record) throw notFound("server", serverId);
    const { breaker } = record.header;
    if (breaker.kind === "isolated") throw isolated(serverId, breaker.why);
    const dials = dialsOf(record);
    if (dials.length === 0) throw neverDialled(serverId);

    const startedAt = clock.monotonic();
    const walked = walk(dials).then(async (result) => {
      onListing?.(result.kind === "listed" ? "ok" : result.error.kind, clock.monotonic() - startedAt);
      if (result.kind === "failed")
        remember(key, { error: result.error, atMs: clock.monotonic(), of: newestOf(record) });
      else {
        failures.delete(key);
        await definitions.keep(namespace, blobsOfListing(result.listing));
      }
      return result;
    });
    const listing = walked.then((result) => {
      if (result.kind === "failed") throw result.error;
      return result.listing;
    });
    const done = walked
      .then(async (result) => {
        if (stopped) return;
        if (result.kind === "failed") await intake.failed(namespace, serverId, result.error, result.endpoint);
        else await intake.listed(namespace, serverId, result.listing, result.endpoint, record);
      })
      .catch((err: unknown) => logger.error({ err, namespace, server: serverId }, "a listing could not be taken in"))
      .then(() => void flights.delete(key));
    // Whoever asked may have left at its deadline; the failure is then told by the intake alone.
    listing.catch(() => undefined);
    const flight = { listing, done };
    flights.set(key, flight);
    return flight;
  }

  function remember(key: string, failure: Failure): void {
    for (const [old, { atMs }] of failures) {
      if (failure.atMs - atMs < LIMITS.loadNegativeMs) break;
      failures.delete(old);
    }
    failures.delete(key);
    failures.set(key, failure);
  }

  function recentFailure(namespace: string, serverId: string): UpstreamError | undefined {
    const failure = failures.get(serverKey(namespace, serverId));
    if (!failure || clock.monotonic() - failure.atMs >= LIMITS.loadNegativeMs) return undefined;
    const record = directory.server(namespace, serverId);
    return record && newestOf(record) === failure.of ? failure.error : undefined;
  }

  /** The next flight to start; all who ask while one is under way share it. */
  function nextFlight(namespace: string, serverId: string): Promise<Flight> {
    const key = serverKey(namespace, serverId);
    const current = flights.get(key);
    if (!current) return Promise.resolve(begin(namespace, serverId));
    const next =
      nexts.get(key) ??
      current.done.then(() => {
        nexts.delete(key);
        return flights.get(key) ?? begin(namespace, serverId);
      });
    nexts.set(key, next);
    return next;
  }

  return {
    async list(namespace, serverId) {
      const current = flights.get(serverKey(namespace, serverId));
      if (current) return current.listing;
      const failure = recentFailure(namespace, serverId);
      if (failure) throw failure;
      return begin(namespace, serverId).listing;
    },
    async relist(namespace, serverId) {
      const flight = await nextFlight(namespace, serverId);
      await flight.done;
      return flight.listing;
    },
    async settled(namespace, serverId) {
      await flights.get(serverKey(namespace, serverId))?.done;
    },
    stop() {
      stopped = true;
      for (const cut of asking) cut.abort();
    },
  };
}

/**
 * Where to ask: the newest instance, whose set is the server's set, then others that registered the same set; those that are known
 * to be down come last. Instances without an endpoint are never dialled.
 */
export function dialsOf(record: ServerRecord): readonly Dial[] {
  const { instances, setDigest, namespace } = record.header;
  const newest = instances.at(-1);
  const equal = instances
    .slice(0, -1)
    .reverse()
    .filter((i) => i.setDigest === setDigest);
  const candidates = [...(newest ? [newest] : []), ...equal].filter((i) => i.endpoint !== "");
  // Stable: among those that answer, and among those that do not, the order stays.
  candidates.sort((a, b) => Number(b.availability === "available") - Number(a.availability === "available"));
  const dials = candidates.map((i) => dialOf(namespace, i));
  return dials.filter((dial, at) => dials.findIndex((d) => sameDial(d, dial)) === at).slice(0, INSTANCES_ASKED);
}

function newestOf(record: ServerRecord): string {
  const newest = record.header.instances.at(-1);
  return newest ? `${newest.revision} ${newest.endpoint}` : "";
}

function neverDialled(serverId: string): Fault {
  const text =
    `server ${serverId} registered without an endpoint, so its definitions come only from its registrant, ` +
    "and this one is not kept: it must register again with definitions inline";
  return new Fault("LOAD_FAILED", text, { metadata: { server: serverId } });
}

function isolated(serverId: string, why: string): Fault {
  const text = `server ${serverId} is isolated, and nobody dials it: ${why}`;
  return new Fault("SERVER_ISOLATED", text, { metadata: { server: serverId } });
}

function blobsOfListing(listing: Listing) {
  const fetchedAtMs = listing.receivedAtMs;
  return listing.tools.map((t) => ({ digest: t.digest, bytes: t.definition, fetchedAtMs }));
}

function asUpstreamError(err: unknown, logger: Logger): UpstreamError {
  if (err instanceof UpstreamError) return err;
  logger.error({ err }, "a listing failed in a way that no server can cause");
  return new UpstreamError("protocol", "the listing failed inside the registry; see its log", err);
}
