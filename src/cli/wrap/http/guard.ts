import type { IncomingMessage, ServerResponse } from "node:http";
import { isLoopbackHost } from "../../../client/target.js";
import { LIMITS } from "../../../domain/limits.js";

/** A request that is answered with an HTTP status and a JSON-RPC error without an id. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/**
 * A page in the user's browser can reach loopback under a name of its own (DNS rebinding). It cannot hide that name: it
 * stands in Host, and its origin in Origin.
 */
export function checkCaller(request: IncomingMessage, alsoAllowed: string | undefined): void {
  const allowed = (host: string): boolean => isLoopbackHost(host) || host === alsoAllowed;
  const host = hostOf(`http://${request.headers.host ?? ""}`);
  if (host === undefined || !allowed(host)) {
    throw new Refusal(403, -32000, `the Host header ${quote(request.headers.host)} is not this server's`);
  }
  const { origin } = request.headers;
  if (origin === undefined) return;
  const from = hostOf(origin);
  if (from === undefined || !allowed(from))
    throw new Refusal(403, -32000, `the origin ${quote(origin)} is not allowed`);
}

/** Reads the body, at most 4 MiB of it. */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let held = 0;
  for await (const chunk of request) {
    held += (chunk as Buffer).length;
    if (held > LIMITS.messageBytes) {
      throw new Refusal(413, -32600, `the body is larger than ${LIMITS.messageBytes} bytes`, { connection: "close" });
    }
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

export function sendJson(response: ServerResponse, status: number, body: Buffer | string, headers = {}): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const error = { code: refusal.code, message: refusal.message };
  sendJson(response, refusal.status, JSON.stringify({ jsonrpc: "2.0", error, id: null }), refusal.headers);
}

function hostOf(url: string): string | undefined {
  try {
    return new URL(url).hostname || undefined;
  } catch {
    return undefined;
  }
}

function quote(text: string | undefined): string {
  return text === undefined ? "(none)" : JSON.stringify(text.slice(0, 200));
}
