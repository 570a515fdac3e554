/** What a person finds who opens the listener's address: what this is, and a command that works. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { RegistryService } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { PATHS } from "../services/index.js";
import { pathOf } from "../services/method.js";

export interface WelcomeOptions {
  readonly version: string;
  /** host:port as bound. */
  readonly address: string;
}

const EXAMPLE = pathOf(RegistryService.method.getStubs);

export function welcome(
  { version, address }: WelcomeOptions,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const example = `curl -s -H 'content-type: application/json' -d '{}' http://${address}${EXAMPLE}`;
  const about = "Toolcrib: the central tool registry for AI agents. This is its HTTP listener: Connect and gRPC-Web.";
  const methods = PATHS.map((path) => `POST ${path}`);
  if (/\btext\/html\b/.test(request.headers.accept ?? "")) {
    const page = [
      `<!doctype html><meta charset="utf-8"><title>Toolcrib ${version}</title>`,
      `<h1>Toolcrib ${version}</h1><p>${about}</p><p>Try:</p><pre>${example}</pre>`,
      `<ul>${methods.map((m) => `<li><code>${m}</code></li>`).join("")}</ul>`,
    ];
    return send(request, response, "text/html; charset=utf-8", `${page.join("\n")}\n`);
  }
  const body = { name: "toolcrib", version, about, example, methods };
  send(request, response, "application/json", `${JSON.stringify(body, null, 2)}\n`);
}

function send(request: IncomingMessage, response: ServerResponse, type: string, text: string): void {
  response.writeHead(200, {
    "content-type": type,
    "content-length": Buffer.byteLength(text),
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    vary: "accept, origin",
  });
  response.end(request.method === "HEAD" ? undefined : text);
}
