/** MCP servers as the registry calls them. */
import type { Clock, Logger } from "../catalogue/ports.js";
import type { CredentialUse, Dial, Listing, Upstream } from "../catalogue/upstream-port.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import type { EgressPolicy } from "../domain/admission/egress.js";
import { Channel } from "./channel.js";
import type { Connection } from "./connection.js";
import { Connections } from "./connections.js";
import { type Credentials, NO_CREDENTIALS } from "./credentials/credentials.js";
import { showing } from "./credentials/egress.js";
import { createEgress, type Resolve } from "./egress.js";
import { HttpFailure, place, rpcCode } from "./failures.js";
import { StreamGone } from "./sse-channel.js";
import { screen } from "./tools.js";
import { walk } from "./walk.js";

export interface UpstreamOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Our own version, as servers are told. */
  readonly version: string;
  /** What may be dialled. */
  readonly policy: EgressPolicy;
  /** The system's resolver if unsaid. */
  readonly resolve?: Resolve | undefined;
  /** Closed with the upstream; none if unsaid. */
  readonly credentials?: Credentials | undefined;
}

export interface ClosableUpstream extends Upstream {
  /** Ends sessions and idle connections; calls under way should be aborted by their signals before. */
  close(): Promise<void>;
}

export function createUpstream(options: UpstreamOptions): ClosableUpstream {
  const { clock, logger, version, policy, resolve, credentials = NO_CREDENTIALS } = options;
  const egress = createEgress(policy, resolve);
  const tools = { clock, logger, client: { name: "toolcrib", version } };
  const connections = new Connections(tools, ({ endpoint, credential }) =>
    credential
      ? new Channel(showing(egress, credentials, credential), endpoint, credential.name)
      : new Channel(egress, endpoint),
  );

  /** Does something on a server's connection, and once more on a new one if the old one turns out to be lost. */
  async function on<T>(
    dial: Dial,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const { endpoint } = dial;
    const reason = egress.refusal(endpoint);
    if (reason !== undefined) throw new UpstreamError("egress", reason);
    const connection = await connections.get(dial, signal);
    try {
      return await work(connection);
    } catch (error) {
      if (!isLost(error)) throw error;
      logger.debug({ endpoint: place(endpoint), err: error }, "the connection to a server is lost: a new handshake");
      return work(await connections.renew(dial, connection, signal));
    }
  }

  return {
    refusal: (endpoint) => egress.refusal(endpoint),
    credentialRefusal: (endpoint, credential) => credentials.refusal(endpoint, credential),
    list: async (endpoint, signal, credential, transport = "streamable-http") => {
      return on({ endpoint, transport, credential }, signal, async (connection) => {
        const walkTools = { endpoint, connection, logger };
        let walked = await walk(walkTools, signal);
        // Pages from before and after a change may be mixed, so once more; a server that says so every time is left to its pace.
        if (walked.changedMeanwhile) walked = await walk(walkTools, signal);
        if (credential && walked.cacheScope === "private") refuseUnlessShared(endpoint, credential);
        const listing: Listing = {
          ...(await screen(walked.texts)),
          era: connection.era,
          protocolVersion: connection.protocolVersion,
          ttlMs: walked.ttlMs,
          cacheScope: walked.cacheScope,
          listChanged: connection.listChanged,
          receivedAtMs: clock.now(),
        };
        return listing;
      });
    },
    subscribe: async (endpoint, onChanged, signal, credential, transport = "streamable-http") => {
      const dial = { endpoint, transport, credential };
      const onOpen = () => {
        if (connections.reopened(dial)) onChanged();
      };
      try {
        await on(dial, signal, (connection) => {
          if (!connection.listChanged) {
            throw new UpstreamError("protocol", `${place(endpoint)} does not say when its tool list changes`);
          }
          return connection.listen({ onOpen, onChanged }, signal);
        });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    probe: async (dial, signal) => {
      await on(dial, signal, async (connection) => {
        const method = connection.era === "modern" ? "server/discover" : "ping";
        try {
          await connection.call(method, {}, signal, () => undefined);
        } catch (error) {
          // Not to know the method is an answer, and no reason for a new handshake.
          if (rpcCode(error) !== METHOD_NOT_FOUND) throw error;
        }
      });
    },
    close: async () => {
      await connections.close();
      egress.close();
      credentials.close();
    },
  };
}

/** Whoever holds the credential may see a private list; in the catalogue, everybody in the namespace would. */
function refuseUnlessShared(endpoint: string, { name, namespace, sharePrivate }: CredentialUse): void {
  if (sharePrivate) return;
  const text =
    `${place(endpoint)} marks its list as private to whom it knows by the credential ${name}, and everybody in namespace ` +
    `${namespace} would read it: set share_private in Register (toolcrib register --share-private) if they may`;
  throw new UpstreamError("private-list", text);
}

const METHOD_NOT_FOUND = -32601;
/** JSON-RPC codes by which a server says that this is not (or no longer) how it is spoken to. */
const LOST_CODES: ReadonlySet<number> = new Set([-32001, -32020, -32022, METHOD_NOT_FOUND]);

/** A session that is gone (404, from some servers 400), or its stream, or an era that the server has left. */
function isLost(error: unknown): boolean {
  if (error instanceof StreamGone) return true;
  const code = rpcCode(error);
  if (error instanceof HttpFailure && (error.status === 404 || error.status === 400)) return true;
  return code !== undefined && LOST_CODES.has(code);
}
