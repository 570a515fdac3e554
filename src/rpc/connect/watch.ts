/** Watch over HTTP: an outlet that the protocol library empties at the watcher's pace. */
import { fromBinary } from "@bufbuild/protobuf";
import { Fault } from "../../domain/fault.js";
import {
  type WatchResponse,
  WatchRequestSchema,
  WatchResponseSchema,
} from "../../gen/toolcrib/v1/registry_service_pb.js";
import type { WireError } from "../errors.js";
import type { Door } from "../identity/door.js";
import { OpenWatch, type Outlet, type WatchDeps } from "../open-watch.js";
import type { HttpCall } from "./call.js";
import { toConnectError } from "./errors.js";

export interface HttpWatchDeps extends Omit<WatchDeps, "api"> {
  readonly door: Door;
}

/** Its messages, one at a time: the next is asked for when the one before is with the socket. Ends with a ConnectError. */
export async function* answerWatch(call: HttpCall, deps: HttpWatchDeps): AsyncGenerator<WatchResponse> {
  const { watch, outlet, stop } = await open(call, deps);
  try {
    yield* outlet.messages();
  } finally {
    stop();
    watch.leave();
  }
}

/** Rejects with a ConnectError. */
async function open(call: HttpCall, deps: HttpWatchDeps) {
  try {
    const credentials = call.credentials();
    const caller = await deps.door.enter(credentials);
    const timeoutMs = call.timeoutMs();
    const request = await call.read(WatchRequestSchema);
    const outlet = new Queue(call);
    const watch = new OpenWatch(outlet, { ...deps, api: caller.api });
    const leave = (): void => {
      watch.leave();
      outlet.close();
    };
    call.left.addEventListener("abort", leave);
    call.response.once("close", () => watch.closed());
    const forget = deps.door.stay(credentials, caller, request.namespace, (thrown) => watch.stop(thrown));
    const expire = () => watch.stop(new Fault("DEADLINE", "the caller's deadline passed"));
    const timer = timeoutMs === undefined ? undefined : setTimeout(expire, call.delay(timeoutMs));
    watch.start(() => request);
    if (call.left.aborted) leave();
    const stop = (): void => {
      clearTimeout(timer);
      forget();
      call.left.removeEventListener("abort", leave);
    };
    return { watch, outlet, stop };
  } catch (thrown) {
    throw call.refuse(thrown);
  }
}

/** What was sent and not fetched yet: the hub stops at RPC.watchHighBytes. */
class Queue implements Outlet {
  private readonly waiting: { readonly message: Uint8Array; readonly taken: () => void }[] = [];
  private over: { readonly refusal: WireError | undefined } | undefined;
  private wake: () => void = () => undefined;

  constructor(private readonly call: HttpCall) {}

  get peer(): string {
    return this.call.peer;
  }

  /** The library writes its headers with the first message, so there is nothing to tell before it. */
  admitted(): void {}

  send(message: Uint8Array, taken: () => void): void {
    this.waiting.push({ message, taken });
    this.wake();
  }

  end(refusal: WireError): void {
    this.over ??= { refusal };
    this.wake();
  }

  abandon(): void {
    this.call.response.destroy();
  }

  /** Nobody fetches any more. */
  close(): void {
    this.over = { refusal: undefined };
    this.waiting.length = 0;
    this.wake();
  }

  async *messages(): AsyncGenerator<WatchResponse> {
    for (;;) {
      const next = this.waiting.shift();
      if (next) {
        yield fromBinary(WatchResponseSchema, next.message);
        next.taken();
        continue;
      }
      if (this.over) return this.finish(this.over.refusal);
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  private finish(refusal: WireError | undefined): void {
    if (!refusal) return this.call.cancelled();
    this.call.refused(refusal.code);
    throw toConnectError(refusal);
  }
}
