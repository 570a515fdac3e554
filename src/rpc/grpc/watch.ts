/** One open watch: hands messages to the call as fast as the watcher reads, and tells the hub when it may go on. */
import { Metadata, type ServerWritableStream } from "@grpc/grpc-js";
import type { RegistryApi, WatchHandle, WatchSink } from "../../catalogue/api.js";
import { Fault } from "../../domain/fault.js";
import { WatchRequestSchema } from "../../gen/toolcrib/v1/registry_service_pb.js";
import { asBuffer } from "../answers.js";
import type { Deps } from "../observe.js";
import { type OpenStreams, draining } from "../open-streams.js";
import { WATCH, decode } from "../services.js";
import { toWatchInput } from "../translate/reads.js";
import { resetStream } from "./internals.js";
import { GRPC } from "./limits.js";
import { refuse } from "./status.js";

export interface WatchDeps extends Deps {
  readonly api: RegistryApi;
  readonly isDraining: () => boolean;
  readonly streams: OpenStreams;
  /** How long a watcher that does not read may take to receive why its watch ended, ms. */
  readonly lingerMs: number;
}

type Call = ServerWritableStream<Buffer, Buffer>;

export function watchHandler(deps: WatchDeps): (call: Call) => void {
  return (call) => new OpenWatch(call, deps).start();
}

type State =
  /** The hub may write already, though the handle is not here yet. */
  | { readonly kind: "opening"; drained: boolean }
  | { readonly kind: "open"; readonly handle: WatchHandle }
  | { readonly kind: "ended" };

class OpenWatch implements WatchSink {
  private state: State = { kind: "opening", drained: false };
  /** Bytes handed to the call that HTTP/2 flow control has not let out yet. */
  private pendingBytes = 0;
  private blocked = false;
  private readonly forget: () => void;

  constructor(
    private readonly call: Call,
    private readonly deps: WatchDeps,
  ) {
    this.forget = deps.streams.add((fault) => this.stop(fault));
    call.on("cancelled", () => this.leave());
  }

  start(): void {
    this.open().catch((thrown: unknown) => this.end(thrown));
  }

  private async open(): Promise<void> {
    if (this.deps.isDraining()) throw draining();
    const input = toWatchInput(decode(WatchRequestSchema, this.call.request));
    const handle = await this.deps.api.watch(input, this);
    if (this.state.kind !== "opening") return handle.close();
    const { drained } = this.state;
    this.state = { kind: "open", handle };
    // Tells the watcher that it is admitted, even if nothing happens for a while.
    this.call.sendMetadata(new Metadata());
    if (drained) handle.drained();
  }

  write(message: Uint8Array): boolean {
    if (this.state.kind === "ended") return false;
    const bytes = message.byteLength;
    this.pendingBytes += bytes;
    this.deps.metrics.watchMessages.inc();
    this.deps.metrics.watchBytes.inc(bytes);
    this.call.write(asBuffer(message), () => this.taken(bytes));
    this.blocked = this.pendingBytes >= GRPC.watchHighBytes;
    return !this.blocked;
  }

  fail(fault: Fault): void {
    this.end(fault);
  }

  private taken(bytes: number): void {
    this.pendingBytes -= bytes;
    if (!this.blocked || this.pendingBytes > GRPC.watchLowBytes) return;
    this.blocked = false;
    if (this.state.kind === "opening") this.state.drained = true;
    if (this.state.kind !== "open") return;
    try {
      this.state.handle.drained();
    } catch (bug) {
      this.stop(bug);
    }
  }

  /** Ends it from this side: the hub does not know yet. */
  private stop(thrown: unknown): void {
    const before = this.state;
    this.end(thrown);
    if (before.kind === "open") before.handle.close();
  }

  /** What is written already goes out first, so that the watcher's last token is never ahead of what it read. */
  private end(thrown: unknown): void {
    const over = this.state.kind === "ended";
    // A bug is logged even when the watch is over.
    if (over && thrown instanceof Fault) return;
    const status = refuse(this.deps.log, WATCH.slice(1), this.call.getPeer(), thrown);
    if (over) return;
    this.state = { kind: "ended" };
    this.forget();
    this.deps.metrics.watchEnded.inc({ reason: thrown instanceof Fault ? thrown.reason : "INTERNAL" });
    const linger = setTimeout(() => resetStream(this.call), this.deps.lingerMs);
    this.call.once("close", () => clearTimeout(linger));
    this.call.emit("error", Object.assign(new Error(status.details), status));
  }

  /** The watcher went away, or its deadline passed. */
  private leave(): void {
    if (this.state.kind === "ended") return;
    const before = this.state;
    this.state = { kind: "ended" };
    this.forget();
    this.deps.metrics.watchEnded.inc({ reason: "client" });
    if (before.kind === "open") before.handle.close();
  }
}
