/** MCP servers as the registry calls them. */
import type { Clock, Logger } from "../catalogue/ports.js";
import type { Listing, Upstream } from "../catalogue/upstream-port.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import type { EgressPolicy } from "../domain/admission/egress.js";
import { Channel } from "./channel.js";
import type { Connection } from "./connection.js";
import { Connections } from "./connections.js";
import { createEgress, type Resolve } from "./egress.js";
import { HttpFailure, place, rpcCode } from "./failures.js";
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
}

export interface ClosableUpstream extends Upstream {
  /** Ends sessions and idle connections; calls under way should be aborted by their signals before. */
  close(): Promise<void>;
}

export function createUpstream({ clock, logger, version, policy, resolve }: UpstreamOptions): ClosableUpstream {
  const egress = createEgress(policy, resolve);
  const tools = { clock, logger, client: { name: "toolcrib", version } };
  const connections = new Connections(tools, (endpoint) => new Channel(egress, endpoint));

  /** Does something on the endpoint's connection, and once more on a new one if the old one turns out to be lost. */
  async function on<T>(
    endpoint: string,
    signal: AbortSignal,
    work: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const reason = egress.refusal(endpoint);
    if (reason !== undefined) throw new UpstreamError("egress", reason);
    const connection = await connections.get(endpoint, signal);
    try {
      return await work(connection);
    } catch (error) {
      if (!isLost(error)) throw error;
      logger.debug({ endpoint: place(endpoint), err: error }, "the connection to a server is lost: a new handshake");
      return work(await connections.renew(endpoint, connection, signal));
    }
  }

  return {
    refusal: (endpoint) => egress.refusal(endpoint),
    list: async (endpoint, signal) => {
      return on(endpoint, signal, async (connection) => {
        const walkTools = { endpoint, connection, logger };
        let walked = await walk(walkTools, signal);
        // Pages from before and after a change may be mixed, so once more; a server that says so every time is left to its pace.
        if (walked.changedMeanwhile) walked = await walk(walkTools, signal);
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
    subscribe: async (endpoint, onChanged, signal) => {
      const onOpen = () => {
        if (connections.reopened(endpoint)) onChanged();
      };
      try {
        await on(endpoint, signal, (connection) => {
          if (!connection.listChanged) {
            throw new UpstreamError("protocol", `${place(endpoint)} does not say when its tool list changes`);
          }
          return connection.listen({ onOpen, onChanged }, signal);
        });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    close: async () => {
      await connections.close();
      egress.close();
    },
  };
}

/** JSON-RPC codes by which a server says that this is not (or no longer) how it is spoken to. */
const LOST_CODES: ReadonlySet<number> = new Set([-32001, -32020, -32022, -32601]);

/** A session that is gone (404, from some servers 400), or an era that the server has left. */
function isLost(error: unknown): boolean {
  const code = rpcCode(error);
  if (error instanceof HttpFailure && (error.status === 404 || error.status === 400)) return true;
  return code !== undefined && LOST_CODES.has(code);
}
