/**
 * One process's part of the history, written to a file as it happens: a process that is killed leaves all it has seen. Times are
 * those of the machine's monotonic clock, so parts of several processes can be put in order.
 */
import { closeSync, openSync, writeSync } from "node:fs";
import { type ServiceError, status } from "@grpc/grpc-js";
import { RegistryError } from "../../src/client/index.js";
import { decodeCall, decodeMessage, decodeWatch } from "../validators/decode.js";
import type { AnyCall, FaultDone, Item, Moment, Outcome } from "../validators/history.js";
import { type Failure, failureOf } from "../validators/links.js";
import { isMethod } from "../validators/methods.js";

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

/**
 * A line of a tape. A call or span is written when it begins, as if it never ended, and again when it has ended: whichever comes last
 * under a key counts.
 */
export interface Line {
  readonly key?: string;
  readonly item: Item;
}

export function monotonicMs(): number {
  return Math.round(Number(process.hrtime.bigint()) / 1_000) / 1_000;
}

const DEAF: CallEar = { answered: () => undefined, failed: () => undefined };
/** Of reads it is enough to know what was answered; of a write that nobody saw end it matters that it began. */
const WRITES: readonly string[] = ["register", "renew", "deregister"];
const TOGETHER = 64 * 1024;

export class Tape {
  readonly #file: number;
  readonly #urgent: boolean;
  #n = 0;
  #keys = 0;
  #watchers = 0;
  #held = "";

  /** `name` makes watchers' names its own. With `urgent` each line is out of the process at once. */
  constructor(
    path: string,
    private readonly name: string,
    { urgent = false } = {},
  ) {
    this.#file = openSync(path, "w");
    this.#urgent = urgent;
  }

  now(): Moment {
    return { n: ++this.#n, ms: monotonicMs() };
  }

  write(item: Item, key?: string): void {
    const line: Line = key === undefined ? { item } : { key, item };
    this.#held += `${JSON.stringify(line)}\n`;
    if (this.#urgent || this.#held.length > TOGETHER) this.flush();
  }

  flush(): void {
    if (this.#held !== "") writeSync(this.#file, this.#held);
    this.#held = "";
  }

  close(): void {
    this.flush();
    closeSync(this.#file);
  }

  /** Begins a span; `at` is undefined while it lasts. Answers what ends it. */
  span(make: (from: Moment, to: Moment | undefined) => Item): () => void {
    const key = this.#key();
    const from = this.now();
    this.write(make(from, undefined), key);
    return () => this.write(make(from, this.now()), key);
  }

  fault(what: FaultDone["what"], replica = ""): () => void {
    return this.span((from, to) => ({ kind: "fault", what, replica, from, to }));
  }

  believes(namespace: string, serverId: string, tools: readonly string[] | undefined): void {
    this.write({ kind: "belief", at: this.now(), namespace, serverId, tools: tools && [...tools].sort() });
  }

  call(replica: string, method: string, request: Uint8Array): CallEar {
    const decoded = isMethod(method) ? decodeCall(method, request) : undefined;
    if (!decoded) return DEAF;
    const call = this.now();
    const key = WRITES.includes(method) ? this.#key() : undefined;
    const item = (back: Moment | undefined, outcome: Outcome<unknown>) => ({ ...decoded.known, replica, call, back, outcome }) as AnyCall;
    if (key !== undefined) this.write(item(undefined, { kind: "pending" }), key);
    const close = (outcome: Outcome<unknown>): void => this.write(item(this.now(), outcome), key);
    return {
      answered: (answer) => close({ kind: "ok", value: decoded.read(answer) }),
      failed: (error) => close({ kind: "error", ...failure(error) }),
    };
  }

  watch(replica: string, request: Uint8Array): WatchEar {
    const watcher = `${this.name}.${++this.#watchers}`;
    const { filter, resumeToken } = decodeWatch(request);
    this.write({ kind: "watch", watcher, replica, namespace: filter.namespace, at: this.now(), filter, resumeToken });
    let over = false;
    const end = ({ reason, cause }: Pick<Failure, "reason" | "cause">): void => {
      if (over) return;
      over = true;
      this.write({ kind: "ended", watcher, at: this.now(), reason, cause });
    };
    return {
      message: (bytes) => {
        if (!over) this.write({ kind: "message", watcher, at: this.now(), message: decodeMessage(bytes) });
      },
      failed: (error) => end(failure(error)),
      left: () => end({ reason: "", cause: "" }),
    };
  }

  #key(): string {
    return `${this.name}:${++this.#keys}`;
  }
}

function failure(error: unknown): Failure {
  // What a link says of the end of a watch is a failure already.
  if (typeof error === "object" && error !== null && !(error instanceof Error) && "reason" in error) return error as Failure;
  if (error instanceof RegistryError) {
    return { reason: error.reason || error.code, cause: error.metadata["cause"] ?? "", message: error.message };
  }
  const failed = failureOf(error);
  // Not the registry's own words: the network's, or this side's deadline.
  const code = /^code (\d+)$/.exec(failed.reason)?.[1];
  return code === undefined ? failed : { ...failed, reason: status[Number(code) as ServiceError["code"]] ?? failed.reason };
}
