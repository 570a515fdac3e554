/** Who may knock at all: against web pages of elsewhere that reach a gateway of this machine or network (DNS rebinding). */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { isLoopbackHost } from "../../client/target.js";

export interface Guarded {
  /** Host names by which clients may reach it, beside those of this machine and addresses. */
  readonly hosts: readonly string[];
  /** Origins whose pages may use it; `*` stands alone. */
  readonly origins: readonly string[];
}

/** Undefined for a request that may go on, else a sentence for a 403. */
export function refusal({ headers }: IncomingMessage, { hosts, origins }: Guarded): string | undefined {
  const host = hostOf(headers.host ?? "");
  if (host === undefined) return "The Host header is missing, or it is none.";
  if (!isAddress(host) && !isLoopbackHost(host) && !hosts.includes(host))
    return `The Host header names ${host}, which is not a name of this gateway: add it with --gateway-hosts (TOOLCRIB_GATEWAY_HOSTS).`;
  const { origin } = headers;
  if (origin === undefined || origins.includes("*") || origins.includes(origin)) return undefined;
  if (isLocalPage(origin) && isLoopbackHost(host)) return undefined;
  return `Pages of ${origin.slice(0, 200)} may not use this gateway: add their origin with --gateway-origins (TOOLCRIB_GATEWAY_ORIGINS).`;
}

/** A name that was made to mean this machine is none of these, whatever it resolves to. */
function isAddress(host: string): boolean {
  return isIP(host.replace(/^\[|\]$/g, "")) !== 0;
}

function isLocalPage(origin: string): boolean {
  try {
    return isLoopbackHost(new URL(origin).hostname);
  } catch {
    return false;
  }
}

function hostOf(header: string): string | undefined {
  try {
    return header === "" ? undefined : new URL(`http://${header}`).hostname.toLowerCase();
  } catch {
    return undefined;
  }
}

/** Headers for pages that may use it; none for others. */
export function corsHeaders({ headers }: IncomingMessage, { origins }: Guarded): Record<string, string> {
  const { origin } = headers;
  if (origin === undefined) return {};
  const allowed = origins.includes("*") ? "*" : origins.includes(origin) || isLocalPage(origin) ? origin : undefined;
  if (allowed === undefined) return {};
  return {
    "access-control-allow-origin": allowed,
    "access-control-expose-headers": "mcp-session-id, www-authenticate",
    "access-control-allow-headers":
      "content-type, accept, authorization, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, toolcrib-upstream-authorization",
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-max-age": "600",
    vary: "origin",
  };
}
