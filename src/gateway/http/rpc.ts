/** JSON-RPC messages as they come over HTTP, and answers as they go out. */
import { RpcError, type Result } from "../words.js";

export type Id = string | number;

export type Message =
  | { readonly kind: "request"; readonly id: Id; readonly method: string; readonly params: Params }
  | { readonly kind: "notification"; readonly method: string; readonly params: Params }
  /** An answer to something that the gateway asked; it asks nothing. */
  | { readonly kind: "response" }
  | { readonly kind: "invalid"; readonly id: Id | null; readonly why: string };

export type Params = Readonly<Record<string, unknown>>;

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const INTERNAL = -32603;

/** What one JSON value is as a message. */
export function readMessage(value: unknown): Message {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { kind: "invalid", id: null, why: "a message must be an object" };
  const { jsonrpc, id, method, params = {}, result, error } = value as Record<string, unknown>;
  const known = typeof id === "string" || (typeof id === "number" && Number.isFinite(id)) ? id : null;
  if (jsonrpc !== "2.0") return { kind: "invalid", id: known, why: 'jsonrpc must be "2.0"' };
  if (method === undefined && (result !== undefined || error !== undefined)) return { kind: "response" };
  if (typeof method !== "string") return { kind: "invalid", id: known, why: "method must be a text" };
  if (typeof params !== "object" || params === null || Array.isArray(params)) return { kind: "invalid", id: known, why: "params must be an object" };
  if (id === undefined) return { kind: "notification", method, params: params as Params };
  if (known === null) return { kind: "invalid", id: null, why: "id must be a text or a number" };
  return { kind: "request", id: known, method, params: params as Params };
}

export function resultMessage(id: Id, result: Result): string {
  const text = result.kind === "text" ? result.text : JSON.stringify(result.value);
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text}}`;
}

export function errorMessage(id: Id | null, { code, message, data }: RpcError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } });
}

export function notificationMessage(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}
