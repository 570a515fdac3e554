/** A gateway over HTTP: the registry's tools for clients that speak only MCP. */
import { assembleParts, type PartsOptions } from "./assembly.js";
import type { Identification } from "./http/caller.js";
import type { Guarded } from "./http/guards.js";
import { KnownCallers } from "./http/known-callers.js";
import { startHttpFace, type Tls } from "./http/server.js";
import { Sessions } from "./http/sessions.js";
import { Streams } from "./http/streams.js";
import { NO_OBSERVER } from "./observer.js";
import type { Mode } from "./words.js";

export interface GatewayOptions extends PartsOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: Tls | undefined;
  readonly guarded: Guarded;
  readonly identification: Identification;
  /** Of sessions; 2026-07-28 is always stable. */
  readonly mode: Mode | "auto";
  /** Names that clients give themselves, in lower case, which get the stable mode where the mode is `auto`. */
  readonly stableClients: readonly string[];
  /** Streams that are open at once, of sessions and of subscriptions, each. */
  readonly maxStreams: number;
  /** How long a shutdown waits for calls under way, ms. */
  readonly graceMs: number;
}

export interface Gateway {
  readonly address: { readonly host: string; readonly port: number };
  /** Open streams of sessions. */
  readonly streams: number;
  /** Why it should get no requests; empty when it should. */
  notReady(): string;
  stop(): Promise<void>;
}

/** Rejects when the address cannot be listened on; nothing is left open then. */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { log, random, version, maxStreams, observer = NO_OBSERVER } = options;
  const parts = assembleParts(options);
  const streams = new Streams({ ...parts, observer, log, random }, maxStreams);
  const identity = { name: "toolcrib", version };
  const sessions = new Sessions({
    faces: parts.faces.sessions,
    toolsets: parts.toolsets,
    streams,
    identity,
    mode: options.mode,
    stableClients: options.stableClients,
    onBug: (error) => log.error({ err: error }, "a session's request failed"),
  });
  let stopping = false;
  const notReady = (): string => (stopping ? "The gateway is shutting down." : parts.notReady());
  const close = async (): Promise<void> => {
    streams.close();
    await parts.close();
  };
  try {
    const { stable } = parts.faces["2026-07-28"];
    const knownCallers = new KnownCallers(parts.registry, () => performance.now());
    const http = await startHttpFace({ ...options, sessions, knownCallers, stable, identity, notReady, endCalls: parts.endCalls, observer });
    return {
      address: http.address,
      get streams() {
        return streams.size;
      },
      notReady,
      stop: async () => {
        stopping = true;
        streams.close();
        await http.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}
