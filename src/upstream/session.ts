/** The eras before 2026-07-28: `initialize`, sessions, and a GET stream for notices. */
import type { Clock, Logger } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import type { Transport } from "../domain/server.js";
import { SESSION_HEADER, type SessionChannel } from "./channel.js";
import type { ClientInfo, Connection, ListenHooks, Sending } from "./connection.js";
import { isListChanged } from "./connection.js";
import { deadline } from "./deadline.js";
import { place, words } from "./failures.js";
import type { RpcMessage } from "./messages.js";
import { isRecord } from "./messages.js";

const OFFERED = "2025-11-25";
const SPOKEN: readonly string[] = [OFFERED, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
/** Longest wait for a server to take note of a session's end. */
const FAREWELL_MS = 1_000;
/** Answers to a server's own requests that may be on their way at once; a server that asks faster is not answered. */
const REPLIES = 4;
/** JSON-RPC: no such method. */
const METHOD_NOT_FOUND = -32601;

export interface SessionTools {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly client: ClientInfo;
}

/** A connection of the older eras. */
export interface Session extends Connection {
  readonly era: "legacy";
}

/** Throws UpstreamError. */
export async function openSession(channel: SessionChannel, tools: SessionTools, signal: AbortSignal): Promise<Session> {
  const params = { protocolVersion: OFFERED, capabilities: {}, clientInfo: tools.client };
  const call = { id: 1, method: "initialize", params, headers: {} };
  const { result, header } = await channel.call(call, signal, () => undefined);
  const protocolVersion = result.value["protocolVersion"];
  if (typeof protocolVersion !== "string" || !SPOKEN.includes(protocolVersion)) {
    const got = typeof protocolVersion === "string" ? words(protocolVersion) : "none";
    const text = `${place(channel.endpoint)} wants protocol version ${got}; spoken here are ${SPOKEN.join(", ")}`;
    throw new UpstreamError("protocol", text);
  }
  const capabilities = isRecord(result.value["capabilities"]) ? result.value["capabilities"] : {};
  const session = new LegacySession(channel, tools, protocolVersion, header(SESSION_HEADER), capabilities);
  await session.initialized(signal);
  return session;
}

class LegacySession implements Session {
  readonly era = "legacy";
  readonly hasTools: boolean;
  readonly listChanged: boolean;
  private readonly headers: Record<string, string>;
  readonly transport: Transport;
  private lastId = 1;
  private replying = 0;

  constructor(
    private readonly channel: SessionChannel,
    private readonly tools: SessionTools,
    readonly protocolVersion: string,
    sessionId: string | undefined,
    capabilities: Readonly<Record<string, unknown>>,
  ) {
    this.transport = channel.transport;
    const declared = capabilities["tools"];
    this.hasTools = isRecord(declared);
    this.listChanged = isRecord(declared) && declared["listChanged"] === true;
    this.headers = { "mcp-protocol-version": protocolVersion };
    if (sessionId !== undefined) this.headers[SESSION_HEADER] = sessionId;
  }

  initialized(signal: AbortSignal): Promise<void> {
    return this.channel.tell({ jsonrpc: "2.0", method: "notifications/initialized" }, this.headers, signal);
  }

  async call(
    method: string,
    params: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
    onMessage: (message: RpcMessage) => void,
    sending?: Sending,
  ) {
    const call = { id: ++this.lastId, method, params, headers: this.headers, once: sending?.once };
    try {
      const answer = await this.channel.call(call, signal, (message) => {
        this.answerRequest(message, signal);
        onMessage(message);
      });
      return answer.result;
    } catch (error) {
      if (sending && signal.aborted) void this.cancel(call.id, signal.reason);
      throw error;
    }
  }

  /** In these eras a server goes on with a call whose connection is gone, until it is told. */
  private async cancel(requestId: number, reason: unknown): Promise<void> {
    const params = { requestId, reason: reason instanceof Error ? reason.message : "the caller gave up" };
    const message = { jsonrpc: "2.0", method: "notifications/cancelled", params };
    const { signal, lift } = deadline(this.tools.clock, FAREWELL_MS);
    try {
      await this.channel.tell(message, this.headers, signal);
    } catch (error) {
      this.tools.logger.debug({ endpoint: place(this.channel.endpoint), err: error }, "a server could not be told that a call is given up");
    } finally {
      lift();
    }
  }

  async listen(hooks: ListenHooks, signal: AbortSignal): Promise<never> {
    const opening = deadline(this.tools.clock, LIMITS.loadMs, signal);
    const onOpen = () => {
      opening.lift();
      hooks.onOpen();
    };
    const onMessage = (message: RpcMessage) => {
      this.answerRequest(message, signal);
      if (isListChanged(message)) hooks.onChanged();
    };
    try {
      await this.channel.follow(this.headers, onOpen, onMessage, opening.signal);
    } finally {
      opening.lift();
    }
    throw new UpstreamError("connect", `${place(this.channel.endpoint)} ended its stream of change notices`);
  }

  async close(): Promise<void> {
    const { signal, lift } = deadline(this.tools.clock, FAREWELL_MS);
    try {
      await this.channel.leave(this.headers, signal);
    } catch (error) {
      this.tools.logger.debug(
        { endpoint: place(this.channel.endpoint), err: error },
        "a session was left without goodbye",
      );
    } finally {
      lift();
    }
  }

  /** Servers of these eras may ask us: a ping wants an answer or the session dies, anything else is not offered. */
  private answerRequest({ value }: RpcMessage, signal: AbortSignal): void {
    const { id, method } = value;
    if (id === undefined || typeof method !== "string" || this.replying >= REPLIES) return;
    const answer =
      method === "ping" ? { result: {} } : { error: { code: METHOD_NOT_FOUND, message: `${method} is not offered` } };
    this.replying++;
    this.channel
      .tell({ jsonrpc: "2.0", id, ...answer }, this.headers, signal)
      .catch((error: unknown) => {
        const fields = { endpoint: place(this.channel.endpoint), method, err: error };
        this.tools.logger.debug(fields, "a server's request could not be answered");
      })
      .finally(() => {
        this.replying--;
      });
  }
}
