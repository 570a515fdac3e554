/** Calls of tools, each sent once at most where it may have been executed. */
import { createHash } from "node:crypto";
import type { Clock, Logger } from "../catalogue/ports.js";
import type { Dial } from "../catalogue/upstream-port.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import type { EgressPolicy } from "../domain/admission/egress.js";
import { LIMITS } from "../domain/limits.js";
import { Channel } from "./channel.js";
import type { Connection } from "./connection.js";
import { Connections, dialKey } from "./connections.js";
import { callersOwn, type OwnCredential } from "./credentials/callers-own.js";
import { type Credentials, NO_CREDENTIALS } from "./credentials/credentials.js";
import { showing } from "./credentials/egress.js";
import { createEgress, type Resolve } from "./egress.js";
import { HttpFailure, place, rpcError } from "./failures.js";
import type { RpcMessage, RpcResult } from "./messages.js";
import { paramHeaders } from "./param-headers.js";
import { StreamGone } from "./sse-channel.js";

export type { Clock, Logger } from "../catalogue/ports.js";
export { UpstreamError, type Dial, type UpstreamErrorKind } from "../catalogue/upstream-port.js";
export { isFreeHeader, type OwnCredential, ownCredentialProblem } from "./credentials/callers-own.js";
export type { Credentials } from "./credentials/credentials.js";
export { watchCredentials } from "./credentials/credentials.js";
export type { Resolve } from "./egress.js";
export type { RpcMessage, RpcResult } from "./messages.js";

type Json = Readonly<Record<string, unknown>>;

/** Where a call goes, and as whom. */
export interface CallDial extends Dial {
  /** Calls of one session text share the sessions of older eras. */
  readonly session: string;
  /** Shown in place of `credential`. */
  readonly own: OwnCredential | undefined;
}

export interface ToolCall {
  readonly name: string;
  readonly args: unknown;
  readonly meta: Json;
  /** Members of `params` that only 2026-07-28 knows, and what its `_meta` says of the client's capabilities. */
  readonly modern: { readonly params: Json; readonly capabilities: Json | undefined };
  /** For headers that repeat arguments; undefined: none is known. */
  readonly inputSchema: unknown;
  /** Messages that came on the way to the answer. */
  readonly onMessage: (message: RpcMessage) => void;
}

/** How a call ended. */
export type CallEnd =
  | { readonly kind: "result"; readonly result: RpcResult }
  | { readonly kind: "rpc-error"; readonly code: number; readonly message: string; readonly data: unknown }
  /** `sent`: the server may have executed it. */
  | { readonly kind: "failed"; readonly error: UpstreamError; readonly sent: boolean };

export interface Caller {
  /** Why this endpoint may not be dialled; undefined = it may, as far as the URL tells. */
  refusal(endpoint: string): string | undefined;
  /** Never rejects but for faults of this program. */
  call(dial: CallDial, call: ToolCall, signal: AbortSignal): Promise<CallEnd>;
  /** Ends sessions and connections. */
  close(): Promise<void>;
}

export interface CallerOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly version: string;
  readonly policy: EgressPolicy;
  readonly resolve?: Resolve | undefined;
  /** Closed with the caller; none if unsaid. */
  readonly credentials?: Credentials | undefined;
}

export function createCaller(options: CallerOptions): Caller {
  const { clock, logger, version, policy, resolve, credentials = NO_CREDENTIALS } = options;
  const egress = createEgress(policy, resolve);
  const tools = { clock, logger, client: { name: "toolcrib-gateway", version } };
  const closing = new AbortController();
  const connections = new Connections<CallDial>(tools, channelTo, keyOf);
  void tidy();

  function channelTo({ endpoint, credential, own }: CallDial): Channel {
    if (own) return new Channel(showing(egress, callersOwn(own), own.use), endpoint, own.use.name);
    if (credential) return new Channel(showing(egress, credentials, credential), endpoint, credential.name);
    return new Channel(egress, endpoint);
  }

  async function tidy(): Promise<void> {
    while (!closing.signal.aborted) {
      await clock.sleep(LIMITS.sessionIdleMs / 4, closing.signal);
      if (!closing.signal.aborted) await connections.closeIdle(LIMITS.sessionIdleMs);
    }
  }

  /** On the server's connection, and once more on a new one where the server says that it did not take the call. */
  async function attempt(dial: CallDial, call: ToolCall, sent: Sent, signal: AbortSignal): Promise<RpcResult> {
    const connection = await connections.get(dial, signal);
    try {
      return await send(connection, call, sent, signal);
    } catch (error) {
      if (!notTaken(error)) throw error;
      logger.debug({ endpoint: place(dial.endpoint), err: error }, "a call was not taken on this connection: a new handshake");
      sent.value = false;
      return send(await connections.renew(dial, connection, signal), call, sent, signal);
    }
  }

  return {
    refusal: (endpoint) => egress.refusal(endpoint),
    async call(dial, call, signal) {
      const sent: Sent = { value: false };
      const release = connections.hold(dial);
      try {
        const reason = egress.refusal(dial.endpoint);
        if (reason !== undefined) throw new UpstreamError("egress", reason);
        return { kind: "result", result: await attempt(dial, call, sent, signal) };
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error;
        const had = sent.value && !notTaken(error);
        // An error of a handshake, or of a transport, is no answer to the call.
        const answered = had ? rpcError(error) : undefined;
        return answered ? { kind: "rpc-error", ...answered } : { kind: "failed", error, sent: had };
      } finally {
        release();
      }
    },
    async close() {
      closing.abort();
      await connections.close();
      egress.close();
      credentials.close();
    },
  };
}

interface Sent {
  value: boolean;
}

function send(connection: Connection, call: ToolCall, sent: Sent, signal: AbortSignal): Promise<RpcResult> {
  const { name, args, meta, modern, inputSchema, onMessage } = call;
  const params = { name, ...(args !== undefined && { arguments: args }) };
  // The one stream of HTTP+SSE brings everybody's log messages, and says of none whose it is.
  const hear = connection.transport === "http-sse" ? (m: RpcMessage) => void (isLog(m) || onMessage(m)) : onMessage;
  const once = { onSent: () => void (sent.value = true) };
  if (connection.era === "legacy") {
    const withMeta = Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params;
    return connection.call("tools/call", withMeta, signal, hear, { once, headers: {} });
  }
  const { capabilities } = modern;
  const _meta = { ...meta, ...(capabilities && { "io.modelcontextprotocol/clientCapabilities": capabilities }) };
  const headers = paramHeaders(inputSchema, args);
  return connection.call("tools/call", { ...modern.params, ...params, _meta }, signal, hear, { once, headers });
}

function isLog({ value }: RpcMessage): boolean {
  return value["method"] === "notifications/message";
}

/** JSON-RPC codes by which a transport says that the request never came to a tool: session, headers, version. */
const REFUSED_CODES: ReadonlySet<number | undefined> = new Set([-32001, -32020, -32022]);
/** Codes that say little, so that the words decide: those of the SDKs, when a session is missing or a version is not spoken. */
const VAGUE_CODES: ReadonlySet<number | undefined> = new Set([-32000, -32600, -32601]);
const OF_THE_TRANSPORT = /session|initiali[sz]ed|protocol.version/i;

/**
 * The session is gone, or its stream, or the era: the server refused the request before it was one. Only a status says so surely;
 * what comes with HTTP 200 is an answer to the call, whatever its code, and a JSON-RPC error of a tool's own may come with any.
 */
function notTaken(error: unknown): boolean {
  if (error instanceof StreamGone) return true;
  if (!(error instanceof HttpFailure) || (error.status !== 400 && error.status !== 404)) return false;
  if (!error.rpc || REFUSED_CODES.has(error.rpc.code)) return true;
  return VAGUE_CODES.has(error.rpc.code) && OF_THE_TRANSPORT.test(error.rpc.message);
}

/** One session never serves two credentials, and never two callers who must not meet. */
function keyOf(dial: CallDial): string {
  const { session, own } = dial;
  const secret = own && createHash("sha256").update(`${own.header}\0${own.value}`).digest("base64");
  return JSON.stringify([dialKey(dial), session, own?.use.name, secret]);
}
