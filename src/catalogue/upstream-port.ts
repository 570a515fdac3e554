/** MCP servers as the rooms above `upstream` see them. */
import type { Instance, RejectedTool, Transport } from "../domain/server.js";
import type { StubFields } from "../domain/stub.js";

/** One tool of a listing that can be listed. */
export interface ListedTool {
  readonly name: string;
  /** The tool object's bytes, sliced from the response (P10). */
  readonly definition: Uint8Array;
  readonly digest: string;
  /** Label derived from the definition, cleaned; `serverId` and server tags are filled in by the use-case. */
  readonly label: Omit<StubFields, "serverId">;
}

/** One complete walk of `tools/list`. */
export interface Listing {
  /** In name order, each name once (the first one stays). */
  readonly tools: readonly ListedTool[];
  readonly rejected: readonly RejectedTool[];
  readonly era: "modern" | "legacy";
  /** MCP revision spoken. */
  readonly protocolVersion: string;
  /** Smallest `ttlMs` of its pages, if the server gave any. */
  readonly ttlMs: number | undefined;
  readonly cacheScope: string | undefined;
  /** The server says when its list changes. */
  readonly listChanged: boolean;
  readonly receivedAtMs: number;
}

export type UpstreamErrorKind =
  | "egress"
  | "connect"
  | "timeout"
  | "http"
  /** HTTP 502, 503 or 504: what stands before the server says that it is not there. */
  | "away"
  /** HTTP 429. */
  | "throttled"
  /** The server wants credentials, or others than it was shown. */
  | "auth"
  /** The credential that was named is not to be had, or must not be shown to this server. */
  | "credential"
  /** The list is private, and its registrant has not said that it may be shared. */
  | "private-list"
  /** A JSON-RPC error. */
  | "rpc"
  | "protocol"
  | "too-large";

/** Why a server could not be asked. `message` is fit for operators and holds no secrets. */
export class UpstreamError extends Error {
  constructor(
    readonly kind: UpstreamErrorKind,
    message: string,
    cause?: unknown,
    /** The server's own `Retry-After`. */
    readonly retryAfterMs?: number,
  ) {
    super(message, { cause });
    this.name = "UpstreamError";
  }
}

/** Which of the operator's credentials is shown to a server, and on whose behalf. */
export interface CredentialUse {
  readonly name: string;
  readonly namespace: string;
  /** A list that the server marks as private may be listed all the same. */
  readonly sharePrivate: boolean;
}

/** How an instance is dialled. */
export interface Dial {
  readonly endpoint: string;
  readonly transport: Transport;
  /** Undefined: the server is shown none. */
  readonly credential: CredentialUse | undefined;
}

export function dialOf(
  namespace: string,
  instance: Pick<Instance, "endpoint" | "transport" | "credential" | "sharePrivate">,
): Dial {
  const { endpoint, transport, credential: name, sharePrivate } = instance;
  return { endpoint, transport, credential: name === "" ? undefined : { name, namespace, sharePrivate } };
}

export function sameDial(a: Dial, b: Dial): boolean {
  const [one, other] = [a.credential, b.credential];
  if (a.endpoint !== b.endpoint || a.transport !== b.transport) return false;
  return one?.name === other?.name && one?.namespace === other?.namespace && one?.sharePrivate === other?.sharePrivate;
}

export interface Upstream {
  /**
   * Walks the whole list. Rejects with UpstreamError. Era, transport and session are remembered per endpoint and
   * credential. Over Streamable HTTP, which is what no transport means, HTTP+SSE is tried where the server refuses.
   */
  list(endpoint: string, signal: AbortSignal, credential?: CredentialUse, transport?: Transport): Promise<Listing>;
  /**
   * Holds the server's change notices (GET stream of the older eras, `subscriptions/listen` of 2026-07-28) and calls
   * `onChanged` for each, and once whenever the stream was (re)opened after the first time, as notices may have been lost.
   * Resolves when the signal aborts; rejects with UpstreamError when the stream ends or cannot be opened.
   */
  subscribe(
    endpoint: string,
    onChanged: () => void,
    signal: AbortSignal,
    credential?: CredentialUse,
    transport?: Transport,
  ): Promise<void>;
  /**
   * Looks whether the server answers: `server/discover` of 2026-07-28, `ping` of the older eras, or the handshake where there was
   * none. Rejects with UpstreamError; a server that does not know `ping` answers all the same.
   */
  probe(dial: Dial, signal: AbortSignal): Promise<void>;
  /** Whether egress allows dialling it; undefined = yes, else a sentence saying what to set. */
  refusal(endpoint: string): string | undefined;
  /** Why this credential may not be shown to this endpoint; undefined = it may. Unknown and foreign ones read alike. */
  credentialRefusal(endpoint: string, credential: CredentialUse): string | undefined;
}
