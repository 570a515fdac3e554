import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { ChannelCredentials, ClientReadableStream } from "@grpc/grpc-js";
import { Client, Metadata, credentials } from "@grpc/grpc-js";
import { LIMITS } from "../domain/limits.js";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { AdminService } from "../gen/toolcrib/v1/admin_service_pb.js";
import { GateService } from "../gen/toolcrib/v1/gate_service_pb.js";
import { RegistryService } from "../gen/toolcrib/v1/registry_service_pb.js";
import { ToolsetService } from "../gen/toolcrib/v1/toolset_service_pb.js";
import { RegistryError, registryError } from "./registry-error.js";
import type { Target } from "./target.js";

/** How long a call may take. */
export interface CallOptions {
  /** Default 10 s. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** The bearer token of whoever asks through this process, instead of the connection's own. */
  readonly token?: string | undefined;
}

/** No two services have an RPC of one name. */
const METHODS = { ...RegistryService.method, ...GateService.method, ...ToolsetService.method, ...AdminService.method };

type Methods = typeof METHODS;
type UnaryName = Exclude<keyof Methods, "watch">;
type Input<N extends keyof Methods> = MessageInitShape<Methods[N]["input"]>;
type Output<N extends keyof Methods> = MessageShape<Methods[N]["output"]>;

const DEFAULT_TIMEOUT_MS = 10_000;

/** A connection to one registry: every RPC of RegistryService, GateService, ToolsetService and AdminService, typed, failing with RegistryError. */
export class RegistryConnection {
  readonly target: Target;
  readonly #client: Client;

  /** Dials lazily: an unreachable registry shows in the first call. */
  constructor(target: Target) {
    this.target = target;
    this.#client = new Client(target.address, channelCredentials(target), {
      // A channel that lost its peer waits up to this long before it dials again; the default is two minutes.
      "grpc.max_reconnect_backoff_ms": 2_000,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_receive_message_length": LIMITS.messageBytes * 2,
      // Two connections to one address must not share a broken subchannel's backoff.
      "grpc.use_local_subchannel_pool": 1,
    });
  }

  register(request: Input<"register">, options?: CallOptions): Promise<Output<"register">> {
    return this.#unary("register", request, options);
  }
  renew(request: Input<"renew">, options?: CallOptions): Promise<Output<"renew">> {
    return this.#unary("renew", request, options);
  }
  deregister(request: Input<"deregister">, options?: CallOptions): Promise<Output<"deregister">> {
    return this.#unary("deregister", request, options);
  }
  getStubs(request: Input<"getStubs">, options?: CallOptions): Promise<Output<"getStubs">> {
    return this.#unary("getStubs", request, options);
  }
  getFullSchema(request: Input<"getFullSchema">, options?: CallOptions): Promise<Output<"getFullSchema">> {
    return this.#unary("getFullSchema", request, options);
  }
  batchGetFullSchemas(
    request: Input<"batchGetFullSchemas">,
    options?: CallOptions,
  ): Promise<Output<"batchGetFullSchemas">> {
    return this.#unary("batchGetFullSchemas", request, options);
  }
  listServers(request: Input<"listServers">, options?: CallOptions): Promise<Output<"listServers">> {
    return this.#unary("listServers", request, options);
  }
  getServer(request: Input<"getServer">, options?: CallOptions): Promise<Output<"getServer">> {
    return this.#unary("getServer", request, options);
  }
  lintTools(request: Input<"lintTools">, options?: CallOptions): Promise<Output<"lintTools">> {
    return this.#unary("lintTools", request, options);
  }
  findTools(request: Input<"findTools">, options?: CallOptions): Promise<Output<"findTools">> {
    return this.#unary("findTools", request, options);
  }
  getModuleMap(request: Input<"getModuleMap">, options?: CallOptions): Promise<Output<"getModuleMap">> {
    return this.#unary("getModuleMap", request, options);
  }
  reportOutcome(request: Input<"reportOutcome">, options?: CallOptions): Promise<Output<"reportOutcome">> {
    return this.#unary("reportOutcome", request, options);
  }
  createToolset(request: Input<"createToolset">, options?: CallOptions): Promise<Output<"createToolset">> {
    return this.#unary("createToolset", request, options);
  }
  getToolset(request: Input<"getToolset">, options?: CallOptions): Promise<Output<"getToolset">> {
    return this.#unary("getToolset", request, options);
  }
  updateToolset(request: Input<"updateToolset">, options?: CallOptions): Promise<Output<"updateToolset">> {
    return this.#unary("updateToolset", request, options);
  }
  deleteToolset(request: Input<"deleteToolset">, options?: CallOptions): Promise<Output<"deleteToolset">> {
    return this.#unary("deleteToolset", request, options);
  }
  isolateServer(request: Input<"isolateServer">, options?: CallOptions): Promise<Output<"isolateServer">> {
    return this.#unary("isolateServer", request, options);
  }
  resumeServer(request: Input<"resumeServer">, options?: CallOptions): Promise<Output<"resumeServer">> {
    return this.#unary("resumeServer", request, options);
  }
  /** The registry lists the server before it answers, so give it as long as a listing may take. */
  refreshServer(request: Input<"refreshServer">, options?: CallOptions): Promise<Output<"refreshServer">> {
    return this.#unary("refreshServer", request, options);
  }

  approveOverlays(request: Input<"approveOverlays">, options?: CallOptions): Promise<Output<"approveOverlays">> {
    return this.#unary("approveOverlays", request, options);
  }
  withdrawOverlays(request: Input<"withdrawOverlays">, options?: CallOptions): Promise<Output<"withdrawOverlays">> {
    return this.#unary("withdrawOverlays", request, options);
  }
  quarantineTool(request: Input<"quarantineTool">, options?: CallOptions): Promise<Output<"quarantineTool">> {
    return this.#unary("quarantineTool", request, options);
  }

  approveTool(request: Input<"approveTool">, options?: CallOptions): Promise<Output<"approveTool">> {
    return this.#unary("approveTool", request, options);
  }

  listOverlays(request: Input<"listOverlays">, options?: CallOptions): Promise<Output<"listOverlays">> {
    return this.#unary("listOverlays", request, options);
  }

  /** What `grpc.health.v1` says of the whole registry. */
  health(options?: CallOptions): Promise<MessageShape<typeof Health.method.check.output>> {
    const { input, output } = Health.method.check;
    return this.#call(`/${Health.typeName}/Check`, input, output, { service: "" }, options);
  }

  /**
   * Messages of one Watch until it fails (RegistryError), is aborted or the consumer stops; has no deadline. `onOpen` hears
   * that the registry took it up, which may be long before the first message.
   */
  async *watch(
    request: Input<"watch">,
    signal?: AbortSignal,
    onOpen?: () => void,
  ): AsyncGenerator<Output<"watch">, void> {
    if (signal?.aborted) return;
    const call = this.#open(request);
    if (onOpen) call.once("metadata", onOpen);
    const cancel = (): void => call.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      if (signal?.aborted) return;
      for await (const message of call) yield message as Output<"watch">;
    } catch (error) {
      if (!signal?.aborted) throw this.#explain(error);
    } finally {
      signal?.removeEventListener("abort", cancel);
      call.on("error", () => undefined); // Cancelling an unfinished call reports itself once more.
      call.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #open(request: Input<"watch">): ClientReadableStream<Output<"watch">> {
    const { input, output } = RegistryService.method.watch;
    return this.#client.makeServerStreamRequest(
      pathOf("watch"),
      encoder(input),
      decoder(output),
      create(input, request),
      this.#metadata(),
    );
  }

  /** The token is asked for at each call: it may have been replaced since the last. */
  #metadata(given?: string): Metadata {
    const metadata = new Metadata();
    const token = given ?? this.target.access?.token?.();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    return metadata;
  }

  #unary<N extends UnaryName>(name: N, request: Input<N>, options?: CallOptions): Promise<Output<N>> {
    const { input, output } = METHODS[name] as { input: DescMessage; output: DescMessage };
    const message = request as MessageInitShape<DescMessage>;
    return this.#call(pathOf(name), input, output, message, options) as Promise<Output<N>>;
  }

  #call<I extends DescMessage, O extends DescMessage>(
    path: string,
    input: I,
    output: O,
    request: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    const deadline = Date.now() + (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new RegistryError("the call was cancelled", { code: "CANCELLED" }));
      const call = this.#client.makeUnaryRequest(
        path,
        encoder(input),
        decoder(output),
        create(input, request),
        this.#metadata(options.token),
        { deadline },
        (error, answer) => {
          signal?.removeEventListener("abort", cancel);
          if (error) reject(this.#explain(error));
          else resolve(answer as MessageShape<O>);
        },
      );
      const cancel = (): void => call.cancel();
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Names the registry where the failure is the connection's, because then the address is what to look at. */
  #explain(error: unknown): RegistryError {
    const known = registryError(error);
    if (known.reason !== "" || (known.code !== "UNAVAILABLE" && known.code !== "DEADLINE_EXCEEDED")) return known;
    const stranger = this.target.tls && /certificate|altname/i.test(known.message);
    const why = stranger
      ? "shows a certificate that cannot be trusted: name its authority in TOOLCRIB_CA, and dial the host name that it is for"
      : known.code === "UNAVAILABLE"
        ? "cannot be reached"
        : "did not answer in time";
    return new RegistryError(`the registry at ${this.target.address} ${why}`, { code: known.code, cause: known.cause });
  }
}

/** Throws an Error when the certificates of the environment cannot be used. */
function channelCredentials({ tls, access }: Target): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  return credentials.createSsl(access?.ca ?? null, access?.key ?? null, access?.cert ?? null);
}

function pathOf(name: keyof Methods): string {
  const { parent, name: rpc } = METHODS[name];
  return `/${parent.typeName}/${rpc}`;
}

function encoder<D extends DescMessage>(desc: D): (message: MessageShape<D>) => Buffer {
  return (message) => {
    const bytes = toBinary(desc, message);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function decoder<D extends DescMessage>(desc: D): (bytes: Buffer) => MessageShape<D> {
  return (bytes) => fromBinary(desc, bytes);
}
