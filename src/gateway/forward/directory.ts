/** Where servers are, as the registry last said it. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { registryError } from "../../client/registry-error.js";
import { Availability, BreakerState, type Server, type ServerSource, Transport } from "../../client/server-facts.js";
import { serverKey } from "../../domain/ids.js";
import type { Clock, Logger } from "../../upstream/caller.js";

export interface KnownInstance {
  /** Never empty. */
  readonly endpoint: string;
  readonly transport: "streamable-http" | "http-sse";
  /** Name of the operator's credential; empty = none. */
  readonly credential: string;
  readonly available: boolean;
  readonly setDigest: string;
}

export interface KnownServer {
  readonly namespace: string;
  readonly serverId: string;
  /** Those that can be dialled, the newest last. */
  readonly instances: readonly KnownInstance[];
  readonly setDigest: string;
  readonly breaker: KnownBreaker;
}

export type KnownBreaker =
  | { readonly kind: "closed" }
  /** `untilMs` is wall time; 0 if the registry names none. */
  | { readonly kind: "open"; readonly untilMs: number }
  | { readonly kind: "isolated"; readonly why: string };

export type Found =
  /** `stale`: the registry is away, or itself away from its store, and this is the last that is known. */
  | { readonly kind: "known"; readonly server: KnownServer; readonly stale: boolean }
  | { readonly kind: "unknown" }
  /** `text`: what the registry, or the network, said. */
  | { readonly kind: "away" | "refused"; readonly text: string };

/** An answer is believed for so long; afterwards whoever needs the server waits for a new one. */
const BELIEVED_MS = 2_000;
/** How long a call waits for the registry, and how long a registry that did not answer is not asked about this server again. */
const ASK_MS = 2_000;
const AGAIN_MS = 1_000;
/** Servers remembered; the one that was looked up longest ago goes first. */
const REMEMBERED = 10_000;

interface Entry {
  found: Found;
  /** Monotonic. */
  freshUntilMs: number;
}

export class ServerDirectory {
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Map<string, Promise<Found>>();
  readonly #registry: ServerSource;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(registry: ServerSource, clock: Clock, logger: Logger) {
    this.#registry = registry;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Answers within 2 s, whatever the registry does. */
  find(namespace: string, serverId: string): Promise<Found> {
    const key = serverKey(namespace, serverId);
    const entry = this.#entries.get(key);
    if (entry && this.#clock.monotonic() < entry.freshUntilMs) return Promise.resolve(entry.found);
    const asking = this.#asking.get(key) ?? this.#ask(key, namespace, serverId).finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }

  /** The next who asks hears what the registry says then. */
  changed(namespace: string, serverId: string): void {
    const entry = this.#entries.get(serverKey(namespace, serverId));
    if (entry) entry.freshUntilMs = 0;
  }

  async #ask(key: string, namespace: string, serverId: string): Promise<Found> {
    try {
      const { server, stale } = await this.#registry.getServer({ namespace, serverId }, { timeoutMs: ASK_MS });
      const found: Found = server ? { kind: "known", server: knownOf(server), stale } : { kind: "unknown" };
      return this.#keep(key, found, BELIEVED_MS);
    } catch (error) {
      return this.#keep(key, this.#fallback(key, error), AGAIN_MS);
    }
  }

  #fallback(key: string, error: unknown): Found {
    const { code, message } = registryError(error);
    if (code === "NOT_FOUND" || code === "INVALID_ARGUMENT") return { kind: "unknown" };
    if (code === "PERMISSION_DENIED" || code === "UNAUTHENTICATED") return { kind: "refused", text: message };
    const known = this.#entries.get(key)?.found;
    this.#logger.debug({ server: key, err: error }, "a server could not be looked up");
    return known?.kind === "known" ? { ...known, stale: true } : { kind: "away", text: message };
  }

  #keep(key: string, found: Found, ms: number): Found {
    this.#entries.delete(key);
    this.#entries.set(key, { found, freshUntilMs: this.#clock.monotonic() + ms });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= REMEMBERED) break;
      this.#entries.delete(oldest);
    }
    return found;
  }
}

function knownOf(server: Server): KnownServer {
  const { namespace, serverId, setDigest, instances } = server;
  return {
    namespace,
    serverId,
    setDigest,
    breaker: breakerOf(server),
    instances: instances
      .filter(({ endpoint }) => endpoint !== "")
      .map(({ endpoint, transport, credential, availability, setDigest: own }) => ({
        endpoint,
        transport: transport === Transport.HTTP_SSE ? "http-sse" : "streamable-http",
        credential,
        available: availability !== Availability.UNAVAILABLE,
        setDigest: own,
      })),
  };
}

function breakerOf({ breaker, breakerDetail: detail, availability }: Server): KnownBreaker {
  if (breaker === BreakerState.ISOLATED) return { kind: "isolated", why: detail?.isolatedWhy ?? "" };
  const open = breaker === BreakerState.OPEN || availability === Availability.UNAVAILABLE;
  return open ? { kind: "open", untilMs: detail?.until ? timestampMs(detail.until) : 0 } : { kind: "closed" };
}
