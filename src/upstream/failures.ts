/** Failures that the rest of this room decides on. Outside it they are plain UpstreamErrors. */
import { UpstreamError, type UpstreamErrorKind } from "../catalogue/upstream-port.js";
import { quoted } from "../domain/admission/text.js";

/** Where the fault happened, fit for logs: neither path, query nor credentials, any of which may hold a secret. */
export function place(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).origin : "an endpoint that is no URL";
}

/** The server answered with a JSON-RPC error. */
export class RpcFailure extends UpstreamError {
  constructor(
    message: string,
    readonly code: number,
    readonly data: unknown,
    /** The server's own words, whole. */
    readonly said: string,
  ) {
    super("rpc", message);
  }
}

/** The server answered with an HTTP status that is no success. `rpc` is the JSON-RPC error in its body, if there is one. */
export class HttpFailure extends UpstreamError {
  constructor(
    message: string,
    readonly status: number,
    readonly rpc: { readonly code: number; readonly message: string; readonly data: unknown } | undefined,
    retryAfterMs?: number,
  ) {
    super(kindOf(status, rpc !== undefined), message, undefined, retryAfterMs);
  }
}

function kindOf(status: number, hasRpcError: boolean): UpstreamErrorKind {
  if (status === 401 || status === 403) return "auth";
  if (status === 429) return "throttled";
  if (status >= 502 && status <= 504) return "away";
  return hasRpcError ? "rpc" : "http";
}

/** `Retry-After` is seconds, or a date, which is measured against the answer's own `Date`; anything else says nothing. */
export function retryAfterOf(header: string | undefined, date: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const aheadMs = Date.parse(text) - Date.parse(date ?? "");
  return Number.isNaN(aheadMs) ? undefined : Math.max(0, aheadMs);
}

/** The JSON-RPC code of a failure, whichever status carried it. */
export function rpcCode(error: unknown): number | undefined {
  if (error instanceof RpcFailure) return error.code;
  return error instanceof HttpFailure ? error.rpc?.code : undefined;
}

/** The JSON-RPC error of a failure as the server sent it, whichever status carried it. */
export function rpcError(error: unknown): { readonly code: number; readonly message: string; readonly data: unknown } | undefined {
  if (error instanceof RpcFailure) return { code: error.code, message: error.said, data: error.data };
  return error instanceof HttpFailure ? error.rpc : undefined;
}

export function rpcData(error: unknown): unknown {
  if (error instanceof RpcFailure) return error.data;
  return error instanceof HttpFailure ? error.rpc?.data : undefined;
}

export function timedOut(endpoint: string, what: string, cause?: unknown): UpstreamError {
  return new UpstreamError("timeout", `${place(endpoint)} did not answer ${what} in time`, cause);
}

/** A server's own words inside one of our sentences. */
export function words(text: string): string {
  return quoted(text, 200);
}
