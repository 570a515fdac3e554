/**
 * The few places that reach into grpc-js where it has no door. Its version is pinned, and each of these has a test that
 * fails when an update moves the furniture.
 */
import {
  type Http2Server,
  type Http2Stream,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  constants,
} from "node:http2";
import type { Metadata, Server } from "@grpc/grpc-js";

/** What grpc-js keeps for one method. */
export interface HandlerEntry {
  readonly func: (call: unknown) => void;
  readonly serialize: (value: Buffer) => Buffer;
  readonly deserialize: (value: Buffer) => Buffer;
  readonly type: "bidi";
  readonly path: string;
}

/**
 * Gives calls of methods that do not exist a handler too: grpc-js answers them itself, without details, without
 * interceptors, and so without log line and metric.
 */
export function handleUnknownMethods(server: Server, handlerFor: (path: string) => HandlerEntry): void {
  const handlers = Reflect.get(server, "handlers") as Map<string, unknown>;
  const known = handlers.get.bind(handlers);
  handlers.get = (path: string) => known(path) ?? handlerFor(path);
}

type ContentTypeCheck = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => boolean;

/** grpc-js answers a request that is not gRPC with HTTP 415 before any interceptor, and tells nobody. */
export function noticeForeignRequests(server: Server, notice: (contentType: string, peer: string) => void): void {
  const verify = (Reflect.get(server, "_verifyContentType") as ContentTypeCheck).bind(server);
  const noticing: ContentTypeCheck = (stream, headers) => {
    // Who asks is looked up before a refusal ends the stream, but not for every good call: Node answers it through a proxy.
    const foreign = !headers["content-type"]?.startsWith("application/grpc");
    const { remoteAddress, remotePort } = (foreign && stream.session?.socket) || {};
    const isGrpc = verify(stream, headers);
    if (!isGrpc)
      notice(headers["content-type"] ?? "", remoteAddress === undefined ? "unknown" : `${remoteAddress}:${remotePort}`);
    return isGrpc;
  };
  Reflect.set(server, "_verifyContentType", noticing);
}

/** The HTTP/2 listeners behind a bound server: one for each address that its host name stands for. */
export function http2Servers(server: Server): Http2Server[] {
  return [...(Reflect.get(server, "http2Servers") as Map<Http2Server, unknown>).keys()];
}

/**
 * Resets the HTTP/2 stream of a call whose peer does not read: a status would wait behind the bytes that it does not
 * take.
 */
export function resetStream(call: object): void {
  streamOf(call)?.close(constants.NGHTTP2_CANCEL);
}

/** The connection of a call: grpc-js tells of a verified certificate, and of a bad one nothing. */
export function socketOf(call: object): object | undefined {
  return streamOf(call)?.session?.socket;
}

function streamOf(call: object): Http2Stream | undefined {
  let layer: unknown = call;
  for (let depth = 0; depth < 5 && typeof layer === "object" && layer !== null; depth++) {
    const stream: unknown = Reflect.get(layer, "stream");
    if (isHttp2Stream(stream)) return stream;
    layer = Reflect.get(layer, "nextCall") ?? Reflect.get(layer, "call");
  }
  return undefined;
}

function isHttp2Stream(value: unknown): value is Http2Stream {
  return typeof value === "object" && value !== null && "rstCode" in value && "close" in value;
}

/** All metadata without the copies that its own methods make for each call. */
export function entriesOf(metadata: Metadata): ReadonlyMap<string, readonly (string | Buffer)[]> {
  return Reflect.get(metadata, "internalRepr") as ReadonlyMap<string, readonly (string | Buffer)[]>;
}

/**
 * A message in parts. All that grpc-js wants of a serialised message is its length and that it copies itself into the frame,
 * at once; so a list is copied once, from where it is stored, and no memory is taken for it before.
 */
class MessageInParts {
  readonly byteLength: number;

  constructor(private readonly parts: readonly Uint8Array[]) {
    let length = 0;
    for (const part of parts) length += part.byteLength;
    this.byteLength = length;
  }

  copy(target: Uint8Array, from: number): number {
    let at = from;
    for (const part of this.parts) {
      target.set(part, at);
      at += part.byteLength;
    }
    return this.byteLength;
  }
}

/** What the handlers, whose messages are serialised already, hand to grpc-js. */
export function asMessage(parts: readonly Uint8Array[]): Buffer {
  return new MessageInParts(parts) as unknown as Buffer;
}
