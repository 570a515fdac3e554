import { type Metadata, ServerInterceptingCall, type ServerInterceptingCallInterface, status } from "@grpc/grpc-js";

export type CallStatus = Parameters<ServerInterceptingCallInterface["sendStatus"]>[0];
type Listener = Parameters<ServerInterceptingCallInterface["start"]>[0];

/** What is the same for all calls of a method. */
export interface CallKind {
  /** Its label in metrics. */
  readonly method: string;
  readonly streaming: boolean;
  readonly inFlight: { value: number };
  readonly durations: { observe(seconds: number): void };
  /** Calls that ended with this code. */
  ended(code: number): { value: number };
  /** The status to send instead of this one. */
  dress(given: CallStatus, peer: () => string): CallStatus;
  /** Why a call with these metadata is refused; undefined when they are fine. */
  judge(metadata: Metadata, peer: () => string): CallStatus | undefined;
}

/**
 * One call between its handler and grpc-js, and listener of the one for the other. The class of grpc-js that does this
 * makes an object and some functions for every step of a call, which is a fifth of the time of a hot read.
 */
export class ObservedCall extends ServerInterceptingCall implements Listener {
  private readonly startedMs = performance.now();
  private readonly sendToPeer: (given: CallStatus) => void;
  private listener: Listener | undefined;
  private open = true;
  /** Called when the call is over. */
  onEnd: (() => void) | undefined;

  constructor(
    private readonly inner: ServerInterceptingCallInterface,
    private readonly kind: CallKind,
  ) {
    super(inner);
    kind.inFlight.value++;
    this.sendToPeer = inner.sendStatus;
    // grpc-js itself calls this too, for an oversized message, a passed deadline, broken framing: those get details here.
    inner.sendStatus = (given) => this.end(given);
  }

  override start(listener: Listener): void {
    this.listener = listener;
    this.inner.start(this);
  }

  override sendMetadata(metadata: Metadata): void {
    this.inner.sendMetadata(metadata);
  }

  override sendMessage(message: unknown, callback: () => void): void {
    this.inner.sendMessage(message, callback);
  }

  override sendStatus(given: CallStatus): void {
    this.inner.sendStatus(given);
  }

  onReceiveMetadata(metadata: Metadata): void {
    const refusal = this.kind.judge(metadata, () => this.getPeer());
    if (refusal) this.sendStatus(refusal);
    else this.listener?.onReceiveMetadata(metadata);
  }

  onReceiveMessage(message: unknown): void {
    this.listener?.onReceiveMessage(message);
  }

  onReceiveHalfClose(): void {
    this.listener?.onReceiveHalfClose();
  }

  /** grpc-js says this at the end of every call. */
  onCancel(): void {
    this.count(status.CANCELLED);
    this.onEnd?.();
    this.listener?.onCancel();
  }

  private end(given: CallStatus): void {
    if (!this.open) return;
    const dressed = this.kind.dress(given, () => this.getPeer());
    this.count(dressed.code ?? status.UNKNOWN);
    this.sendToPeer.call(this.inner, dressed);
  }

  /** The call was counted in when it began; this counts it out, once. */
  private count(code: number): void {
    if (!this.open) return;
    this.open = false;
    const { inFlight, durations, streaming } = this.kind;
    inFlight.value--;
    this.kind.ended(code).value++;
    if (!streaming) durations.observe((performance.now() - this.startedMs) / 1_000);
  }
}
