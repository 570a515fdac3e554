import type { Answer, Link } from "./link.js";

/** The revision offered to session-era servers; they answer with the one they want. */
const LEGACY_VERSION = "2025-11-25";
export const MODERN_VERSION = "2026-07-28";
/** A first run through npx downloads packages before the server can answer. */
const FIRST_ANSWER_MS = 120_000;
/** A session-era server may pass over a method that it does not know in silence. */
const DISCOVER_MS = 2_000;

/** What the child speaks on this connection. A child can speak both at once; at least one kind is a result. */
export interface Eras {
  /** The answer to `initialize`: InitializeResult, or the error of a server that has no sessions. */
  readonly initialize: Answer;
  /** The answer to `server/discover`: DiscoverResult, or an error from a server of the session era. */
  readonly discover: Answer;
}

/** The `_meta` that every request of the 2026-07-28 era carries. */
export function envelope(): Record<string, unknown> {
  return {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "toolcrib-wrap", version: "1" },
  };
}

/**
 * Finds out what the child speaks. `initialize` comes first, although a client would probe with `server/discover`: a
 * stdio connection is pinned by its first message, and a server that speaks both eras is wanted in the session era, where
 * every client can follow and where all of its messages can be passed on as they are.
 */
export async function findEras(link: Link, client: { readonly name: string; readonly version: string }): Promise<Eras> {
  const params = { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: client };
  const initialize = await answerWithin(link, "initialize", params, FIRST_ANSWER_MS);
  if (initialize.kind === "result") {
    link.notify(Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}'));
  }
  const discover = await answerWithin(link, "server/discover", { _meta: envelope() }, DISCOVER_MS);
  if (initialize.kind === "error" && discover.kind === "error") {
    throw new Error(
      `it is no MCP server, or speaks an unknown revision: it answered initialize with ${initialize.bytes.toString()} and server/discover with ${discover.bytes.toString()}`,
    );
  }
  return { initialize, discover };
}

async function answerWithin(link: Link, method: string, params: object, ms: number): Promise<Answer> {
  const { id, answer } = link.ask(method, params);
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<Answer>((resolve) => {
    timer = setTimeout(() => {
      link.forget(id);
      const error = { code: -32601, message: `no answer to ${method} within ${ms / 1000} s` };
      resolve({ kind: "error", bytes: Buffer.from(JSON.stringify(error)) });
    }, ms);
  });
  return Promise.race([answer, silence]).finally(() => clearTimeout(timer));
}
