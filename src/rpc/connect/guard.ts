/** Which requests are let in at all: what a web page could make a browser send is judged here. */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { Fault } from "../../domain/fault.js";
import { HTTP } from "./limits.js";

export interface GuardOptions {
  /** Host that is listened on. */
  readonly host: string;
  /** Whether callers must say who they are: then a page without their credential gets nowhere. */
  readonly identified: boolean;
  /** Origins whose pages may call, such as `https://app.example`; `*` alone: all, without credentials. */
  readonly corsOrigins: readonly string[];
}

export interface Guard {
  /** Headers for the answer. Throws FORBIDDEN. */
  admit(request: IncomingMessage): OutgoingHttpHeaders;
  /** The answer to a preflight of an origin that was admitted. */
  preflight(): OutgoingHttpHeaders;
}

const REQUEST_HEADERS = [
  "content-type",
  "connect-protocol-version",
  "connect-timeout-ms",
  "connect-accept-encoding",
  "connect-content-encoding",
  "grpc-timeout",
  "x-grpc-web",
  "x-user-agent",
];
const ANSWER_HEADERS = "grpc-status, grpc-message, grpc-status-details-bin, toolcrib-stale";

export function createGuard(options: GuardOptions): Guard {
  const all = options.corsOrigins.includes("*");
  const origins = new Set(options.corsOrigins);
  const local = isLocal(options.host) && !options.identified;

  const admitOrigin = (request: IncomingMessage): OutgoingHttpHeaders => {
    const { origin, authorization, cookie } = request.headers;
    if (origin === undefined || isSame(origin, request.headers.host)) return {};
    if (!all && origins.has(origin))
      return {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-expose-headers": ANSWER_HEADERS,
      };
    if (!all)
      throw forbidden(
        `pages of ${shown(origin)} may not call this registry: name that origin in --cors-origins (TOOLCRIB_CORS_ORIGINS)`,
      );
    if (authorization !== undefined || cookie !== undefined)
      throw forbidden(
        `pages of ${shown(origin)} may call only without credentials: name that origin in --cors-origins (TOOLCRIB_CORS_ORIGINS) instead of *`,
      );
    return { "access-control-allow-origin": "*", "access-control-expose-headers": ANSWER_HEADERS };
  };

  return {
    admit(request) {
      const host = request.headers.host ?? "";
      // A page can point a name of its own at this machine, and is then of the same origin as what listens here.
      if (local && !isLocal(hostOf(host)))
        throw forbidden(
          `the name ${shown(host)} is not this machine's: a registry on loopback without identity is called as localhost or 127.0.0.1`,
        );
      const headers = admitOrigin(request);
      return options.corsOrigins.length > 0 ? { ...headers, vary: "origin" } : headers;
    },
    preflight: () => ({
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": (all ? REQUEST_HEADERS : [...REQUEST_HEADERS, "authorization"]).join(", "),
      "access-control-max-age": String(HTTP.preflightSeconds),
    }),
  };
}

/** Whether a host name or address can only mean this machine. */
export function isLocal(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  return name === "localhost" || name.endsWith(".localhost") || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}

function hostOf(authority: string): string {
  return authority.replace(/:\d*$/, "");
}

function isSame(origin: string, host: string | undefined): boolean {
  return origin === `http://${host}` || origin === `https://${host}`;
}

function forbidden(message: string): Fault {
  return new Fault("FORBIDDEN", message);
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
