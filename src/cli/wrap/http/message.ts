import { membersOf, slice } from "../json-span.js";
import { Refusal } from "./guard.js";

/** A JSON-RPC message as it came, with the few things that decide where it goes. */
export interface Incoming {
  readonly bytes: Buffer;
  readonly kind: "request" | "notification" | "response";
  /** Empty for a response. */
  readonly method: string;
  /** The id as JSON text; empty without one. */
  readonly id: Buffer;
  /** The protocol revision that a request of the 2026-07-28 era names in its `_meta`; empty in the session era. */
  readonly revision: string;
  readonly progressToken: boolean;
}

const REVISION_KEY = "io.modelcontextprotocol/protocolVersion";

/** Throws Refusal for what is no single JSON-RPC message. */
export function readMessage(bytes: Buffer): Incoming {
  const value = parse(bytes);
  if (Array.isArray(value)) throw new Refusal(400, -32600, "batches are not supported: send one message a request");
  if (!isRecord(value) || value["jsonrpc"] !== "2.0")
    throw new Refusal(400, -32600, "the body is no JSON-RPC 2.0 message");
  const idSpan = membersOf(bytes).get("id");
  const id = idSpan ? slice(bytes, idSpan) : Buffer.alloc(0);
  const { method } = value;
  const meta = isRecord(value["params"]) ? value["params"]["_meta"] : undefined;
  const revision = isRecord(meta) ? meta[REVISION_KEY] : undefined;
  if (typeof method !== "string" && !("result" in value) && !("error" in value)) {
    throw new Refusal(400, -32600, "the message has neither method nor result nor error");
  }
  if (typeof method === "string" && idSpan && !/^["0-9-]/.test(id.toString("latin1", 0, 1))) {
    throw new Refusal(400, -32600, "the id of a request is a string or a number");
  }
  return {
    bytes,
    kind: typeof method !== "string" ? "response" : idSpan ? "request" : "notification",
    method: typeof method === "string" ? method : "",
    id,
    revision: typeof revision === "string" ? revision : "",
    progressToken: isRecord(meta) && meta["progressToken"] !== undefined,
  };
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal(400, -32700, "the body is not JSON in UTF-8");
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
