/** Streamable HTTP for the eras with sessions, 2024-11-05 to 2025-11-25. A session's id is the handle of its toolset. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Face } from "../face.js";
import { answerSession, type Identity, initializeResult, modeOf, negotiated, SESSION_REVISIONS, sessionFacts } from "../session-methods.js";
import type { Toolsets } from "../toolsets.js";
import { type Caller, FACTS, type Mode, RpcError, type Toolset } from "../words.js";
import { Reply } from "./reply.js";
import { failed, refuse } from "./refuse.js";
import { errorMessage, type Id, INVALID_REQUEST, type Message, type Params, readMessage, resultMessage } from "./rpc.js";
import { SessionSeat } from "./session-seat.js";
import type { Streams } from "./streams.js";

/** Messages of one batch, as 2025-03-26 has them. */
const BATCH = 50;

export interface SessionParts {
  readonly faces: Readonly<Record<Mode, Face>>;
  readonly toolsets: Toolsets;
  readonly streams: Streams;
  readonly identity: Identity;
  readonly mode: Mode | "auto";
  readonly stableClients: readonly string[];
  /** Tells what nobody expected. */
  readonly onBug: (error: unknown) => void;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly caller: Caller;
  /** `?mode=` of the URL. */
  readonly mode: string | null;
}

export class Sessions {
  /** Calls under way, by session and request, so that they can be cancelled. */
  readonly #calls = new Map<string, AbortController>();

  constructor(private readonly parts: SessionParts) {}

  async post(exchange: Exchange, body: unknown): Promise<void> {
    const batch = Array.isArray(body);
    const messages = (batch ? body : [body]).map(readMessage);
    if (messages.length === 0 || messages.length > BATCH) return refuse(exchange.response, 400, INVALID_REQUEST, `a batch has 1 to ${BATCH} messages`);
    const [first] = messages;
    if (!batch && first?.kind === "request" && first.method === "initialize") return this.#initialize(exchange, first.id, first.params);
    const seat = await this.#seat(exchange);
    if (seat) await this.#answerAll(exchange, seat, messages, batch);
  }

  async get(exchange: Exchange): Promise<void> {
    const { request, response } = exchange;
    if (!(request.headers.accept ?? "").includes("text/event-stream")) return refuse(response, 406, INVALID_REQUEST, "a GET opens an event stream: accept text/event-stream");
    if (this.parts.streams.full) return refuse(response, 503, INVALID_REQUEST, "too many sessions have a stream open here; calls go on without one");
    const seated = await this.#seat(exchange);
    if (!seated) return;
    const last = request.headers["last-event-id"];
    this.parts.streams.open(seated.seat, seated.toolset, response, typeof last === "string" ? last : undefined);
  }

  async remove(exchange: Exchange): Promise<void> {
    const seated = await this.#seat(exchange);
    if (!seated) return;
    await this.parts.toolsets.remove(exchange.caller, seated.seat.handle);
    exchange.response.writeHead(204).end();
  }

  /** Ends calls under way. */
  close(): void {
    for (const call of this.#calls.values()) call.abort();
  }

  async #initialize({ response, caller, mode: asked }: Exchange, id: Id, params: Params): Promise<void> {
    const { mode: configured, stableClients, identity, toolsets } = this.parts;
    const revision = negotiated(params["protocolVersion"]);
    const mode = modeOf(configured, asked, (params["clientInfo"] as { name?: unknown } | undefined)?.name, stableClients);
    const { handle } = await toolsets.create(caller, sessionFacts(revision, mode, params));
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": handle });
    response.end(resultMessage(id, { kind: "object", value: initializeResult(revision, mode, identity) }));
  }

  /** The session that a request names; answers by itself, and undefined, where there is none. */
  async #seat({ request, response, caller }: Exchange): Promise<Seated | undefined> {
    const version = request.headers["mcp-protocol-version"];
    if (version !== undefined && !SESSION_REVISIONS.includes(String(version))) {
      refuse(response, 400, INVALID_REQUEST, `the MCP-Protocol-Version ${JSON.stringify(version)} is not spoken with sessions: ${SESSION_REVISIONS.join(", ")}`);
      return undefined;
    }
    const handle = request.headers["mcp-session-id"];
    if (typeof handle !== "string") {
      refuse(response, 400, INVALID_REQUEST, "the Mcp-Session-Id header is missing: send initialize first, and its answer's id with all that follows");
      return undefined;
    }
    const seat = new SessionSeat(this.parts.toolsets, caller, handle);
    const { toolset } = await seat.read();
    return { seat, toolset };
  }

  async #answerAll({ request, response }: Exchange, { seat, toolset }: Seated, messages: readonly Message[], batch: boolean): Promise<void> {
    for (const message of messages) if (message.kind === "notification") this.#heed(seat, message.method, message.params);
    const asked = messages.filter((m) => m.kind === "request" || m.kind === "invalid");
    if (asked.length === 0) return void response.writeHead(202).end();
    if (asked.every((m) => m.kind === "invalid") && !batch) {
      const [{ id, why }] = asked as [Extract<Message, { kind: "invalid" }>];
      return refuse(response, 400, INVALID_REQUEST, why, id);
    }
    const reply = new Reply(response, (request.headers.accept ?? "*/*").includes("text/event-stream"), batch);
    const face = this.parts.faces[toolset.facts[FACTS.mode] === "stable" ? "stable" : "dynamic"];
    reply.end(await Promise.all(asked.map((message) => this.#answer(face, seat, message, reply))));
  }

  async #answer(face: Face, seat: SessionSeat, message: Message, reply: Reply): Promise<string> {
    if (message.kind === "invalid") return errorMessage(message.id, new RpcError(INVALID_REQUEST, message.why));
    if (message.kind !== "request") return "";
    const { id, method, params } = message;
    if (method === "initialize") return errorMessage(id, new RpcError(INVALID_REQUEST, "initialize stands alone, before there is a session"));
    const key = `${seat.handle} ${JSON.stringify(id)}`;
    const call = new AbortController();
    this.#calls.set(key, call);
    try {
      const line = { signal: call.signal, notify: (told: string, about: object) => reply.notify(told, about) };
      return resultMessage(id, await answerSession(face, seat, method, params, line));
    } catch (error) {
      return errorMessage(id, failed(error, this.parts.onBug));
    } finally {
      if (this.#calls.get(key) === call) this.#calls.delete(key);
    }
  }

  #heed(seat: SessionSeat, method: string, params: Params): void {
    if (method === "notifications/cancelled") this.#calls.get(`${seat.handle} ${JSON.stringify(params["requestId"])}`)?.abort();
  }
}

interface Seated {
  readonly seat: SessionSeat;
  readonly toolset: Toolset;
}
