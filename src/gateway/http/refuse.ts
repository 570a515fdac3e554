/** Requests that get no result. */
import type { ServerResponse } from "node:http";
import { explainRegistry, isAway, isUnknownCaller } from "../away.js";
import { RegistryError } from "../../client/index.js";
import { SessionGone } from "../seat.js";
import { RpcError } from "../words.js";
import { errorMessage, type Id, INTERNAL, INVALID_REQUEST } from "./rpc.js";

/** What MCP's own servers answer for a session that is not there. */
const SESSION_NOT_FOUND = -32001;

const CHALLENGE = 'Bearer realm="toolcrib"';

/** An HTTP status, and the reason as JSON-RPC has it. */
export function refuse(response: ServerResponse, status: number, code: number, why: string, id: Id | null = null): void {
  if (response.headersSent) return void response.destroy();
  if (status === 401 && !response.hasHeader("www-authenticate")) response.setHeader("www-authenticate", CHALLENGE);
  response.writeHead(status, { "content-type": "application/json" });
  response.end(errorMessage(id, new RpcError(code, why)));
}

/** A whole request failed before it had an answer. */
export function refuseFor(response: ServerResponse, error: unknown, onBug: (error: unknown) => void): void {
  if (error instanceof SessionGone) return refuse(response, 404, SESSION_NOT_FOUND, error.message);
  if (isUnknownCaller(error)) {
    if (!response.headersSent) response.setHeader("www-authenticate", `${CHALLENGE}, error="invalid_token"`);
    return refuse(response, 401, INVALID_REQUEST, explainRegistry(error));
  }
  if (error instanceof RegistryError) return refuse(response, isAway(error) ? 503 : 403, INTERNAL, explainRegistry(error));
  onBug(error);
  refuse(response, 500, INTERNAL, "the gateway failed; its log says more");
}

/** The JSON-RPC error for one request of several. */
export function failed(error: unknown, onBug: (error: unknown) => void): RpcError {
  if (error instanceof RpcError) return error;
  if (error instanceof SessionGone) return new RpcError(SESSION_NOT_FOUND, error.message);
  if (error instanceof RegistryError) return new RpcError(INTERNAL, explainRegistry(error));
  onBug(error);
  return new RpcError(INTERNAL, "the gateway failed; its log says more");
}
