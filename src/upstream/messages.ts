/** JSON-RPC messages with the text they came in. */
import { UpstreamError } from "../catalogue/upstream-port.js";
import { place } from "./failures.js";
import { elements, members } from "./spans.js";

/** One message: `text` is exactly what was sent, `value` its parsed form (numbers beyond a double are rounded there). */
export interface RpcMessage {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A result: `text` holds exactly the bytes of the result object. */
export interface RpcResult {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Messages of one batch: one request goes out at a time, so a few notices and one answer can come back. */
const BATCH = 1_000;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Messages of one body or event: one object, or a batch of them. Throws UpstreamError. */
export function readMessages(endpoint: string, bytes: Uint8Array): RpcMessage[] {
  const text = decode(endpoint, bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UpstreamError("protocol", `${place(endpoint)} answered with invalid JSON`, error);
  }
  if (isRecord(value)) return [{ text, value }];
  if (!Array.isArray(value) || !value.every(isRecord)) {
    throw new UpstreamError("protocol", `${place(endpoint)} answered with JSON that is no JSON-RPC message`);
  }
  if (value.length > BATCH) {
    const text = `${place(endpoint)} answered with a batch of ${value.length} messages, the limit is ${BATCH}`;
    throw new UpstreamError("too-large", text);
  }
  return elements(text, 0).map(({ start, end }, at) => ({ text: text.slice(start, end), value: value[at] ?? {} }));
}

/** The `result` of a response, undefined if it has none. */
export function resultOf({ text, value }: RpcMessage): RpcResult | undefined {
  const span = members(text, 0).get("result");
  if (span === undefined || !isRecord(value["result"])) return undefined;
  return { text: text.slice(span.start, span.end), value: value["result"] };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decode(endpoint: string, bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch (error) {
    throw new UpstreamError("protocol", `${place(endpoint)} answered with bytes that are not UTF-8`, error);
  }
}
