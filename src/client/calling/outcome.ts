import { ErrorKind } from "../../gen/toolcrib/v1/gate_service_pb.js";

/** How a call failed, as ReportOutcome names it. */
export type ErrorKindName = Exclude<keyof typeof ErrorKind, "UNSPECIFIED">;

/** What an MCP server answers to `tools/call`, as its client gives it. */
export interface McpResult {
  readonly content?: readonly unknown[];
  readonly structuredContent?: unknown;
  /** The tool says that it failed. */
  readonly isError?: boolean;
  readonly [key: string]: unknown;
}

/** What came of a call. */
export type CallOutcome =
  /** The server answered. `success` is false where the tool says that it failed; `result` then says why. */
  | {
      readonly kind: "answered";
      readonly toolId: string;
      readonly success: boolean;
      readonly result: McpResult;
      readonly latencyMs: number;
      readonly errorKind?: ErrorKindName;
    }
  /** There is no answer; `error.message` is fit for the model. The call may have been carried out, except where it was UNREACHABLE. */
  | {
      readonly kind: "failed";
      readonly toolId: string;
      readonly success: false;
      readonly error: Error;
      readonly errorKind: ErrorKindName;
      readonly latencyMs: number;
    };

export function answered(toolId: string, result: McpResult, latencyMs: number): CallOutcome {
  const success = result.isError !== true;
  return { kind: "answered", toolId, success, result, latencyMs, ...(!success && { errorKind: "TOOL_ERROR" as const }) };
}

/** JSON-RPC: the arguments, or the tool's name, are not what the server takes. */
const INVALID_PARAMS = -32602;
/** The SDK of version 1: the transport was closed. */
const CONNECTION_CLOSED = -32000;

const KINDS: Readonly<Record<string, ErrorKindName>> = {
  REQUEST_TIMEOUT: "TIMEOUT",
  TimeoutError: "TIMEOUT",
  AbortError: "CANCELLED",
  UnauthorizedError: "UNAUTHORIZED",
};

/**
 * How a call failed, from what an MCP client threw: by the names and codes that the official SDKs, fetch and Node use. JSON-RPC
 * errors are answers, so what is neither of them is a server that was not reached.
 */
export function errorKindOf(error: unknown): ErrorKindName {
  const { name = "", code, status, data } = (error ?? {}) as { name?: string; code?: unknown; status?: unknown; data?: { status?: unknown } };
  const known = KINDS[String(code)] ?? KINDS[name];
  if (known) return known;
  const http = status ?? data?.status ?? code;
  if (http === 401 || http === 403) return "UNAUTHORIZED";
  // The SDK of version 1 says time-outs by a JSON-RPC code of its own.
  if (code === -32001) return "TIMEOUT";
  if (code === INVALID_PARAMS) return "INVALID_ARGUMENTS";
  const answer = typeof code === "number" && code !== CONNECTION_CLOSED && !(code >= 100 && code < 600);
  return answer ? "TOOL_ERROR" : "UNREACHABLE";
}

/** Whether the call certainly was not carried out, because of what a restarted server leaves behind: it may be sent again. */
export function wasNotSent(error: unknown): boolean {
  const { code, status, data, cause } = (error ?? {}) as { code?: unknown; status?: unknown; data?: { status?: unknown }; cause?: unknown };
  // 404: the session is not known any more. ECONNREFUSED: nobody listens there.
  if ([status, data?.status, code].includes(404) || code === "ECONNREFUSED") return true;
  return cause !== undefined && wasNotSent(cause);
}
