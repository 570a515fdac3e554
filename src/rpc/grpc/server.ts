/** The gRPC listener: methods in, Buffers through, and a shutdown that ends. */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
  setLogger,
} from "@grpc/grpc-js";
import type { Logger } from "../../catalogue/ports.js";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { Health } from "./health.js";
import { AnswerCache } from "../answer-cache.js";
import { createInterceptor } from "./interceptor.js";
import { type HandlerEntry, handleUnknownMethods, http2Servers, noticeForeignRequests } from "./internals.js";
import { GRPC } from "./limits.js";
import { RPC } from "../limits.js";
import type { Door } from "../identity/door.js";
import type { Tls } from "../tls.js";
import { type RpcMetrics, UNKNOWN_METHOD } from "../observe.js";
import { OpenStreams } from "../open-streams.js";
import { SERVICES, UNARY, WATCH } from "../services/index.js";
import { pathOf } from "../services/method.js";
import { addReflection } from "./reflection.js";
import { refuse } from "./status.js";
import { Connections } from "./connections.js";
import { serverCredentials } from "./tls.js";
import { unaryHandler } from "./unary.js";
import { watchHandler } from "./watch.js";

export interface GrpcOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly door: Door;
  /** Plain text if not given. */
  readonly tls?: Tls | undefined;
  readonly log: Logger;
  readonly metrics: RpcMetrics;
  /** Metric hook: a call was answered with what the same question was answered before. */
  readonly onRepeated?: (method: string) => void;
  /** Why calls of this path are refused at the moment, before their message is read; none are if not given. */
  readonly refusal?: (path: string) => Fault | undefined;
  /** How long `close` waits for calls under way, ms. */
  readonly graceMs: number;
  /** For unary callers that set no deadline, ms; RPC.unaryDeadlineMs if not given. */
  readonly unaryDeadlineMs?: number;
  /** For watchers that do not read, ms; RPC.lingerMs if not given. */
  readonly lingerMs?: number;
}

export interface GrpcServer {
  /** As bound: the port is never 0. */
  readonly address: { readonly host: string; readonly port: number };
  /** What `grpc.health.v1` answers. Not ready at first; after `drain` it stays not ready. */
  setReady(ready: boolean): void;
  /** Health says NOT_SERVING, open streams end with DRAINING, new calls are refused with it. Repeatable. */
  drain(): void;
  /** Drains, waits for calls under way at most the grace, and ends every connection. */
  close(): Promise<void>;
}

/** Rejects with one clear sentence when the address cannot be listened on. */
export async function startGrpc(options: GrpcOptions): Promise<GrpcServer> {
  const { log, graceMs } = options;
  const streams = new OpenStreams();
  const health = new Health();
  let draining = false;
  const deps = { ...options, streams, isDraining: () => draining };

  setLogger(quietly(log));
  const server = new Server({
    "grpc.max_receive_message_length": LIMITS.messageBytes,
    "grpc.max_send_message_length": LIMITS.messageBytes,
    "grpc.max_concurrent_streams": LIMITS.streamsPerConnection,
    "grpc.keepalive_time_ms": GRPC.keepaliveTimeMs,
    "grpc.keepalive_timeout_ms": GRPC.keepaliveTimeoutMs,
    "grpc.enable_channelz": 0,
    interceptors: [createInterceptor({ ...deps, endsItself: (path) => path === WATCH })],
  });
  const handlerOf = handlers(deps);
  for (const service of SERVICES) server.addService(passThrough(service), implementation(service, handlerOf));
  health.addTo(server);
  addReflection(server);
  handleUnknownMethods(server, (path) => unknownMethod(path, log));
  noticeForeignRequests(server, (contentType, peer) => {
    const fields = { method: UNKNOWN_METHOD, peer, http_status: 415, content_type: contentType.slice(0, 100) };
    log.info(fields, "a call was refused: its content type is not application/grpc");
  });
  const port = await bind(server, options.address, serverCredentials(options.tls));
  const connections = new Connections();
  for (const listener of http2Servers(server)) connections.watch(listener);

  const drain = () => {
    if (draining) return;
    draining = true;
    health.set(false);
    streams.endAll();
  };
  return {
    address: { host: options.address.host, port },
    setReady: (ready) => {
      if (!draining) health.set(ready);
    },
    drain,
    close: () => {
      drain();
      return shutDown(server, connections, graceMs);
    },
  };
}

const identity = (bytes: Buffer): Buffer => bytes;

/** Every method takes and gives Buffers: a decoder that throws inside grpc-js would make a caller's mistake INTERNAL. */
function passThrough(service: DescService): ServiceDefinition {
  const methods = service.methods.map((method) => [
    method.name,
    {
      path: pathOf(method),
      requestStream: false,
      responseStream: method.methodKind === "server_streaming",
      requestSerialize: identity,
      requestDeserialize: identity,
      responseSerialize: identity,
      responseDeserialize: identity,
    },
  ]);
  return Object.fromEntries(methods) as ServiceDefinition;
}

type Handler = UntypedServiceImplementation[string];

function implementation(service: DescService, handlerOf: (path: string) => Handler): UntypedServiceImplementation {
  return Object.fromEntries(service.methods.map((method: DescMethod) => [method.name, handlerOf(pathOf(method))]));
}

function handlers(
  deps: GrpcOptions & { readonly streams: OpenStreams; readonly isDraining: () => boolean },
): (path: string) => Handler {
  const unary = { ...deps, answers: new AnswerCache(), defaultDeadlineMs: deps.unaryDeadlineMs ?? RPC.unaryDeadlineMs };
  return (path) => {
    if (path === WATCH) return watchHandler({ ...deps, lingerMs: deps.lingerMs ?? RPC.lingerMs });
    const method = UNARY.get(path);
    if (!method) throw new Error(`no handler for ${path}`);
    return unaryHandler(path.slice(1), method, unary);
  };
}

function unknownMethod(path: string, log: Logger): HandlerEntry {
  const func = (call: unknown) => {
    const stream = call as { getPeer(): string; emit(event: "error", error: Error): void };
    const fault = new Fault("UNKNOWN_METHOD", `no such method: ${path.slice(0, 200)}`);
    const status = refuse(log, UNKNOWN_METHOD, stream.getPeer(), fault);
    stream.emit("error", Object.assign(new Error(status.details), status));
  };
  return { func, serialize: identity, deserialize: identity, type: "bidi", path: UNKNOWN_METHOD };
}

function bind(server: Server, { host, port }: GrpcOptions["address"], credentials: ServerCredentials): Promise<number> {
  const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new Promise((resolve, reject) => {
    server.bindAsync(where, credentials, (error, bound) => {
      if (!error) return resolve(bound);
      server.forceShutdown();
      reject(new Error(bindRefusal(where, error), { cause: error }));
    });
  });
}

function bindRefusal(where: string, error: Error): string {
  const hint = "choose another with --grpc-address (TOOLCRIB_GRPC_ADDRESS)";
  if (error.message.includes("EADDRINUSE")) return `The gRPC address ${where} is taken by another program: ${hint}.`;
  const code = /\b(E[A-Z]{3,})\b/.exec(error.message)?.[1] ?? "it cannot be resolved";
  return `The gRPC address ${where} cannot be listened on (${code}): ${hint}.`;
}

/** Calls under way have until the grace is over; connections without one end sooner. */
function shutDown(server: Server, connections: Connections, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // A peer that speaks HTTP/2 leaves by itself when it hears GOAWAY; this is for those that do not.
    const idle = setTimeout(() => connections.destroySilent(), Math.min(graceMs, GRPC.goawayMs));
    const force = setTimeout(() => {
      connections.destroyAll();
      server.forceShutdown();
    }, graceMs);
    server.tryShutdown(() => {
      clearTimeout(idle);
      clearTimeout(force);
      resolve();
    });
  });
}

/** grpc-js writes to the console by itself; what it says there we say better, or it is of use only when debugging. */
function quietly(log: Logger): Partial<Console> {
  const write = (...parts: readonly unknown[]) => log.debug({ from: "grpc-js" }, parts.map(String).join(" "));
  return { error: write, info: write, debug: write };
}
