import type { Answer, Link } from "./link.js";

/** The revision offered to session-era servers; they answer with the one they want. */
const LEGACY_VERSION = "2025-11-25";
export const MODERN_VERSION = "2026-07-28";
/** A first run through npx downloads packages before the server can answer. */
export const START_TIMEOUT_MS = 60_000;
/** Servers that are there already answer sooner; whoever waits longer wants to know for what. */
const WORTH_A_WORD_MS = 4_000;
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

export interface Patience {
  /** For the first answer. */
  readonly startTimeoutMs: number;
  /** Hears one sentence about a child that takes long to answer. */
  readonly onSilence: (text: string) => void;
}

/**
 * Finds out what the child speaks. `initialize` comes first, although a client would probe with `server/discover`: a
 * stdio connection is pinned by its first message, and a server that speaks both eras is wanted in the session era, where
 * every client can follow and where all of its messages can be passed on as they are.
 */
export async function findEras(
  link: Link,
  client: { readonly name: string; readonly version: string },
  { startTimeoutMs, onSilence }: Patience,
): Promise<Eras> {
  const params = { protocolVersion: LEGACY_VERSION, capabilities: {}, clientInfo: client };
  const limit = seconds(startTimeoutMs);
  const word = setTimeout(
    () => onSilence(`the server has not answered initialize yet: waiting up to ${limit} in all (--start-timeout)`),
    WORTH_A_WORD_MS,
  );
  const initialize = await answerWithin(link, "initialize", params, startTimeoutMs).finally(() => clearTimeout(word));
  if (initialize?.kind === "result") {
    link.notify(Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}'));
  }
  const discover = await answerWithin(link, "server/discover", { _meta: envelope() }, DISCOVER_MS);
  if (initialize?.kind === "result" || discover?.kind === "result") {
    return { initialize: initialize ?? silence("initialize"), discover: discover ?? silence("server/discover") };
  }
  if (!initialize && !discover) {
    throw new Error(
      `it answered nothing within ${limit}: it is no MCP server that speaks over standard input and output, or it needs longer to start (--start-timeout)`,
    );
  }
  throw new Error(
    `it is no MCP server, or speaks an unknown revision: it answered initialize with ${told(initialize)} and server/discover with ${told(discover)}`,
  );
}

function told(answer: Answer | undefined): string {
  return answer?.bytes.toString() ?? "nothing";
}

/** What clients are answered where the child says nothing. */
function silence(method: string): Answer {
  const error = { code: -32601, message: `the server does not answer ${method}` };
  return { kind: "error", bytes: Buffer.from(JSON.stringify(error)) };
}

function seconds(ms: number): string {
  return `${ms / 1_000} s`;
}

/** Undefined when nothing came in time. */
async function answerWithin(link: Link, method: string, params: object, ms: number): Promise<Answer | undefined> {
  const { id, answer } = link.ask(method, params);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      link.forget(id);
      resolve(undefined);
    }, ms);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
