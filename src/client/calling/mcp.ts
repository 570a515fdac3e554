import type { McpResult } from "./outcome.js";

/** Where a server's tools are called. */
export interface McpEndpoint {
  readonly serverId: string;
  readonly url: string;
  readonly transport: "streamable-http" | "sse";
}

/** An open connection to an MCP server. */
export interface McpSession {
  /** Rejects when there is no answer. */
  callTool(
    request: { readonly name: string; readonly arguments: Record<string, unknown> },
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<McpResult>;
  close(): Promise<void>;
}

/** Opens a connection; rejects when the server is not reached. */
export type McpDialer = (endpoint: McpEndpoint) => Promise<McpSession>;

export interface SdkDialerOptions {
  /** What each request to a server carries besides, credentials for example. Asked once per connection. */
  readonly headers?: (endpoint: McpEndpoint) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Until a connection is given up, ms; default 10,000. */
  readonly connectMs?: number;
  /** How the agent names itself to servers. */
  readonly clientInfo?: { readonly name: string; readonly version: string };
}

/** The peer that is loaded when the first call is made; whoever brings a dialer does without. */
const PEER = "@modelcontextprotocol/client";
const CONNECT_MS = 10_000;

/** What is used of the peer, so that it may be missing where this is compiled. */
interface SdkClient {
  connect(transport: unknown, options: { timeout: number }): Promise<void>;
  callTool(request: unknown, options: { timeout: number; signal?: AbortSignal }): Promise<McpResult>;
  close(): Promise<void>;
}
interface Sdk {
  readonly Client: new (info: object, options: object) => SdkClient;
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => unknown;
  readonly SSEClientTransport: new (url: URL, options: object) => unknown;
}

/** Dials with the official SDK, `@modelcontextprotocol/client` 2, in both protocol eras; install it beside this package. */
export function sdkDialer(options: SdkDialerOptions = {}): McpDialer {
  const { headers, connectMs = CONNECT_MS, clientInfo = { name: "toolcrib-agent", version: "1" } } = options;
  return async (endpoint) => {
    const sdk = await loadSdk();
    const init = { requestInit: { headers: { ...(await headers?.(endpoint)) } } };
    const url = new URL(endpoint.url);
    const transport = endpoint.transport === "sse" ? new sdk.SSEClientTransport(url, init) : new sdk.StreamableHTTPClientTransport(url, init);
    const client = new sdk.Client(clientInfo, { versionNegotiation: { mode: "auto" } });
    await client.connect(transport, { timeout: connectMs });
    return {
      callTool: (request, { timeoutMs, signal }) => client.callTool(request, { timeout: timeoutMs, ...(signal && { signal }) }),
      close: () => client.close(),
    };
  };
}

async function loadSdk(): Promise<Sdk> {
  try {
    return (await import(PEER)) as Sdk;
  } catch (error) {
    throw new Error(`calling tools needs ${PEER}: install it (npm install ${PEER}), or give connect() an mcp dialer of your own`, {
      cause: error,
    });
  }
}
