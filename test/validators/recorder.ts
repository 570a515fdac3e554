/**
 * Writes a history down. It listens to links, over gRPC or inside this process, and to clients of the other tests; what the test
 * does to the world is told to it.
 */
import { decodeCall, decodeMessage, decodeWatch } from "./decode.js";
import {
  type AnyCall,
  DEFAULT_FACTS,
  type Facts,
  type History,
  type Item,
  type Moment,
  type Outcome,
} from "./history.js";
import { type Failure, failureOf, type Link } from "./links.js";
import { isMethod } from "./methods.js";

/** What is told about one call. */
export interface CallEar {
  answered(answer: Uint8Array): void;
  failed(error: unknown): void;
}

/** What is told about one watch. */
export interface WatchEar {
  message(bytes: Uint8Array): void;
  failed(error: unknown): void;
  /** Its client left. */
  left(): void;
}

/** What a client tells as it goes along. */
export interface Tap {
  call(method: string, request: Uint8Array): CallEar;
  watch(request: Uint8Array): WatchEar;
}

/** A span that the test has begun. */
export interface Begun {
  end(): void;
}

const DEAF: CallEar = { answered: () => undefined, failed: () => undefined };

export class Recorder {
  readonly #items: Item[] = [];
  readonly #open = new Map<object, () => Item>();
  #n = 0;
  #watchers = 0;
  facts: Facts;

  constructor(
    facts: Partial<Facts> = {},
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.facts = { ...DEFAULT_FACTS, ...facts };
  }

  now(): Moment {
    return { n: ++this.#n, ms: Math.round(this.nowMs() * 1_000) / 1_000 };
  }

  /** What was recorded so far; calls without an answer are pending in it. */
  history(): History {
    const end = this.now();
    const open = [...this.#open.values()].map((item) => item());
    return { facts: this.facts, items: [...this.#items, ...open], end };
  }

  /** For a client of the replica with this name. */
  tap(replica: string): Tap {
    return { call: (method, request) => this.#call(replica, method, request), watch: (r) => this.#watch(replica, r) };
  }

  /** The same link, listened to. */
  listen(replica: string, link: Link): Link {
    const tap = this.tap(replica);
    return {
      async unary(method, request) {
        const ear = tap.call(method, request);
        try {
          const answer = await link.unary(method, request);
          ear.answered(answer);
          return answer;
        } catch (error) {
          ear.failed(error);
          throw error;
        }
      },
      watch(request, ears) {
        const ear = tap.watch(request);
        const leave = link.watch(request, {
          message(bytes) {
            ear.message(bytes);
            ears.message(bytes);
          },
          ended(failure: Failure) {
            ear.failed(failure);
            ears.ended(failure);
          },
        });
        return () => {
          ear.left();
          leave();
        };
      },
    };
  }

  /** Acknowledged writes may be gone; `replica` empty for all. */
  fault(what: "store-lost" | "store-away" | "replica-down", replica = ""): Begun {
    const from = this.now();
    return this.#span((to) => ({ kind: "fault", what, replica, from, to }));
  }

  /** Servers answer every request from here on. */
  answering(namespace: string, serverId: string): Begun {
    const from = this.now();
    return this.#span((to) => ({ kind: "answering", namespace, serverId, from, to }));
  }

  /** Nothing but lists and watches until the end gives a reason to ask a server. */
  quiet(): Begun {
    const from = this.now();
    return { end: () => void this.#items.push({ kind: "quiet", from, to: this.now() }) };
  }

  upstream(endpoint: string, method: string): void {
    this.#items.push({ kind: "upstream", at: this.now(), endpoint, method });
  }

  believes(namespace: string, serverId: string, tools: readonly string[] | undefined): void {
    this.#items.push({ kind: "belief", at: this.now(), namespace, serverId, tools: tools && [...tools].sort() });
  }

  #span(make: (to: Moment | undefined) => Item): Begun {
    const key = {};
    this.#open.set(key, () => make(undefined));
    return {
      end: () => {
        if (this.#open.delete(key)) this.#items.push(make(this.now()));
      },
    };
  }

  #call(replica: string, method: string, request: Uint8Array): CallEar {
    const decoded = isMethod(method) ? decodeCall(method, request) : undefined;
    if (!decoded) return DEAF;
    const call = this.now();
    const key = {};
    const item = (back: Moment | undefined, outcome: Outcome<unknown>) =>
      ({ ...decoded.known, replica, call, back, outcome }) as AnyCall;
    this.#open.set(key, () => item(undefined, { kind: "pending" }));
    const close = (outcome: Outcome<unknown>): void => {
      this.#open.delete(key);
      this.#items.push(item(this.now(), outcome));
    };
    return {
      answered: (answer) => close({ kind: "ok", value: decoded.read(answer) }),
      failed: (error) => close({ kind: "error", ...asFailure(error) }),
    };
  }

  #watch(replica: string, request: Uint8Array): WatchEar {
    const watcher = `w${++this.#watchers}`;
    const { filter, resumeToken } = decodeWatch(request);
    const { namespace } = filter;
    this.#items.push({ kind: "watch", watcher, replica, namespace, at: this.now(), filter, resumeToken });
    let over = false;
    const end = ({ reason, cause }: Pick<Failure, "reason" | "cause">): void => {
      if (over) return;
      over = true;
      this.#items.push({ kind: "ended", watcher, at: this.now(), reason, cause });
    };
    return {
      message: (bytes) => {
        if (!over) this.#items.push({ kind: "message", watcher, at: this.now(), message: decodeMessage(bytes) });
      },
      failed: (error) => end(asFailure(error)),
      left: () => end({ reason: "", cause: "" }),
    };
  }
}

function asFailure(error: unknown): Failure {
  if (typeof error === "object" && error !== null && !(error instanceof Error) && "reason" in error) return error as Failure;
  return failureOf(error);
}
