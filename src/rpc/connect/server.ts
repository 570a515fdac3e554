/** The HTTP listener: Connect (JSON and binary) and gRPC-Web over HTTP/1.1, for browsers, curl and everyone without gRPC. */
import http, { type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import https, { type Server as HttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Logger } from "../../catalogue/ports.js";
import type { Fault } from "../../domain/fault.js";
import type { Door } from "../identity/door.js";
import { RPC } from "../limits.js";
import type { RpcMetrics } from "../observe.js";
import { OpenStreams } from "../open-streams.js";
import { HttpConnections } from "./connections.js";
import type { Tls } from "../tls.js";
import { createDispatcher } from "./dispatch.js";
import { createGuard } from "./guard.js";
import { HTTP } from "./limits.js";

export interface HttpOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly door: Door;
  /** Plain text if not given. */
  readonly tls?: Tls | undefined;
  readonly log: Logger;
  readonly metrics: RpcMetrics;
  readonly version: string;
  /** Whether callers must say who they are. */
  readonly identified: boolean;
  /** As GuardOptions. */
  readonly corsOrigins: readonly string[];
  /** Why calls of this path are refused at the moment, before their message is read; none are if not given. */
  readonly refusal?: (path: string) => Fault | undefined;
  /** How long `close` waits for calls under way, ms. */
  readonly graceMs: number;
  /** For unary callers that set no deadline, ms; RPC.unaryDeadlineMs if not given. */
  readonly unaryDeadlineMs?: number;
  /** For watchers that do not read, ms; RPC.lingerMs if not given. */
  readonly lingerMs?: number;
}

export interface HttpServer {
  /** As bound: the port is never 0. */
  readonly address: { readonly host: string; readonly port: number };
  /** Open watches end with DRAINING, new calls are refused with it. Repeatable. */
  drain(): void;
  /** Drains, waits for calls under way at most the grace, and ends every connection. */
  close(): Promise<void>;
}

/** Rejects with one clear sentence when the address cannot be listened on. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { log, graceMs } = options;
  const streams = new OpenStreams();
  const connections = new HttpConnections();
  let draining = false;
  const server = createServer(options.tls, {
    maxHeaderSize: HTTP.headerBytes,
    headersTimeout: HTTP.headersMs,
    requestTimeout: HTTP.requestMs,
    keepAliveTimeout: HTTP.keepAliveMs,
    keepAlive: true,
    keepAliveInitialDelay: HTTP.tcpKeepAliveMs,
  });
  options.tls?.follow(server as HttpsServer);
  connections.watch(server, options.tls !== undefined);
  refuseBrokenHttp(server, log);
  await listen(server, options.address);
  const address = { host: options.address.host, port: (server.address() as AddressInfo).port };
  const dispatch = createDispatcher({
    ...options,
    address,
    streams,
    guard: createGuard({ ...options, host: address.host }),
    isDraining: () => draining,
    defaultDeadlineMs: options.unaryDeadlineMs ?? RPC.unaryDeadlineMs,
    lingerMs: options.lingerMs ?? RPC.lingerMs,
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    connections.busy(response);
    if (draining) response.setHeader("connection", "close");
    dispatch(request, response);
  });
  const drain = (): void => {
    draining = true;
    streams.endAll();
  };
  return {
    address,
    drain,
    close: () => {
      drain();
      return shutDown(server, connections, graceMs);
    },
  };
}

function createServer(tls: Tls | undefined, options: ServerOptions): Server {
  if (!tls) return http.createServer(options);
  return https.createServer({ ...options, ...tls.serverOptions, handshakeTimeout: HTTP.headersMs });
}

function listen(server: Server, { host, port }: HttpOptions["address"]): Promise<void> {
  const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(new Error(refusal(where, error), { cause: error })));
    server.listen({ host, port }, () => resolve());
  });
}

function refusal(where: string, error: NodeJS.ErrnoException): string {
  const hint = "choose another with --http-address (TOOLCRIB_HTTP_ADDRESS), or `off` for none";
  if (error.code === "EADDRINUSE") return `The HTTP address ${where} is taken by another program: ${hint}.`;
  return `The HTTP address ${where} cannot be listened on (${error.code ?? error.message}): ${hint}.`;
}

const BROKEN: Readonly<Record<string, readonly [status: string, why: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", `the headers are larger than ${HTTP.headerBytes} bytes`],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request took too long to arrive"],
};

/** What is no HTTP, too large or too slow to become a request is answered here, because nobody else hears of it. */
function refuseBrokenHttp(server: Server, log: Logger): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const { remoteAddress, remotePort } = socket as { remoteAddress?: string; remotePort?: number };
    if (error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
    const [status, why] = BROKEN[error.code ?? ""] ?? ["400 Bad Request", "the request is no HTTP"];
    log.info(
      { peer: `${remoteAddress}:${remotePort}`, http_status: Number(status.slice(0, 3)) },
      `a call was refused: ${why}`,
    );
    const body = `${JSON.stringify({ code: "invalid_argument", message: why })}\n`;
    socket.end(
      `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
    );
  });
}

/** Calls under way have until the grace is over; connections without one end at once. */
function shutDown(server: Server, connections: HttpConnections, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => connections.destroyAll(), graceMs);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    connections.closeIdle();
  });
}
