import type { ServerResponse } from "node:http";

const KEEP_ALIVE_MS = 15_000;
/** What a reader may lag behind before it is cut off; it lists again when it comes back. */
const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/** A stream of messages on one HTTP response. */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #keepAlive: NodeJS.Timeout;

  constructor(response: ServerResponse, headers: Readonly<Record<string, string>> = {}) {
    this.#response = response;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      ...headers,
    });
    response.flushHeaders();
    // Proxies and clients give up on a response that is silent for minutes.
    this.#keepAlive = setInterval(() => response.write(":\n\n"), KEEP_ALIVE_MS);
    this.#keepAlive.unref();
    response.once("close", () => clearInterval(this.#keepAlive));
  }

  /** One message: a JSON text, whose line breaks are mere white space. */
  send(message: Buffer): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    const oneLine = message.includes(0x0a) || message.includes(0x0d) ? flatten(message) : message;
    this.#response.write(Buffer.concat([Buffer.from("event: message\ndata: "), oneLine, Buffer.from("\n\n")]));
    if (this.#response.writableLength > MAX_BACKLOG_BYTES) this.#response.destroy();
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end();
  }
}

function flatten(message: Buffer): Buffer {
  return Buffer.from(message.map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)));
}
