/** The words that the rooms of the gateway share. */
import type { Stub } from "../client/index.js";
import type { CallerCredential } from "./forward/api.js";

/** Who asks, as far as a request shows it. */
export interface Caller {
  /** Shown to the registry instead of the gateway's own token; undefined where the gateway speaks for everybody. */
  readonly token: string | undefined;
  /** Its own credential for the servers behind the gateway. */
  readonly upstream: CallerCredential | undefined;
}

/** The gateway itself. */
export const GATEWAY: Caller = { token: undefined, upstream: undefined };

/** `dynamic`: the list holds what was loaded. `stable`: the list never changes, and everything goes through it. */
export type Mode = "dynamic" | "stable";

/** What an agent works with now, as ToolsetService keeps it. */
export interface Toolset {
  readonly handle: string;
  /** In the order in which they were loaded. */
  readonly toolIds: readonly string[];
  readonly facts: Readonly<Record<string, string>>;
  readonly etag: string;
}

/** Facts that the gateway keeps in a toolset. */
export const FACTS = {
  /** The negotiated MCP revision of a session. */
  revision: "mcp.revision",
  /** The client's capabilities, as JSON. */
  capabilities: "mcp.capabilities",
  /** The client's name and version, as JSON. */
  client: "mcp.client",
  mode: "mode",
  /** What was last looked for: outcomes of calls are remembered for it. */
  intent: "intent",
  /** Tools that were called with success, the latest first, with spaces between them. */
  recent: "recent",
  /** The least severe log line that the client wants of servers. */
  log: "mcp.log",
} as const;

/** What is known of a registered tool. */
export type KnownTool = Stub;

/** A result of `tools/call` or `tools/list`: an object, or where bytes matter the very text of one. */
export type Result = { readonly kind: "object"; readonly value: object } | { readonly kind: "text"; readonly text: string };

/** What a call can tell its caller before it is answered. */
export interface Line {
  readonly signal: AbortSignal;
  /** Tells in order; what cannot be told any more is left out. */
  notify(method: string, params: object): void;
}

export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A JSON-RPC error that is the caller's answer. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
    this.name = "RpcError";
  }
}

export const INVALID_PARAMS = -32602;
export const METHOD_NOT_FOUND = -32601;

/** A tool's own failure: models read it, and can do better next time. */
export function toolError(text: string): Result {
  return { kind: "object", value: { content: [{ type: "text", text }], isError: true } };
}

export function toolText(text: string): Result {
  return { kind: "object", value: { content: [{ type: "text", text }] } };
}
