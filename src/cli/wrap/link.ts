import { memberAt, membersOf, replaced, slice } from "./json-span.js";

/** What the child answered, with the bytes of its `result` or `error` as it sent them. */
export interface Answer {
  readonly kind: "result" | "error";
  readonly bytes: Buffer;
}

/** Who hears what belongs to one request. */
export interface Asker {
  /** The id and the progress token as the asker wrote them, JSON text. */
  readonly id?: Buffer | undefined;
  readonly progressToken?: Buffer | undefined;
  /** A notification of this request, with the asker's own id and token put back. */
  onNotification?(message: Buffer): void;
}

export interface RequestHandle {
  readonly id: number;
  readonly answer: Promise<Answer>;
}

interface Pending extends Asker {
  readonly settle: (answer: Answer) => void;
}

export const SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId";

/**
 * JSON-RPC over a child's lines that keeps every byte but ids and tokens. Many askers share the child: each request gets
 * an id of ours, and the answer finds its asker by it.
 */
export class Link {
  readonly #send: (message: Buffer) => void;
  readonly #pending = new Map<number, Pending>();
  readonly #onNotification: (method: string, message: Buffer) => void;
  readonly #onNoise: (line: Buffer) => void;
  #lastId = 0;
  #ended: Answer | undefined;

  constructor(
    send: (message: Buffer) => void,
    /** Notifications that belong to no request. */
    onNotification: (method: string, message: Buffer) => void,
    /** Lines that are no JSON-RPC message. */
    onNoise: (line: Buffer) => void,
  ) {
    this.#send = send;
    this.#onNotification = onNotification;
    this.#onNoise = onNoise;
  }

  /** Sends a request given as a whole JSON-RPC message; its id (and progress token) are replaced. */
  request(message: Buffer, asker: Asker): RequestHandle {
    const id = ++this.#lastId;
    if (this.#ended) return { id, answer: Promise.resolve(this.#ended) };
    const answer = new Promise<Answer>((settle) => this.#pending.set(id, { ...asker, settle }));
    const token = memberAt(message, ["params", "_meta", "progressToken"]);
    let outgoing = token ? replaced(message, token, String(id)) : message;
    const idSpan = membersOf(outgoing).get("id");
    if (idSpan) outgoing = replaced(outgoing, idSpan, String(id));
    this.#send(outgoing);
    return { id, answer };
  }

  /** Sends a request of our own. */
  ask(method: string, params: object, asker: Asker = {}): RequestHandle {
    return this.request(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 0, method, params })), asker);
  }

  notify(message: Buffer): void {
    this.#send(message);
  }

  /** Tells the child that nobody waits for a request any more. A cancelled request gets no answer, so its asker gets ours. */
  cancel(id: number, notification?: Buffer): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    this.#pending.delete(id);
    const params = { requestId: id, reason: "the client does not wait any more" };
    this.notify(
      notification ?? Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params })),
    );
    pending.settle({ kind: "error", bytes: Buffer.from('{"code":-32800,"message":"the request was cancelled"}') });
  }

  /** Forgets a request whose asker is gone. */
  forget(id: number): void {
    this.#pending.delete(id);
  }

  /** The child is gone: every open and later request is answered with an error. */
  end(reason: string): void {
    const error = { code: -32603, message: reason };
    this.#ended = { kind: "error", bytes: Buffer.from(JSON.stringify(error)) };
    for (const pending of this.#pending.values()) pending.settle(this.#ended);
    this.#pending.clear();
  }

  /** To be called with every line of the child. */
  receive(line: Buffer): void {
    if (line.length === 0) return;
    const message = parse(line);
    if (!message) return this.#onNoise(line);
    if (typeof message.method === "string") {
      if (message.id === undefined) this.#notified(message.method, line);
      else this.#asked(message.method, line);
      return;
    }
    const pending = typeof message.id === "number" ? this.#pending.get(message.id) : undefined;
    if (!pending) return; // Cancelled or answered twice: nobody waits.
    this.#pending.delete(message.id as number);
    const members = membersOf(line);
    const result = members.get("result");
    const error = members.get("error");
    if (result) pending.settle({ kind: "result", bytes: slice(line, result) });
    else if (error) pending.settle({ kind: "error", bytes: slice(line, error) });
    else
      pending.settle({
        kind: "error",
        bytes: Buffer.from('{"code":-32603,"message":"the server answered neither result nor error"}'),
      });
  }

  #notified(method: string, line: Buffer): void {
    const token = method === "notifications/progress" ? memberAt(line, ["params", "progressToken"]) : undefined;
    const subscription = memberAt(line, ["params", "_meta", SUBSCRIPTION_KEY]);
    const span = token ?? subscription;
    if (!span) return method === "notifications/cancelled" ? undefined : this.#onNotification(method, line);
    const owner = this.#pending.get(Number(JSON.parse(slice(line, span).toString()) as unknown));
    const theirs = token ? owner?.progressToken : owner?.id;
    owner?.onNotification?.(theirs ? replaced(line, span, theirs) : line);
  }

  /** We declared no capabilities, so nothing but a ping has an answer. */
  #asked(method: string, line: Buffer): void {
    const idSpan = membersOf(line).get("id");
    const id = idSpan ? slice(line, idSpan).toString() : "null";
    const error = JSON.stringify({ code: -32601, message: `${method} is not supported by this client` });
    this.#send(Buffer.from(`{"jsonrpc":"2.0","id":${id},${method === "ping" ? '"result":{}' : `"error":${error}`}}`));
  }
}

interface Shape {
  readonly id?: unknown;
  readonly method?: unknown;
}

function parse(line: Buffer): Shape | undefined {
  try {
    const value: unknown = JSON.parse(line.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
