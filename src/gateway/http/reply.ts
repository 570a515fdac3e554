/** The answer to one POST: JSON, or a stream as soon as something has to be told before the answer. */
import type { ServerResponse } from "node:http";
import { notificationMessage } from "./rpc.js";

const KEEP_ALIVE_MS = 15_000;
/** Proxies and clients give up on a connection that says nothing, so a slow answer becomes a stream. */
const PATIENCE_MS = 10_000;

export const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export class Reply {
  #timer: NodeJS.Timeout | undefined;
  #streaming = false;

  constructor(
    private readonly response: ServerResponse,
    /** Whether the client reads streams. */
    private readonly streams: boolean,
    /** More than one message is answered. */
    private readonly batch: boolean,
  ) {
    if (streams) this.#timer = setTimeout(() => this.#stream(), PATIENCE_MS);
    response.once("close", () => this.#quiet());
  }

  /** Left out where the client reads no streams. */
  notify(method: string, params: object): void {
    if (!this.streams || this.response.writableEnded) return;
    this.#stream();
    this.response.write(event(notificationMessage(method, params)));
  }

  /** All answers, in the order of the requests. */
  end(messages: readonly string[]): void {
    this.#quiet();
    if (this.response.writableEnded || this.response.destroyed) return;
    if (this.#streaming) {
      this.response.end(messages.map((m) => event(m)).join(""));
      return;
    }
    this.response.writeHead(200, { "content-type": "application/json" });
    this.response.end(this.batch ? `[${messages.join(",")}]` : messages[0]);
  }

  #stream(): void {
    if (this.#streaming || this.response.headersSent || this.response.destroyed) return;
    this.#quiet();
    this.#streaming = true;
    this.response.writeHead(200, STREAM_HEADERS);
    this.response.flushHeaders();
    this.#timer = setInterval(() => void this.response.write(": still here\n\n"), KEEP_ALIVE_MS);
  }

  #quiet(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** One server-sent event. */
export function event(message: string, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: message\ndata: ${message}\n\n`;
}
