/** One open watch: hands messages on as fast as the watcher reads, and tells the hub when it may go on. */
import type { RegistryApi, WatchHandle, WatchSink } from "../catalogue/api.js";
import { Fault } from "../domain/fault.js";
import type { WatchRequest } from "../gen/toolcrib/v1/registry_service_pb.js";
import type { WireError } from "./errors.js";
import { RPC } from "./limits.js";
import { type Deps, logRefusal } from "./observe.js";
import { type OpenStreams, draining } from "./open-streams.js";
import { WATCH } from "./services/index.js";
import { toWatchInput } from "./translate/reads.js";

export interface WatchDeps extends Deps {
  readonly api: RegistryApi;
  readonly isDraining: () => boolean;
  readonly streams: OpenStreams;
  /** How long a watcher that does not read may take to receive why its watch ended, ms. */
  readonly lingerMs: number;
}

/** The way to one watcher, over whatever protocol. */
export interface Outlet {
  readonly peer: string;
  /** Tells the watcher that it is admitted, even if nothing happens for a while. */
  admitted(): void;
  /** `taken` is called once the transport has let the message out. */
  send(message: Uint8Array, taken: () => void): void;
  /** The registry ends the watch. What was sent goes out first, so that the watcher's last token is never ahead of what it read. */
  end(refusal: WireError): void;
  /** Drops the watcher with whatever it has not read. */
  abandon(): void;
}

type State =
  /** The hub may write already, though the handle is not here yet. */
  | { readonly kind: "opening"; drained: boolean }
  | { readonly kind: "open"; readonly handle: WatchHandle }
  | { readonly kind: "ended" };

export class OpenWatch implements WatchSink {
  private state: State = { kind: "opening", drained: false };
  /** Bytes handed to the outlet that it has not let out yet. */
  private pendingBytes = 0;
  private blocked = false;
  private linger: NodeJS.Timeout | undefined;
  private readonly forget: () => void;

  constructor(
    private readonly outlet: Outlet,
    private readonly deps: WatchDeps,
  ) {
    this.forget = deps.streams.add((fault) => this.stop(fault));
  }

  /** `read` gives the request, or throws why it cannot be read. */
  start(read: () => WatchRequest): void {
    this.open(read).catch((thrown: unknown) => this.end(thrown));
  }

  private async open(read: () => WatchRequest): Promise<void> {
    if (this.deps.isDraining()) throw draining();
    const handle = await this.deps.api.watch(toWatchInput(read()), this);
    if (this.state.kind !== "opening") return handle.close();
    const { drained } = this.state;
    this.state = { kind: "open", handle };
    this.outlet.admitted();
    if (drained) handle.drained();
  }

  write(message: Uint8Array): boolean {
    if (this.state.kind === "ended") return false;
    const bytes = message.byteLength;
    this.pendingBytes += bytes;
    this.deps.metrics.watchMessages.inc();
    this.deps.metrics.watchBytes.inc(bytes);
    this.outlet.send(message, () => this.taken(bytes));
    this.blocked = this.pendingBytes >= RPC.watchHighBytes;
    return !this.blocked;
  }

  fail(fault: Fault): void {
    this.end(fault);
  }

  private taken(bytes: number): void {
    this.pendingBytes -= bytes;
    if (!this.blocked || this.pendingBytes > RPC.watchLowBytes) return;
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
  stop(thrown: unknown): void {
    const before = this.state;
    this.end(thrown);
    if (before.kind === "open") before.handle.close();
  }

  private end(thrown: unknown): void {
    const over = this.state.kind === "ended";
    // A bug is logged even when the watch is over.
    if (over && thrown instanceof Fault) return;
    const refusal = logRefusal(this.deps.log, WATCH.slice(1), this.outlet.peer, thrown);
    if (over) return;
    this.state = { kind: "ended" };
    this.forget();
    this.deps.metrics.watchEnded.inc({ reason: thrown instanceof Fault ? thrown.reason : "INTERNAL" });
    this.linger = setTimeout(() => this.outlet.abandon(), this.deps.lingerMs);
    this.outlet.end(refusal);
  }

  /** The watcher went away, or its deadline passed. */
  leave(): void {
    if (this.state.kind === "ended") return;
    const before = this.state;
    this.state = { kind: "ended" };
    this.forget();
    this.deps.metrics.watchEnded.inc({ reason: "client" });
    if (before.kind === "open") before.handle.close();
  }

  /** The transport is done with the watcher. */
  closed(): void {
    clearTimeout(this.linger);
  }
}
