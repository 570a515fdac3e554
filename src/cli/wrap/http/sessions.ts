import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { EventStream } from "./sse.js";

/** More sessions than this and the one that was quiet longest goes; its client is told by a 404 and starts a new one. */
const MAX_SESSIONS = 1_000;

/** One HTTP client of the session era. */
export class Session {
  readonly id = randomUUID();
  /** Requests under way: the client's id as JSON text, and the id they have at the child. */
  readonly open = new Map<string, number>();
  #stream: EventStream | undefined;

  /** Takes the place of an earlier stream: a client that reconnects comes before its old connection is noticed. */
  attach(response: ServerResponse): void {
    this.#stream?.end();
    const stream = new EventStream(response, { "mcp-session-id": this.id });
    this.#stream = stream;
    response.once("close", () => {
      if (this.#stream === stream) this.#stream = undefined;
    });
  }

  get listening(): boolean {
    return this.#stream !== undefined;
  }

  send(message: Buffer): void {
    this.#stream?.send(message);
  }

  end(): void {
    this.#stream?.end();
    this.#stream = undefined;
  }
}

/** All sessions, the one quiet longest first. */
export class Sessions {
  readonly #sessions = new Map<string, Session>();

  create(): Session {
    if (this.#sessions.size >= MAX_SESSIONS) this.#dropOne();
    const session = new Session();
    this.#sessions.set(session.id, session);
    return session;
  }

  find(id: string): Session | undefined {
    const session = this.#sessions.get(id);
    if (session) {
      this.#sessions.delete(id);
      this.#sessions.set(id, session);
    }
    return session;
  }

  remove(session: Session): void {
    this.#sessions.delete(session.id);
    session.end();
  }

  broadcast(message: Buffer): void {
    for (const session of this.#sessions.values()) session.send(message);
  }

  end(): void {
    for (const session of this.#sessions.values()) session.end();
    this.#sessions.clear();
  }

  #dropOne(): void {
    const all = [...this.#sessions.values()];
    const quiet = all.find((s) => !s.listening && s.open.size === 0) ?? all[0];
    if (quiet) this.remove(quiet);
  }
}
