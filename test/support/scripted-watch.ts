/** Watch streams that a test speaks into, and timers that stand still until it moves them. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { WatchSource } from "../../src/client/follower/source.js";
import { RegistryError, type RegistryErrorFacts } from "../../src/client/registry-error.js";
import type { Target } from "../../src/client/target.js";
import type { Timers } from "../../src/client/timers.js";
import type { ErrorReasonName } from "../../src/domain/reasons.js";
import { STATUS_OF } from "../../src/domain/reasons.js";
import {
  type EventSchema,
  EventType,
  type WatchResponse,
  WatchResponseSchema,
} from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { Availability, type Stub, StubSchema } from "../../src/gen/toolcrib/v1/stub_pb.js";
import type { FakeClock } from "./fake-clock.js";

export type EventInit = MessageInitShape<typeof EventSchema>;

export function timersOf(clock: FakeClock): Timers {
  return {
    now: () => clock.monotonic(),
    after(ms, run) {
      const cancelled = new AbortController();
      void clock.sleep(ms, cancelled.signal).then(() => {
        if (!cancelled.signal.aborted) run();
      });
      return () => cancelled.abort();
    },
  };
}

/** One stream that the follower opened. */
export class ScriptedStream implements AsyncIterable<WatchResponse> {
  readonly #queue: WatchResponse[] = [];
  #error: RegistryError | undefined;
  #ended = false;
  #wake: () => void = () => undefined;

  constructor(
    readonly target: Target,
    readonly request: Parameters<WatchSource>[1],
    readonly signal: AbortSignal,
    /** The registry takes the stream up, and says nothing yet. */
    readonly admit: () => void,
  ) {
    signal.addEventListener("abort", () => this.end(), { once: true });
  }

  get resumeToken(): string {
    return this.request.resumeToken ?? "";
  }

  snapshot(stubs: readonly Stub[], token: string, revision = token, last = true): this {
    return this.#push({ case: "snapshot", value: { stubs: [...stubs], resumeToken: token, revision, last } });
  }

  /** Without a token: a part. */
  change(events: readonly EventInit[], token: string, revision = token): this {
    return this.#push({ case: "change", value: { events: [...events], resumeToken: token, revision } });
  }

  bookmark(token: string, revision = token): this {
    return this.#push({ case: "bookmark", value: { resumeToken: token, revision } });
  }

  unknown(): this {
    return this.#push({ case: undefined });
  }

  fail(reason: ErrorReasonName, facts: Partial<RegistryErrorFacts> = {}): void {
    this.#error = new RegistryError(`scripted ${reason}`, { code: STATUS_OF[reason], reason, ...facts });
    this.end();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchResponse> {
    for (;;) {
      const next = this.#queue.shift();
      if (next) yield next;
      else if (this.#ended) {
        if (this.#error) throw this.#error;
        return;
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  #push(message: MessageInitShape<typeof WatchResponseSchema>["message"]): this {
    this.#queue.push(create(WatchResponseSchema, message ? { message } : {}));
    this.#wake();
    return this;
  }
}

export class ScriptedSource {
  readonly streams: ScriptedStream[] = [];

  readonly open: WatchSource = (target, request, signal, onOpen) => {
    const stream = new ScriptedStream(target, request, signal, onOpen);
    this.streams.push(stream);
    return stream;
  };

  get last(): ScriptedStream {
    const last = this.streams.at(-1);
    if (!last) throw new Error("no stream was opened");
    return last;
  }
}

export function stub(toolId: string, more: MessageInitShape<typeof StubSchema> = {}): Stub {
  const [serverId = "", name = ""] = toolId.split("/");
  const digest = `sha256:${"0".repeat(64)}`;
  return create(StubSchema, { toolId, serverId, name, digest, availability: Availability.AVAILABLE, ...more });
}

export function put(type: EventType, of: Stub): EventInit {
  return { type, toolId: of.toolId, serverId: of.serverId, stub: of, newDigest: of.digest };
}

export function registered(toolId: string): EventInit {
  return put(EventType.REGISTERED, stub(toolId));
}

export function gone(toolId: string, type = EventType.DEREGISTERED): EventInit {
  return { type, toolId, serverId: toolId.split("/")[0] ?? "" };
}

export function availabilityOf(serverId: string, availability: Availability): EventInit {
  return { type: EventType.AVAILABILITY_CHANGED, serverId, availability };
}
