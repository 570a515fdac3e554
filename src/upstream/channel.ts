/** JSON-RPC over one MCP endpoint, raw: what comes back keeps the text it came in. */
import { LIMITS } from "../domain/limits.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import type { Transport } from "../domain/server.js";
import type { Egress, EgressResponse, Once } from "./egress.js";
import { eventData } from "./events.js";
import { HttpFailure, place, retryAfterOf, words, RpcFailure } from "./failures.js";
import type { RpcMessage, RpcResult } from "./messages.js";
import { isRecord, readMessages, resultOf } from "./messages.js";

export const JSON_TYPE = "application/json";
export const STREAM_TYPE = "text/event-stream";
export const SESSION_HEADER = "mcp-session-id";

export interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
  /** It is sent once, or not at all. */
  readonly once?: Once | undefined;
}

export interface Answer {
  readonly result: RpcResult;
  header(name: string): string | undefined;
}

/** Messages that are not the answer: notices and requests of the server. */
export type OnMessage = (message: RpcMessage) => void;

/** How a session reaches its server. Everything throws UpstreamError. */
export interface SessionChannel {
  readonly endpoint: string;
  readonly transport: Transport;
  /** Sends a request and waits for its result. */
  call(call: Call, signal: AbortSignal, onMessage: OnMessage): Promise<Answer>;
  /** Sends a notification or a response. */
  tell(message: object, headers: Headers, signal: AbortSignal, once?: Once): Promise<void>;
  /** Hears what the server says unasked, from `onOpen` on. Resolves when its stream ends. */
  follow(headers: Headers, onOpen: () => void, onMessage: OnMessage, signal: AbortSignal): Promise<void>;
  /** Tells the server that the session ends. */
  leave(headers: Headers, signal: AbortSignal): Promise<void>;
}

type Headers = Readonly<Record<string, string>>;

/** Over Streamable HTTP. */
export class Channel implements SessionChannel {
  readonly transport = "streamable-http";

  constructor(
    private readonly egress: Egress,
    readonly endpoint: string,
    /** Name of the credential that is shown; empty = none. */
    private readonly credential = "",
  ) {}

  async call(call: Call, signal: AbortSignal, onMessage: OnMessage): Promise<Answer> {
    const response = await this.post(call, signal);
    const result = await this.find(call, response, onMessage);
    return { result, header: (name) => response.header(name) };
  }

  /** Sends a request whose answer is a stream that stays open, and checks the head of the answer. Throws UpstreamError. */
  async open(call: Call, signal: AbortSignal): Promise<EgressResponse> {
    const response = await this.post(call, signal);
    if (mediaType(response) === STREAM_TYPE) return response;
    // What came instead of a stream says why there is none.
    await this.find(call, response, () => undefined);
    throw new UpstreamError("protocol", `${place(this.endpoint)} answered ${call.method} without a stream`);
  }

  /** The same way to another URL of the server. */
  at(endpoint: string): Channel {
    return new Channel(this.egress, endpoint, this.credential);
  }

  /** Opens a stream of something by GET. Throws UpstreamError. */
  async openByGet(what: string, headers: Headers, signal: AbortSignal): Promise<EgressResponse> {
    const purpose = `the stream of ${what}`;
    const request = { method: "GET", headers: { accept: STREAM_TYPE, ...headers }, purpose } as const;
    const response = await this.egress.request(this.endpoint, request, signal);
    await this.refuseStatus(response, purpose);
    if (mediaType(response) === STREAM_TYPE) return response;
    response.discard();
    throw new UpstreamError("protocol", `${place(this.endpoint)} answered the GET for ${what} without a stream`);
  }

  async tell(message: object, headers: Headers, signal: AbortSignal, once?: Once): Promise<void> {
    const purpose = "method" in message ? String(message.method) : "a response";
    const request = { ...postOf(message, headers, purpose), once };
    const response = await this.egress.request(this.endpoint, request, signal);
    await this.refuseStatus(response, purpose);
    if (response.status === 202 || response.status === 204) await response.read(LIMITS.metadataBytes);
    else response.discard();
  }

  async follow(headers: Headers, onOpen: () => void, onMessage: OnMessage, signal: AbortSignal): Promise<void> {
    const response = await this.openByGet("change notices", headers, signal);
    onOpen();
    for await (const message of this.messages(response, Number.POSITIVE_INFINITY, LIMITS.definitionBytes)) {
      onMessage(message);
    }
  }

  async leave(headers: Headers, signal: AbortSignal): Promise<void> {
    if (headers[SESSION_HEADER] === undefined) return;
    const request = { method: "DELETE", headers, purpose: "the end of its session" } as const;
    const response = await this.egress.request(this.endpoint, request, signal);
    response.discard();
  }

  /** Messages of a stream as they come; ends when the stream ends. Throws UpstreamError. */
  async *messages(response: EgressResponse, totalBytes: number, eventBytes: number): AsyncGenerator<RpcMessage> {
    const tooLong = () =>
      new UpstreamError("too-large", `${place(this.endpoint)} sent an event of more than ${eventBytes} bytes`);
    for await (const data of eventData(response.chunks(totalBytes), eventBytes, tooLong)) {
      yield* readMessages(this.endpoint, data);
    }
  }

  private async post(call: Call, signal: AbortSignal): Promise<EgressResponse> {
    const message = { jsonrpc: "2.0", id: call.id, method: call.method, params: call.params };
    const request = { ...postOf(message, call.headers, call.method), once: call.once };
    const response = await this.egress.request(this.endpoint, request, signal);
    await this.refuseStatus(response, call.method);
    return response;
  }

  private async find(call: Call, response: EgressResponse, onMessage: OnMessage): Promise<RpcResult> {
    const type = mediaType(response);
    if (type !== JSON_TYPE && type !== STREAM_TYPE) {
      response.discard();
      const got = type === "" ? "no content type" : `content type ${words(type)}`;
      const text = `${place(this.endpoint)} answered ${call.method} with ${got}; that is no MCP server, or not its path`;
      throw new UpstreamError("protocol", text);
    }
    for await (const message of this.incoming(type, response, answerLimits(call.method))) {
      if ("method" in message.value) onMessage(message);
      else if (message.value["id"] === call.id || isUnaddressedError(message)) return resultFrom(this.endpoint, call, message);
    }
    throw new UpstreamError("protocol", `${place(this.endpoint)} ended its answer to ${call.method} without a result`);
  }

  private async *incoming(type: string, response: EgressResponse, limits: AnswerLimits): AsyncGenerator<RpcMessage> {
    if (type === STREAM_TYPE) yield* this.messages(response, limits.stream, limits.answer);
    else yield* readMessages(this.endpoint, await response.read(limits.answer));
  }

  private wanted(): string {
    return this.credential === ""
      ? "; it asks for credentials: name a credential in Register (toolcrib register --credential NAME)"
      : `; it does not accept the credential ${this.credential}`;
  }

  private async refuseStatus(response: EgressResponse, purpose: string): Promise<void> {
    const { status } = response;
    if (status >= 200 && status < 300) return;
    const where = place(this.endpoint);
    if (status >= 300 && status < 400) {
      response.discard();
      throw new HttpFailure(`${where} redirects (HTTP ${status}), and redirects are not followed`, status, undefined);
    }
    const retryAfterMs = retryAfterOf(response.header("retry-after"), response.header("date"));
    const rpc = await errorBody(response);
    const hint = status === 401 || status === 403 ? this.wanted() : "";
    const said = rpc ? `: JSON-RPC error ${rpc.code} ${words(rpc.message)}` : "";
    throw new HttpFailure(`${where} answered ${purpose} with HTTP ${status}${said}${hint}`, status, rpc, retryAfterMs);
  }
}

interface AnswerLimits {
  readonly answer: number;
  /** With everything that comes before it. */
  readonly stream: number;
}

/** Lists and results of calls are long; whatever else is asked, a probe among it, is answered in a few hundred bytes. */
function answerLimits(method: string): AnswerLimits {
  if (method === "tools/call") return { answer: LIMITS.callAnswerBytes, stream: LIMITS.callStreamBytes };
  const bytes = method === "tools/list" ? LIMITS.upstreamBytes : LIMITS.answerBytes;
  return { answer: bytes, stream: bytes };
}

/** The result in the answer to a call. Throws UpstreamError. */
export function resultFrom(endpoint: string, call: Call, message: RpcMessage): RpcResult {
  const failure = errorOf(message.value);
  if (failure) {
    const text = `${place(endpoint)} answered ${call.method} with JSON-RPC error ${failure.code}: ${words(failure.message)}`;
    throw new RpcFailure(text, failure.code, failure.data, failure.message);
  }
  const result = resultOf(message);
  if (result) return result;
  throw new UpstreamError("protocol", `${place(endpoint)} answered ${call.method} with neither result nor error`);
}

function postOf(message: object, headers: Headers, purpose: string) {
  const accept = `${JSON_TYPE}, ${STREAM_TYPE}`;
  const body = JSON.stringify(message);
  const length = String(Buffer.byteLength(body));
  const fixed = { accept, "content-type": JSON_TYPE, "content-length": length };
  return { method: "POST", headers: { ...fixed, ...headers }, body, purpose } as const;
}

function mediaType(response: EgressResponse): string {
  return (response.header("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data: unknown;
}

function errorOf(value: Readonly<Record<string, unknown>>): ErrorObject | undefined {
  const error = value["error"];
  if (!isRecord(error) || typeof error["code"] !== "number") return undefined;
  const message = typeof error["message"] === "string" ? error["message"] : "";
  return { code: error["code"], message, data: error["data"] };
}

/** An error that could not say which request it belongs to. Where there is one request, it is meant. */
export function isUnaddressedError({ value }: RpcMessage): boolean {
  return (value["id"] === null || value["id"] === undefined) && errorOf(value) !== undefined;
}

/** The JSON-RPC error in the body of a refusal. The status is the news; a body that cannot be read adds nothing to it. */
async function errorBody(response: EgressResponse): Promise<ErrorObject | undefined> {
  if (mediaType(response) !== JSON_TYPE) {
    response.discard();
    return undefined;
  }
  try {
    const value: unknown = JSON.parse((await response.read(LIMITS.definitionBytes)).toString("utf8"));
    return isRecord(value) ? errorOf(value) : undefined;
  } catch {
    return undefined;
  }
}
