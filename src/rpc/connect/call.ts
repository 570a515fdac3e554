/** One call over HTTP from its first byte to its last: deadline, refusal, metrics. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { Fault } from "../../domain/fault.js";
import type { Credentials } from "../identity/authenticator.js";
import { type Deps, codeName, logRefusal } from "../observe.js";
import { decode } from "../services/method.js";
import { certificateOf } from "../tls.js";
import { toConnectError } from "./errors.js";
import { decodeJson } from "./json.js";
import { HTTP } from "./limits.js";
import { type Form, readMessage, timeoutOf } from "./request.js";

/** Nobody waits for the answer any more. */
const LEFT = Symbol("the caller left");

export class HttpCall {
  private readonly startedMs = performance.now();
  private readonly leaving = new AbortController();
  private code = 0;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly form: Form,
    /** Its method's label in metrics and log. */
    readonly label: string,
    private readonly deps: Deps,
  ) {
    deps.metrics.rpcInFlight.cell({ method: label }).value++;
    response.once("close", () => {
      if (!response.writableFinished) this.leaving.abort();
    });
  }

  get peer(): string {
    return peerOf(this.request);
  }

  /** Looking at the certificate is left until somebody asks for it. */
  credentials(): Credentials {
    const { headers, socket } = this.request;
    return {
      authorization: headers.authorization,
      get certificate() {
        return certificateOf(socket);
      },
    };
  }

  /** Aborted when the caller goes before the answer is written. */
  get left(): AbortSignal {
    return this.leaving.signal;
  }

  /** Time that the caller gives this call from its beginning, ms. */
  timeoutMs(): number | undefined {
    return timeoutOf(this.form, this.request.headers);
  }

  /** What is left of so many ms from the beginning. */
  remaining(ms: number): number {
    return ms - (performance.now() - this.startedMs);
  }

  /** The same for a timer. */
  delay(ms: number): number {
    return Math.min(Math.max(0, this.remaining(ms)), HTTP.timerMs);
  }

  /** The request's message. Throws MALFORMED_MESSAGE and MESSAGE_TOO_LARGE. */
  async read<S extends DescMessage>(schema: S): Promise<MessageShape<S>> {
    const bytes = await readMessage(this.request, this.form);
    return this.form.json ? decodeJson(schema, bytes) : decode(schema, bytes);
  }

  /** The result of `work`, or the fault of `expire` when that takes longer than `ms` from the beginning; LEFT is thrown when the caller goes first. */
  within<T>(ms: number, expire: () => Fault, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const onLeave = (): void => reject(LEFT);
      const timer = setTimeout(() => reject(expire()), this.delay(ms));
      this.left.addEventListener("abort", onLeave);
      const settle = (): void => {
        clearTimeout(timer);
        this.left.removeEventListener("abort", onLeave);
      };
      work()
        .then(resolve, (thrown: unknown) => {
          // A bug is logged even when nobody waits for its answer any more.
          if (this.left.aborted && !(thrown instanceof Fault)) logRefusal(this.deps.log, this.label, this.peer, thrown);
          reject(thrown);
        })
        .finally(settle);
    });
  }

  /** What to throw into the library for this. */
  refuse(thrown: unknown): ConnectError {
    if (thrown === LEFT || this.left.aborted) {
      this.code = Code.Canceled;
      return new ConnectError("the caller left", Code.Canceled);
    }
    const refusal = logRefusal(this.deps.log, this.label, this.peer, thrown);
    this.code = refusal.code;
    return toConnectError(refusal);
  }

  /** A stream ended by itself or its caller. */
  cancelled(): void {
    this.code = Code.Canceled;
  }

  refused(code: number): void {
    this.code = code;
  }

  /** Counts the call out, once, when its answer is written or nobody waits for it. */
  finish(streaming: boolean): void {
    const { metrics } = this.deps;
    const method = this.label;
    metrics.rpcInFlight.cell({ method }).value--;
    metrics.rpcRequests.cell({ method, code: codeName(this.code) }).value++;
    if (!streaming) metrics.rpcDuration.of(method).observe((performance.now() - this.startedMs) / 1_000);
  }
}

export function peerOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress === undefined ? "unknown" : `${socket.remoteAddress}:${socket.remotePort}`;
}
