/**
 * A registry small enough to read, on a real socket: it keeps what is registered in a map, speaks the proto, and can be
 * told to misbehave. For tests of clients that must not depend on the whole registry.
 */
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { sendUnaryData, ServerUnaryCall, ServerWritableStream } from "@grpc/grpc-js";
import { Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import type { ErrorReasonName } from "../../src/domain/reasons.js";
import { STATUS_OF } from "../../src/domain/reasons.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "../../src/gen/google/rpc/status_pb.js";
import { SubstitutesSchema } from "../../src/gen/toolcrib/v1/error_pb.js";
import type {
  DeregisterRequest,
  RegisterRequest,
  RenewRequest,
  WatchRequest,
  WatchResponse,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import {
  RegistryService,
  RenewResult_State as Renewed,
  ToolResult_Outcome as Outcome,
  WatchResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { freePort } from "./ports.js";

export interface FailureFacts {
  readonly metadata?: Record<string, string>;
  readonly violations?: { field: string; description: string }[];
  readonly retryAfterMs?: number;
  readonly substitutes?: string[];
}

export class Failure extends Error {
  constructor(
    readonly reason: ErrorReasonName,
    message: string,
    readonly facts: FailureFacts = {},
  ) {
    super(message);
  }
}

type Methods = typeof RegistryService.method;
type UnaryName = Exclude<keyof Methods, "watch">;
type Handler<N extends UnaryName> = (
  request: MessageShape<Methods[N]["input"]>,
) => MessageInitShape<Methods[N]["output"]> | Promise<MessageInitShape<Methods[N]["output"]>>;

export interface HeldServer {
  readonly request: RegisterRequest;
  readonly leaseId: string;
}

export class SmallRegistry {
  readonly registers: RegisterRequest[] = [];
  readonly renews: RenewRequest[] = [];
  readonly deregisters: DeregisterRequest[] = [];
  readonly watches: WatchRequest[] = [];
  /** By server_id. */
  readonly servers = new Map<string, HeldServer>();
  /** Streams of open watches. */
  readonly streams = new Set<(message: MessageInitShape<typeof WatchResponseSchema>) => void>();
  renewAfterMs = 100;
  /** The state that Renew answers for a live lease. */
  renewState: Renewed = Renewed.OK;
  /** Makes every Register fail. */
  refusal: Failure | undefined;
  onWatch: (
    request: WatchRequest,
    send: (message: MessageInitShape<typeof WatchResponseSchema>) => void,
    fail: (failure: Failure) => void,
  ) => void = () => undefined;
  /** Replaces a method. */
  readonly overrides: { [N in UnaryName]?: Handler<N> } = {};
  address = "";
  #server = new Server();
  #leases = 0;
  #revision = 0;

  static async start(port?: number): Promise<SmallRegistry> {
    const registry = new SmallRegistry();
    await registry.listen(port ?? (await freePort()));
    return registry;
  }

  async listen(port: number): Promise<void> {
    this.#server = new Server();
    this.#server.addService(this.#definition() as never, this.#handlers() as never);
    const bound = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, at) =>
        error ? reject(error) : resolve(at),
      );
    });
    this.address = `127.0.0.1:${bound}`;
  }

  get port(): number {
    return Number(this.address.split(":")[1]);
  }

  /** The names that a server's last Register declared. */
  toolNames(serverId: string): string[] {
    const offer = this.servers.get(serverId)?.request.offer;
    if (offer?.case !== "declared") return [];
    return offer.value.tools.map((tool) => tool.stub?.name || nameIn(tool.definition)).sort();
  }

  stop(): void {
    this.#server.forceShutdown();
    this.streams.clear();
  }

  #handlers(): Record<string, unknown> {
    const unary = <N extends UnaryName>(name: N, handler: Handler<N>) => {
      return (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>): void => {
        const { input, output } = RegistryService.method[name] as { input: DescMessage; output: DescMessage };
        Promise.resolve()
          .then(() => (this.overrides[name] ?? handler)(fromBinary(input, call.request) as never))
          .then(
            (answer) => done(null, Buffer.from(toBinary(output, create(output, answer as never)))),
            (error: unknown) => done(wireError(error) as never),
          );
      };
    };
    return {
      register: unary("register", (request) => this.#register(request)),
      renew: unary("renew", (request) => this.#renew(request)),
      deregister: unary("deregister", (request) => this.#deregister(request)),
      getStubs: unary("getStubs", () => ({ stubs: [] })),
      getFullSchema: unary("getFullSchema", () => {
        throw new Failure("NOT_FOUND", "no such tool in this namespace");
      }),
      batchGetFullSchemas: unary("batchGetFullSchemas", () => ({})),
      listServers: unary("listServers", () => ({})),
      getServer: unary("getServer", () => ({})),
      watch: (call: ServerWritableStream<Buffer, Buffer>) => this.#watch(call),
    };
  }

  #register(request: RegisterRequest): MessageInitShape<Methods["register"]["output"]> {
    this.registers.push(request);
    if (this.refusal) throw this.refusal;
    const held = this.servers.get(request.serverId);
    const leaseId = held?.request.instanceId === request.instanceId ? held.leaseId : `lease-${++this.#leases}`;
    this.servers.set(request.serverId, { request, leaseId });
    const ttlMs = request.retention.case === "leaseTtl" ? Number(request.retention.value.seconds) * 1000 : 30_000;
    const tools = request.offer.case === "declared" ? request.offer.value.tools : [];
    return {
      revision: `r${++this.#revision}`,
      setDigest: `set-${this.#revision}`,
      ...(request.retention.case === "standing"
        ? {}
        : { lease: { leaseId, ttl: durationFromMs(ttlMs), renewAfter: durationFromMs(this.renewAfterMs) } }),
      tools: tools.map((tool) => ({ name: tool.stub?.name ?? nameIn(tool.definition), outcome: Outcome.ACCEPTED })),
    };
  }

  #renew(request: RenewRequest): MessageInitShape<Methods["renew"]["output"]> {
    this.renews.push(request);
    const live = new Set([...this.servers.values()].map((server) => server.leaseId));
    return {
      results: request.leases.map(({ leaseId }) => ({
        leaseId,
        state: live.has(leaseId) ? this.renewState : Renewed.UNKNOWN_LEASE,
        renewAfter: durationFromMs(this.renewAfterMs),
      })),
    };
  }

  #deregister(request: DeregisterRequest): MessageInitShape<Methods["deregister"]["output"]> {
    this.deregisters.push(request);
    for (const [id, server] of this.servers) {
      if (request.target.value !== server.leaseId && request.target.value !== id) continue;
      this.servers.delete(id);
      return { removed: true, revision: `r${++this.#revision}` };
    }
    return { removed: false };
  }

  #watch(call: ServerWritableStream<Buffer, Buffer>): void {
    const request = fromBinary(RegistryService.method.watch.input, call.request);
    this.watches.push(request);
    const send = (message: MessageInitShape<typeof WatchResponseSchema>): void => {
      call.write(Buffer.from(toBinary(WatchResponseSchema, create(WatchResponseSchema, message) as WatchResponse)));
    };
    this.streams.add(send);
    call.on("cancelled", () => this.streams.delete(send));
    this.onWatch(request, send, (failure) => {
      this.streams.delete(send);
      call.emit("error", wireError(failure));
    });
  }

  #definition(): Record<string, unknown> {
    const pass = (bytes: Buffer): Buffer => bytes;
    return Object.fromEntries(
      RegistryService.methods.map((method) => [
        method.localName,
        {
          path: `/${RegistryService.typeName}/${method.name}`,
          requestStream: false,
          responseStream: method.methodKind === "server_streaming",
          requestSerialize: pass,
          requestDeserialize: pass,
          responseSerialize: pass,
          responseDeserialize: pass,
        },
      ]),
    );
  }
}

function nameIn(definition: Uint8Array): string {
  const name = (JSON.parse(Buffer.from(definition).toString()) as { name?: unknown }).name;
  return typeof name === "string" ? name : "";
}

function wireError(error: unknown): object {
  if (!(error instanceof Failure)) return { code: status.INTERNAL, details: String(error) };
  const { reason, message, facts } = error;
  const code = status[STATUS_OF[reason]];
  const details = [
    anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: "toolcrib", metadata: facts.metadata ?? {} })),
  ];
  if (facts.retryAfterMs !== undefined) {
    const retryDelay = durationFromMs(facts.retryAfterMs);
    details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
  }
  if (facts.violations) {
    details.push(anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: facts.violations })));
  }
  if (facts.substitutes) {
    details.push(anyPack(SubstitutesSchema, create(SubstitutesSchema, { toolIds: facts.substitutes })));
  }
  const metadata = new Metadata();
  const body = toBinary(StatusSchema, create(StatusSchema, { code, message, details }));
  metadata.set("grpc-status-details-bin", Buffer.from(body));
  return { code, details: message, metadata };
}

/** Waits until `check` holds; fails with what it last said after 25 s. */
export async function until<T>(check: () => T | Promise<T>, what: string, ms = 25_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + ms;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`waited ${ms} ms in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
