/** What a request shows of its caller. */
import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../words.js";

/** `caller`: the registry is shown the caller's token, and there must be one. `own`: the gateway speaks for everybody. */
export type Identification = "caller" | "own";

/** The header for a credential of the caller's own, for the servers behind the gateway. */
const UPSTREAM = "toolcrib-upstream-authorization";

/** Undefined where a token is needed and there is none. */
export function callerOf(headers: IncomingHttpHeaders | Headers, identification: Identification): Caller | undefined {
  const value = header(headers, UPSTREAM);
  const upstream = value === undefined || value === "" ? undefined : { value };
  if (identification === "own") return { token: undefined, upstream };
  const [, token] = /^Bearer +([A-Za-z0-9._~+/-]{1,8192}=*) *$/i.exec(header(headers, "authorization") ?? "") ?? [];
  return token === undefined ? undefined : { token, upstream };
}

function header(headers: IncomingHttpHeaders | Headers, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
