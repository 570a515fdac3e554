/** From a request to its method, in the protocol that it speaks. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Message } from "@bufbuild/protobuf";
import { type HandlerContext, createConnectRouter, createContextKey, createContextValues } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { Fault } from "../../domain/fault.js";
import { LIMITS } from "../../domain/limits.js";
import { RegistryService } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { type Deps, UNKNOWN_METHOD, logRefusal } from "../observe.js";
import { SERVICES, UNARY, WATCH } from "../services/index.js";
import { pathOf } from "../services/method.js";
import { metadataTooLarge } from "../sizes.js";
import { HttpCall, peerOf } from "./call.js";
import { errorJson } from "./errors.js";
import type { Guard } from "./guard.js";
import { HTTP } from "./limits.js";
import { type Form, formOf } from "./request.js";
import { sendAnswer } from "./send.js";
import { type UnaryDeps, answerUnary } from "./unary.js";
import { type HttpWatchDeps, answerWatch } from "./watch.js";
import { welcome } from "./welcome.js";

export interface DispatchDeps extends Deps, UnaryDeps, HttpWatchDeps {
  readonly guard: Guard;
  readonly version: string;
  /** As bound. */
  readonly address: { readonly host: string; readonly port: number };
}

/** What a call does, given to the library beside a request that is empty: it has been read here, where every refusal has details. */
interface Work {
  unary(context: HandlerContext): Promise<Message>;
  stream(): AsyncIterable<Message>;
}

const WORK = createContextKey<Work | undefined>(undefined);

export function createDispatcher(deps: DispatchDeps): (request: IncomingMessage, response: ServerResponse) => void {
  const shells = createShells();
  return (request, response) => {
    const refuse = (thrown: unknown, httpStatus?: number): void =>
      refuseHttp(deps, request, response, thrown, httpStatus);
    try {
      const answerHeaders = deps.guard.admit(request);
      for (const [name, value] of Object.entries(answerHeaders)) response.setHeader(name, value ?? "");
    } catch (thrown) {
      return refuse(thrown);
    }
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    if (request.method === "OPTIONS" && request.headers.origin !== undefined)
      return void response.writeHead(204, deps.guard.preflight()).end();
    if (path === "/" && (request.method === "GET" || request.method === "HEAD"))
      return welcome({ version: deps.version, address: urlHost(deps.address) }, request, response);
    const known = path === WATCH || UNARY.has(path);
    if (request.method !== "POST") {
      if (!known) return refuse(unknownMethod(path), 404);
      response.setHeader("allow", "POST");
      return refuse(new Fault("MALFORMED_MESSAGE", `${path} is called with POST, not ${request.method}`), 405);
    }
    const form = formOf(request.headers["content-type"]);
    const wanted = form && known ? wrongForm(path, form) : undefined;
    if (!form || wanted) return refuse(foreignForm(request, wanted), 415);
    const call = new HttpCall(request, response, form, known ? path.slice(1) : UNKNOWN_METHOD, deps);
    const shell = shells.get(known ? path : form.protocol === "connect-stream" ? WATCH : ANY_UNARY);
    if (!shell) throw new Error(`no handler for ${path}`);
    run(shell, call, workOf(call, path, deps)).catch((bug: unknown) => refuse(bug));
  };
}

function workOf(call: HttpCall, path: string, deps: DispatchDeps): Work {
  const bytes = metadataBytes(call.request);
  const unary = UNARY.get(path);
  const fault =
    bytes > LIMITS.metadataBytes ? metadataTooLarge(bytes) : unary || path === WATCH ? undefined : unknownMethod(path);
  const refused = () => call.refuse(fault);
  return {
    unary: (context) => (fault || !unary ? Promise.reject(refused()) : answerUnary(unary, call, context, deps)),
    stream: async function* () {
      if (fault) throw refused();
      yield* answerWatch(call, deps);
    },
  };
}

async function run(shell: UniversalHandler, call: HttpCall, work: Work): Promise<void> {
  const streaming = call.label === WATCH.slice(1);
  try {
    const answer = await shell({
      httpVersion: call.request.httpVersion,
      method: "POST",
      url: `http://localhost${shell.requestPath}`,
      header: shellHeaders(call),
      body: emptyBody(call.form),
      signal: call.left,
      contextValues: createContextValues().set(WORK, work),
    });
    await sendAnswer(answer, call.response);
  } finally {
    call.finish(streaming);
  }
}

/** What the library has to know: everything else is read and judged here. */
function shellHeaders({ form, request }: HttpCall): Headers {
  const headers = new Headers({ "content-type": form.contentType });
  for (const name of ["accept-encoding", "connect-accept-encoding", "grpc-accept-encoding"]) {
    const value = request.headers[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return headers;
}

async function* emptyBody({ protocol, json }: Form): AsyncGenerator<Uint8Array> {
  const message = Buffer.from(json ? "{}" : "");
  yield protocol === "connect" ? message : Buffer.concat([Buffer.from([0, 0, 0, 0, message.byteLength]), message]);
}

/** Refuses what is no method, in the protocol that it was asked in. */
const ANY_UNARY = pathOf(RegistryService.method.renew);

/** Handlers that negotiate a protocol, write answers and errors in it, and do what their call's work says. */
function createShells(): ReadonlyMap<string, UniversalHandler> {
  const router = createConnectRouter({
    grpc: false,
    acceptCompression: [compressionGzip],
    compressMinBytes: HTTP.compressMinBytes,
  });
  const workIn = (context: HandlerContext): Work => {
    const work = context.values.get(WORK);
    if (!work) throw new Error("a call without work");
    return work;
  };
  const unary = (_: unknown, context: HandlerContext) => workIn(context).unary(context);
  const stream = (_: unknown, context: HandlerContext) => workIn(context).stream();
  for (const method of SERVICES.flatMap(({ methods }) => methods))
    router.rpc(method, (method.methodKind === "server_streaming" ? stream : unary) as never);
  return new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
}

/** What to use instead, when the method cannot be called in this form. */
function wrongForm(path: string, { protocol }: Form): string | undefined {
  if (path === WATCH && protocol === "connect")
    return "application/connect+json, application/connect+proto or application/grpc-web, because Watch is a stream";
  if (path !== WATCH && protocol === "connect-stream")
    return "application/json, application/proto or application/grpc-web, because it is no stream";
  return undefined;
}

function foreignForm(request: IncomingMessage, wanted: string | undefined): Fault {
  const type = JSON.stringify((request.headers["content-type"] ?? "").slice(0, 100));
  const spoken =
    wanted ??
    "application/json, application/proto, application/connect+json, application/connect+proto or application/grpc-web";
  const grpc = /^application\/grpc(\+|;|$)/.test(request.headers["content-type"] ?? "")
    ? "; gRPC is spoken on the gRPC address"
    : "";
  return new Fault("MALFORMED_MESSAGE", `the content type ${type} is not taken here: use ${spoken}${grpc}`);
}

function unknownMethod(path: string): Fault {
  return new Fault("UNKNOWN_METHOD", `no such method: ${path.slice(0, 200)}`);
}

/** Counted as HTTP/2 counts: each entry costs 32 bytes beside its text. */
function metadataBytes({ rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length + 16, 0);
}

const HTTP_STATUS: Readonly<Record<string, number>> = { PERMISSION_DENIED: 403, INTERNAL: 500 };

/** For what never became a call. */
function refuseHttp(
  deps: Deps,
  request: IncomingMessage,
  response: ServerResponse,
  thrown: unknown,
  httpStatus?: number,
): void {
  const refusal = logRefusal(deps.log, UNKNOWN_METHOD, peerOf(request), thrown);
  if (response.headersSent) return void response.destroy();
  const status = httpStatus ?? (thrown instanceof Fault ? (HTTP_STATUS[thrown.status] ?? 400) : 500);
  response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(errorJson(refusal))}\n`);
}

function urlHost({ host, port }: DispatchDeps["address"]): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
