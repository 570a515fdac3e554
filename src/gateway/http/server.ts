/** The HTTP listener: guards, health, and the two ways in which a request is answered. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { createMcpHandler, isLegacyRequest } from "@modelcontextprotocol/server";
import { toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import { LIMITS } from "../../domain/limits.js";
import type { Face } from "../face.js";
import { modernServer } from "../modern.js";
import { type GatewayObserver, refusedFor } from "../observer.js";
import type { Identity } from "../session-methods.js";
import type { Logger } from "../words.js";
import { readBody } from "./body.js";
import { callerOf, type Identification } from "./caller.js";
import { corsHeaders, type Guarded, refusal } from "./guards.js";
import { refuse, refuseFor } from "./refuse.js";
import { INVALID_REQUEST, PARSE_ERROR } from "./rpc.js";
import type { KnownCallers } from "./known-callers.js";
import type { Sessions } from "./sessions.js";

export interface Tls {
  readonly serverOptions: SecureContextOptions;
  /** Keeps the server's certificate current; answers what stops that. */
  follow(server: { setSecureContext(context: SecureContextOptions): void }): () => void;
}

export interface HttpOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly tls: Tls | undefined;
  readonly guarded: Guarded;
  readonly identification: Identification;
  readonly sessions: Sessions;
  readonly knownCallers: KnownCallers;
  /** For 2026-07-28. */
  readonly stable: Face;
  readonly identity: Identity;
  /** Why it should get no requests; empty when it should. */
  readonly notReady: () => string;
  /** Answers the calls that the grace was not enough for. */
  readonly endCalls: () => Promise<void>;
  readonly maxStreams: number;
  readonly observer: GatewayObserver;
  /** How long a shutdown waits for calls under way, ms. */
  readonly graceMs: number;
  readonly log: Logger;
}

export interface HttpFace {
  readonly address: { readonly host: string; readonly port: number };
  /** Refuses what is new, waits for calls under way, then ends. */
  close(): Promise<void>;
}

const PATH = "/mcp";
/** For what calls that were ended are answered to be written. */
const LAST_WORDS_MS = 1_000;

/** Rejects when the address cannot be listened on. */
export async function startHttpFace(options: HttpOptions): Promise<HttpFace> {
  const { log, sessions } = options;
  const onBug = (error: unknown): void => log.error({ err: error }, "a request to the gateway failed");
  const modern = createMcpHandler(
    // Who may not knock without a token was turned away before.
    ({ requestInfo }) => modernServer(options.stable, callerOf(requestInfo?.headers ?? new Headers(), options.identification) ?? NOBODY, options.identity),
    {
      legacy: "reject",
      maxSubscriptions: options.maxStreams,
      maxRequestBodySize: LIMITS.messageBytes,
      onerror: (error) => log.debug({ err: String(error) }, "a request of 2026-07-28 was refused"),
    },
  );
  const serveModern = toNodeHandler(modern, { onerror: onBug });
  const under = new Set<ServerResponse>();
  let draining = false;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://gateway");
    if (url.pathname === PATH) response.once("close", () => counted(response.statusCode, options.observer));
    if (request.method === "GET" && (url.pathname === "/livez" || url.pathname === "/readyz")) return health(response, url.pathname, options.notReady());
    const turnedAway = refusal(request, options.guarded);
    if (turnedAway !== undefined) return refuse(response, 403, INVALID_REQUEST, turnedAway);
    for (const [name, value] of Object.entries(corsHeaders(request, options.guarded))) response.setHeader(name, value);
    if (url.pathname !== PATH) return refuse(response, 404, INVALID_REQUEST, `there is only ${PATH} here`);
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    if (draining) return refuse(response, 503, INVALID_REQUEST, "the gateway is shutting down; another one takes the session over");
    const caller = callerOf(request.headers, options.identification);
    if (!caller) return refuse(response, 401, INVALID_REQUEST, "send the registry's bearer token in the Authorization header");
    const exchange = { request, response, caller, mode: url.searchParams.get("mode") };
    if (request.method === "GET") return sessions.get(exchange);
    if (request.method === "DELETE") return sessions.remove(exchange);
    if (request.method !== "POST") {
      response.setHeader("allow", "GET, POST, DELETE");
      return refuse(response, 405, INVALID_REQUEST, "only GET, POST and DELETE are answered");
    }
    if (!/^application\/json\b/i.test(request.headers["content-type"] ?? "")) return refuse(response, 415, INVALID_REQUEST, "the content type must be application/json");
    const body = await readBody(request);
    if (body.kind === "gone") return;
    if (body.kind === "too-large") {
      response.setHeader("connection", "close");
      return refuse(response, 413, INVALID_REQUEST, `a message may have ${body.limitBytes} bytes`);
    }
    if (body.kind === "not-json") return refuse(response, 400, PARSE_ERROR, "the body is not JSON in UTF-8");
    // A subscription has no end that a shutdown could wait for.
    if ((body.value as { method?: unknown } | null)?.method === "subscriptions/listen") under.delete(response);
    const legacy = await isLegacyRequest(await toWebRequest(request, body.value), body.value);
    if (legacy) return sessions.post(exchange, body.value);
    // There is no session whose toolset would be asked for, and the lists are the gateway's own.
    await options.knownCallers.require(caller);
    await serveModern(request, response as Parameters<typeof serveModern>[1], body.value);
  }

  const server = newServer(options.tls, (request, response) => {
    under.add(response);
    response.once("close", () => under.delete(response));
    answer(request, response).catch((error: unknown) => refuseFor(response, error, onBug));
  });
  await listening(server.server, options.address);
  const { port } = server.server.address() as AddressInfo;
  return {
    address: { host: options.address.host, port },
    close: async () => {
      draining = true;
      server.unfollow();
      const closed = new Promise<void>((resolve) => server.server.close(() => resolve()));
      await emptied(under, options.graceMs);
      await options.endCalls();
      sessions.close();
      await emptied(under, LAST_WORDS_MS);
      await modern.close();
      server.server.closeAllConnections();
      await closed;
    },
  };
}

const NOBODY = { token: undefined, upstream: undefined };

function counted(status: number, observer: GatewayObserver): void {
  const reason = refusedFor(status);
  if (reason) observer.refused(reason);
}

function health(response: ServerResponse, path: string, notReady: string): void {
  const ok = path === "/livez" || notReady === "";
  response.writeHead(ok ? 200 : 503, { "content-type": "application/json" });
  response.end(JSON.stringify(ok ? { status: path === "/livez" ? "live" : "ready" } : { status: "not ready", reasons: [notReady] }));
}

function newServer(tls: Tls | undefined, handler: (request: IncomingMessage, response: ServerResponse) => void): { server: Server; unfollow: () => void } {
  // A stream may be silent for longer than Node's own patience with a request; that patience is for reading it.
  const limits = { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 30_000 };
  if (!tls) return { server: createServer(limits, handler), unfollow: () => undefined };
  const server = createTlsServer({ ...tls.serverOptions, ...limits, requestCert: false }, handler);
  return { server, unfollow: tls.follow(server) };
}

function listening(server: Server, { host, port }: HttpOptions["address"]): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Resolves when no response is under way any more, or the grace is over. */
function emptied(under: ReadonlySet<ServerResponse>, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const over = setTimeout(done, graceMs);
    function done(): void {
      clearTimeout(over);
      resolve();
    }
    function look(): void {
      if (under.size === 0) done();
    }
    look();
    for (const response of under) response.once("close", () => setImmediate(look));
  });
}
