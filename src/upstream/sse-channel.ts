/** HTTP+SSE of 2024-11-05: a stream brings whatever the server says, and names first where it is to be answered. */
import type { Clock } from "../catalogue/ports.js";
import { UpstreamError } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import type { Answer, Call, Channel, OnMessage, SessionChannel } from "./channel.js";
import { isUnaddressedError, resultFrom } from "./channel.js";
import { abandonable } from "./deadline.js";
import type { ServerEvent } from "./events.js";
import { serverEvents } from "./events.js";
import { place, timedOut } from "./failures.js";
import type { RpcMessage } from "./messages.js";
import { readMessages } from "./messages.js";

/** A stream that nobody has used for this long is let go: it is a connection at both ends. */
const IDLE_MS = 30_000;
/** An answer may overtake the 202 of its request, which is waited for no longer than this. */
const RECEIPT_MS = 1_000;

/** The stream had ended before it was used: a new one may do. */
export class StreamGone extends UpstreamError {
  constructor(endpoint: string, cause: unknown) {
    super("connect", `the event stream of ${place(endpoint)} has ended`, cause);
  }
}

/** The server wants its messages where it may not have them. */
export class ForeignPost extends UpstreamError {
  constructor(endpoint: string, named: string) {
    const text = `${place(endpoint)} wants messages to be posted to ${place(named)}, and they are posted to its own origin alone`;
    super("protocol", text);
  }
}

interface Hearer {
  readonly onMessage: OnMessage;
  readonly fail: (error: unknown) => void;
}

interface Waiting extends Hearer {
  readonly answer: (message: RpcMessage) => void;
}

export class SseChannel implements SessionChannel {
  readonly transport = "http-sse";
  private readonly calls = new Map<unknown, Waiting>();
  private readonly followers = new Set<Hearer>();
  /** Bytes since something was asked or answered. */
  private unanswered = 0;
  private idle = new AbortController();
  private ended: { readonly cause: unknown } | undefined;

  private constructor(
    private readonly posts: Channel,
    readonly endpoint: string,
    private readonly clock: Clock,
    private readonly ending: AbortController,
  ) {}

  /** Opens the stream and waits for the place to post to. `signal` goes on to hold for the stream. Throws UpstreamError. */
  static async open(channel: Channel, clock: Clock, signal: AbortSignal): Promise<SseChannel> {
    const { endpoint } = channel;
    const ending = new AbortController();
    const response = await channel.openByGet("messages", {}, AbortSignal.any([signal, ending.signal]));
    let opened: SseChannel | undefined;
    let early = 0;
    const count = (bytes: number) => opened?.count(bytes) ?? (early += bytes);
    const events = serverEvents(counted(response.chunks(Number.POSITIVE_INFINITY), endpoint, count), LIMITS.upstreamBytes, () =>
      tooLarge(endpoint),
    );
    try {
      const named = postUrl(endpoint, await namedPlace(endpoint, events));
      opened = new SseChannel(channel.at(named), endpoint, clock, ending);
    } catch (error) {
      ending.abort();
      if (!signal.aborted) throw error;
      const text = `${place(endpoint)} opened an event stream and did not say in time where messages are to be posted`;
      throw new UpstreamError("timeout", text, error);
    }
    void opened.read(events);
    opened.rest();
    return opened;
  }

  async call(call: Call, signal: AbortSignal, onMessage: OnMessage): Promise<Answer> {
    const { id, method, params, headers, once } = call;
    this.use();
    if (this.calls.size === 0) this.unanswered = 0;
    const answer = new Promise<RpcMessage>((answer, fail) => {
      this.calls.set(id, { answer, fail, onMessage });
    });
    const answered = new AbortController();
    const message = { jsonrpc: "2.0", id, method, params };
    const told = this.posts.tell(message, headers, this.until(signal, answered.signal), once);
    try {
      const work = Promise.race([answer, told.then(() => answer)]);
      const reply = await abandonable(work, signal, () => timedOut(this.endpoint, method, signal.reason));
      return { result: resultFrom(this.endpoint, call, reply), header: () => undefined };
    } catch (error) {
      // Nothing came for the only one who waits: whether anything still comes on this stream is doubtful.
      if (signal.aborted && this.calls.size === 1) this.end(error);
      throw error;
    } finally {
      this.calls.delete(id);
      this.giveUp(told, answered);
      this.rest();
    }
  }

  async tell(message: object, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
    if (this.ended) throw new StreamGone(this.endpoint, this.ended.cause);
    try {
      await this.posts.tell(message, headers, this.until(signal));
    } catch (error) {
      // The end of the stream ends what is on its way, and is why.
      throw this.causeOfEnd() ?? error;
    }
  }

  async follow(_headers: object, onOpen: () => void, onMessage: OnMessage, signal: AbortSignal): Promise<void> {
    this.use();
    let hearer: Hearer | undefined;
    const failed = new Promise<never>((_resolve, fail) => {
      hearer = { onMessage, fail };
      this.followers.add(hearer);
    });
    try {
      onOpen();
      await abandonable(failed, signal, () => timedOut(this.endpoint, "the stream of messages", signal.reason));
    } finally {
      if (hearer) this.followers.delete(hearer);
      this.rest();
    }
  }

  async leave(): Promise<void> {
    this.end(new UpstreamError("connect", `the event stream of ${place(this.endpoint)} was closed from here`));
  }

  /** Answers the bytes that have come for nothing. Notices may go on for ever while somebody hears them and nobody waits. */
  private count(bytes: number): number {
    const forNotices = this.followers.size > 0 && this.calls.size === 0;
    this.unanswered = forNotices ? 0 : this.unanswered + bytes;
    return this.unanswered;
  }

  private async read(events: AsyncIterable<ServerEvent>): Promise<void> {
    try {
      for await (const { name, data } of events) {
        if (name !== "" && name !== "message") continue;
        for (const message of readMessages(this.endpoint, data)) this.take(message);
      }
      this.end(new UpstreamError("connect", `${place(this.endpoint)} ended its event stream`));
    } catch (error) {
      this.end(error);
    }
  }

  private take(message: RpcMessage): void {
    const { value } = message;
    if (!("method" in value)) {
      const [only, ...others] = this.calls.values();
      const meant = isUnaddressedError(message) && others.length === 0 ? only : undefined;
      const waiting = this.calls.get(value["id"]) ?? meant;
      if (waiting) this.unanswered = 0;
      waiting?.answer(message);
      return;
    }
    const hearers = [...this.followers, ...this.calls.values()];
    // A notice is for everybody, a request wants one answer.
    for (const { onMessage } of "id" in value ? hearers.slice(0, 1) : hearers) onMessage(message);
  }

  private use(): void {
    if (this.ended) throw new StreamGone(this.endpoint, this.ended.cause);
    this.idle.abort();
  }

  private rest(): void {
    if (this.calls.size > 0 || this.followers.size > 0 || this.ended) return;
    this.idle.abort();
    const idle = new AbortController();
    this.idle = idle;
    void this.clock.sleep(IDLE_MS, idle.signal).then(() => {
      if (!idle.signal.aborted) void this.leave();
    });
  }

  private end(cause: unknown): void {
    if (this.ended) return;
    this.ended = { cause };
    this.idle.abort();
    this.ending.abort();
    for (const { fail } of [...this.calls.values(), ...this.followers]) fail(cause);
  }

  private causeOfEnd(): unknown {
    return this.ended?.cause;
  }

  private until(...signals: AbortSignal[]): AbortSignal {
    return AbortSignal.any([...signals, this.ending.signal]);
  }

  private giveUp(told: Promise<void>, answered: AbortController): void {
    const received = new AbortController();
    // What becomes of the request is no news once its answer, or its failure, is told.
    void told.catch(() => undefined).then(() => received.abort());
    void this.clock.sleep(RECEIPT_MS, received.signal).then(() => answered.abort());
  }
}

/** Where messages are to be posted, as the server says it. */
async function namedPlace(endpoint: string, events: AsyncGenerator<ServerEvent>): Promise<string> {
  for (;;) {
    const next = await events.next();
    if (next.done) {
      const text = `${place(endpoint)} ended its event stream without saying where messages are to be posted`;
      throw new UpstreamError("protocol", text);
    }
    if (next.value.name === "endpoint") return next.value.data.toString("utf8");
  }
}

/** The text is not repeated in errors: it mostly holds the id of a session. */
function postUrl(endpoint: string, named: string): string {
  if (named.length > LIMITS.urlLength || !URL.canParse(named, endpoint)) {
    throw new UpstreamError("protocol", `${place(endpoint)} wants messages to be posted to what is no URL`);
  }
  const [url, own] = [new URL(named, endpoint), new URL(endpoint)];
  if (url.protocol !== own.protocol || url.host !== own.host) throw new ForeignPost(endpoint, url.href);
  return url.href;
}

/** `count` answers the bytes so far for which nothing was got. */
async function* counted(chunks: AsyncIterable<Buffer>, endpoint: string, count: (bytes: number) => number) {
  for await (const chunk of chunks) {
    if (count(chunk.length) > LIMITS.upstreamBytes) throw tooLarge(endpoint);
    yield chunk;
  }
}

function tooLarge(endpoint: string): UpstreamError {
  return new UpstreamError("too-large", `${place(endpoint)} sent more than ${LIMITS.upstreamBytes} bytes without an answer`);
}
