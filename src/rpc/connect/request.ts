/** One request as this listener reads it, before any protocol library sees it: form, deadline, body. */
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { messageTooLarge } from "../sizes.js";

/** How a request and its answer are written. */
export interface Form {
  readonly protocol: "connect" | "connect-stream" | "grpc-web";
  readonly json: boolean;
  /** In its canonical spelling. */
  readonly contentType: string;
}

const FORMS: Readonly<Record<string, Form>> = Object.fromEntries(
  [
    { protocol: "connect", json: true, contentType: "application/json" } as const,
    { protocol: "connect", json: false, contentType: "application/proto" } as const,
    { protocol: "connect-stream", json: true, contentType: "application/connect+json" } as const,
    { protocol: "connect-stream", json: false, contentType: "application/connect+proto" } as const,
    { protocol: "grpc-web", json: true, contentType: "application/grpc-web+json" } as const,
    { protocol: "grpc-web", json: false, contentType: "application/grpc-web+proto" } as const,
  ].map((form) => [form.contentType, form]),
);

/** Undefined when it is none that is spoken here. */
export function formOf(contentType: string | undefined): Form | undefined {
  const match = /^\s*([^;\s]+)\s*(?:;\s*charset="?utf-?8"?\s*)?$/i.exec(contentType ?? "");
  const name = match?.[1]?.toLowerCase() ?? "";
  return FORMS[name === "application/grpc-web" ? "application/grpc-web+proto" : name];
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/** Time that the caller gives the call, ms; undefined when it set no deadline. Throws MALFORMED_MESSAGE. */
export function timeoutOf(form: Form, headers: IncomingHttpHeaders): number | undefined {
  const name = form.protocol === "grpc-web" ? "grpc-timeout" : "connect-timeout-ms";
  const text = headers[name];
  if (text === undefined) return undefined;
  const match = (form.protocol === "grpc-web" ? /^(\d{1,8})([HMSmun])$/ : /^(\d{1,10})$/).exec(String(text));
  if (!match) throw malformed(`${name} is ${JSON.stringify(String(text).slice(0, 40))}, which is no timeout`);
  return Number(match[1]) * (UNIT_MS[match[2] ?? "m"] ?? 1);
}

/** Flags and length before each message. */
const ENVELOPE_BYTES = 5;
const COMPRESSED = 1;

/** The one message of a request, unpacked and at most LIMITS.messageBytes. */
export async function readMessage(request: IncomingMessage, form: Form): Promise<Buffer> {
  if (form.protocol === "connect") {
    const body = await readBody(request, LIMITS.messageBytes, 0);
    return unpack(body, String(request.headers["content-encoding"] ?? "identity"));
  }
  const body = await readBody(request, LIMITS.messageBytes + ENVELOPE_BYTES, ENVELOPE_BYTES);
  if (body.byteLength < ENVELOPE_BYTES) throw malformed("the body holds no enveloped message");
  const length = body.readUInt32BE(1);
  if (length > LIMITS.messageBytes) throw messageTooLarge("message", length);
  if (body.byteLength !== ENVELOPE_BYTES + length)
    throw malformed(`the body must hold one message of ${length} bytes, and holds ${body.byteLength - ENVELOPE_BYTES}`);
  const flags = body.readUInt8(0);
  const message = body.subarray(ENVELOPE_BYTES);
  if (flags === 0) return message;
  if (flags !== COMPRESSED)
    throw malformed(`the message's envelope has flags ${flags}, which mean nothing in a request`);
  const name = form.protocol === "grpc-web" ? "grpc-encoding" : "connect-content-encoding";
  return unpack(message, String(request.headers[name] ?? "identity"));
}

/** `beside`: how many of the bytes are not the message's. */
function readBody(request: IncomingMessage, limit: number, beside: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let total = 0;
    const settle = (): void => {
      request.off("data", onData).off("end", onEnd).off("close", onClose);
      // The rest is read and dropped: a caller that is still sending would not hear the answer.
      request.resume();
    };
    const refuse = (actual: number | undefined): void => {
      settle();
      reject(messageTooLarge("message", actual));
    };
    const onData = (chunk: Buffer): void => {
      total += chunk.byteLength;
      if (total > limit) refuse(undefined);
      else chunks.push(chunk);
    };
    const onEnd = (): void => {
      settle();
      resolve(Buffer.concat(chunks));
    };
    const onClose = (): void => {
      settle();
      reject(new Fault("MALFORMED_MESSAGE", "the request ended before its body did"));
    };
    const announced = Number(request.headers["content-length"] ?? 0);
    if (announced > limit) return refuse(announced - beside);
    request.on("data", onData).once("end", onEnd).once("close", onClose);
  });
}

const gunzipAsync = promisify(gunzip);

async function unpack(bytes: Buffer, encoding: string): Promise<Buffer> {
  if (encoding === "identity") return bytes;
  if (encoding !== "gzip")
    throw malformed(`${JSON.stringify(encoding.slice(0, 40))} is no compression that is read here: use gzip or none`);
  try {
    return await gunzipAsync(bytes, { maxOutputLength: LIMITS.messageBytes });
  } catch (cause) {
    // Of a compressed message nobody knows how large it would become.
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw messageTooLarge("message", undefined);
    throw malformed("the message is not gzip, as its header says", cause);
  }
}

function malformed(why: string, cause?: unknown): Fault {
  return new Fault("MALFORMED_MESSAGE", `the call is not well-formed: ${why}`, { cause });
}
