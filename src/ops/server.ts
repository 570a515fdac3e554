/** The listener for operators and orchestrators: /livez, /readyz, /metrics. Plain HTTP, read-only, never the public door. */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import type { Registry } from "prom-client";
import type { Logger } from "../catalogue/ports.js";

/** Why this replica should not get traffic; empty when it should. One sentence each. */
export type ReadyProbe = () => readonly string[];

export interface OpsOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly ready: ReadyProbe;
  readonly metrics: Registry;
  readonly log: Logger;
  /** Plain text if not given. Callers show no certificate here: nothing can be changed. */
  readonly tls?: OpsTls | undefined;
  /** The setting that names the address, for messages. */
  readonly setting?: string;
}

export interface OpsTls {
  readonly serverOptions: SecureContextOptions;
  /** Keeps the server's certificate current; answers what stops that. */
  follow(server: { setSecureContext(context: SecureContextOptions): void }): () => void;
}

export interface OpsServer {
  /** As bound: the port is never 0. */
  readonly address: { readonly host: string; readonly port: number };
  /** Stops listening and ends idle connections at once; resolves when answers under way are sent, at most a second later. */
  close(): Promise<void>;
}

/** How long an answer under way may take once the listener closes: a scrape takes milliseconds. */
const CLOSE_MS = 1_000;

/** Rejects with one clear sentence when the address cannot be listened on. */
export async function startOps(options: OpsOptions): Promise<OpsServer> {
  const { server, unfollow } = newServer(options.tls, (request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      options.log.error({ err: error, path: request.url }, "the ops listener could not answer");
      if (!response.headersSent) send(response, 500, { status: "error" });
      else response.destroy();
    });
  });
  server.on("clientError", (_error, socket) => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  });
  await listen(server, options);
  const bound = server.address() as AddressInfo;
  return {
    address: { host: options.address.host, port: bound.port },
    close: () => {
      unfollow();
      return closeServer(server);
    },
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

function newServer(
  tls: OpsTls | undefined,
  handler: Handler,
): { readonly server: Server; readonly unfollow: () => void } {
  const limits = { requestTimeout: 10_000, headersTimeout: 10_000 };
  if (!tls) return { server: createServer(limits, handler), unfollow: () => undefined };
  const server = createTlsServer({ ...tls.serverOptions, ...limits, requestCert: false }, handler);
  return { server, unfollow: tls.follow(server) };
}

async function answer(options: OpsOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? "/").split("?", 1)[0];
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return send(response, 405, { status: "method not allowed" });
  }
  switch (path) {
    case "/livez":
      return send(response, 200, { status: "live" });
    case "/readyz": {
      const reasons = options.ready();
      return reasons.length === 0
        ? send(response, 200, { status: "ready", reasons })
        : send(response, 503, { status: "not ready", reasons });
    }
    case "/metrics":
      response.setHeader("content-type", options.metrics.contentType);
      response.end(await options.metrics.metrics());
      return;
    default:
      return send(response, 404, { status: "not found", paths: ["/livez", "/readyz", "/metrics"] });
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(`${JSON.stringify(body)}\n`);
}

function listen(server: Server, { address, setting = "--ops-address (TOOLCRIB_OPS_ADDRESS)" }: OpsOptions): Promise<void> {
  const where = `${address.host}:${address.port}`;
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(new Error(refusal(where, error, setting), { cause: error })));
    server.listen({ host: address.host, port: address.port }, () => resolve());
  });
}

function refusal(where: string, error: NodeJS.ErrnoException, setting: string): string {
  const hint = `choose another with ${setting}`;
  if (error.code === "EADDRINUSE") return `The ops address ${where} is taken by another program: ${hint}.`;
  return `The ops address ${where} cannot be listened on (${error.code ?? error.message}): ${hint}.`;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    server.close(() => {
      clearTimeout(timer);
      resolve();
    });
    server.closeIdleConnections();
  });
}
