import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Eras } from "../era.js";
import { MODERN_VERSION } from "../era.js";
import { memberAt, replaced, slice } from "../json-span.js";
import type { Link } from "../link.js";
import { envelopeOf, exchange } from "./exchange.js";
import { checkCaller, readBody, Refusal, sendJson, sendRefusal } from "./guard.js";
import type { Incoming } from "./message.js";
import { readMessage } from "./message.js";
import type { Session } from "./sessions.js";
import { Sessions } from "./sessions.js";

const PATH = "/mcp";

export interface RelayOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** A host name under which a proxy on this machine passes requests on. */
  readonly alsoAllowed?: string | undefined;
}

/** Serves one stdio child as MCP Streamable HTTP on loopback, to many clients and in every era that the child speaks. */
export class Relay {
  readonly #link: Link;
  readonly #eras: Eras;
  readonly #options: RelayOptions;
  readonly #sessions = new Sessions();
  readonly #server: Server;

  constructor(link: Link, eras: Eras, options: RelayOptions) {
    this.#link = link;
    this.#eras = eras;
    this.#options = options;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    // A tool call may take as long as it likes; only reading a request is bounded.
    this.#server.requestTimeout = 60_000;
    // Longer than clients keep an idle connection, so that it is they who close it, and no request meets a closing one.
    this.#server.keepAliveTimeout = 75_000;
  }

  /** Resolves with the endpoint's URL; rejects with a sentence when the port is taken. */
  async listen(): Promise<string> {
    const { port } = this.#options;
    this.#server.listen(port, "127.0.0.1");
    try {
      await once(this.#server, "listening");
    } catch (error) {
      const why =
        (error as NodeJS.ErrnoException).code === "EADDRINUSE" ? "is taken" : `cannot be used (${String(error)})`;
      throw new Error(`port ${port} on 127.0.0.1 ${why}: give another --port, or leave it out for a free one`);
    }
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${PATH}`;
  }

  /** Passes a notification that belongs to no request on to everybody who listens. */
  broadcast(message: Buffer): void {
    this.#sessions.broadcast(message);
  }

  /** Ends all streams and connections. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#sessions.end();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => response.destroy());
    try {
      checkCaller(request, this.#options.alsoAllowed);
      if (new URL(request.url ?? "/", "http://localhost").pathname !== PATH) {
        throw new Refusal(404, -32000, `nothing is here: the endpoint is ${PATH}`);
      }
      if (request.method === "POST") await this.#post(request, response);
      else if (request.method === "GET") this.#session(request, 405).attach(response);
      else if (request.method === "DELETE") this.#delete(request, response);
      else throw new Refusal(405, -32000, "only GET, POST and DELETE are answered", { allow: "GET, POST, DELETE" });
    } catch (error) {
      if (error instanceof Refusal) sendRefusal(response, error);
      else if (response.headersSent || request.destroyed) response.destroy();
      else sendRefusal(response, new Refusal(500, -32603, "the request could not be passed on"));
    }
  }

  async #post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const message = readMessage(await readBody(request));
    checkHeader(request, message);
    if (message.kind === "request" && message.method === "initialize") return this.#initialize(message, response);
    if (message.revision !== "" || (message.method === "server/discover" && message.kind === "request")) {
      return this.#stateless(message, request, response);
    }
    const session = this.#session(request, 400);
    if (message.kind === "request") return exchange(this.#link, message, { request, response }, session);
    if (message.kind === "notification") this.#notified(message, session);
    response.writeHead(202).end();
  }

  #initialize(message: Incoming, response: ServerResponse): void {
    const { initialize } = this.#eras;
    const headers = initialize.kind === "result" ? { "mcp-session-id": this.#sessions.create().id } : {};
    sendJson(response, 200, envelopeOf(message, initialize), headers);
  }

  /** The 2026-07-28 era. A child of the session era answers as it did when it was asked first: it has no such method. */
  async #stateless(message: Incoming, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { discover } = this.#eras;
    if (message.kind !== "request") {
      if (discover.kind === "result") this.#link.notify(message.bytes);
      response.writeHead(202).end();
      return;
    }
    if (discover.kind === "result") return exchange(this.#link, message, { request, response }, undefined);
    const error =
      message.method === "server/discover"
        ? { code: -32601, message: "Method not found" }
        : {
            code: -32022,
            message: `Unsupported protocol version: ${message.revision}; this server is older than ${MODERN_VERSION}, begin with initialize`,
            data: { supported: [this.#legacyVersion()], requested: message.revision },
          };
    sendJson(response, 200, envelopeOf(message, { kind: "error", bytes: Buffer.from(JSON.stringify(error)) }));
  }

  #legacyVersion(): unknown {
    const span = memberAt(this.#eras.initialize.bytes, ["protocolVersion"]);
    return span && JSON.parse(slice(this.#eras.initialize.bytes, span).toString());
  }

  #notified(message: Incoming, session: Session): void {
    // Said to the child once, when it started: it sees one client, whatever comes and goes here.
    if (message.method === "notifications/initialized" || message.method === "notifications/roots/list_changed") return;
    if (message.method !== "notifications/cancelled") return this.#link.notify(message.bytes);
    const span = memberAt(message.bytes, ["params", "requestId"]);
    const id = span && session.open.get(slice(message.bytes, span).toString());
    if (span && id !== undefined) this.#link.cancel(id, replaced(message.bytes, span, String(id)));
  }

  #delete(request: IncomingMessage, response: ServerResponse): void {
    this.#sessions.remove(this.#session(request, 400));
    response.writeHead(200).end();
  }

  /** The request's session; without the header `status`, and 404 for one that is not (or no longer) known. */
  #session(request: IncomingMessage, status: 400 | 405): Session {
    const id = request.headers["mcp-session-id"];
    if (typeof id !== "string") {
      const headers = status === 405 ? { allow: "POST" } : {};
      throw new Refusal(
        status,
        -32000,
        "the Mcp-Session-Id header is missing: begin with initialize",
        headers as Record<string, string>,
      );
    }
    const session = this.#sessions.find(id);
    if (!session) throw new Refusal(404, -32001, "Session not found: begin with initialize");
    return session;
  }
}

/** What stands in headers for the sake of proxies must be what stands in the body. */
function checkHeader(request: IncomingMessage, message: Incoming): void {
  const named = request.headers["mcp-method"];
  if (message.method === "" || typeof named !== "string" || named === message.method) return;
  throw new Refusal(
    400,
    -32020,
    `the Mcp-Method header says ${JSON.stringify(named)}, the body ${JSON.stringify(message.method)}`,
  );
}
