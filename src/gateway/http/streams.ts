/** The GET streams of sessions: the only thing of a session that a gateway holds, and only while it is open. */
import type { ServerResponse } from "node:http";
import { isForbidden, isUnknownCaller } from "../away.js";
import type { Catalogue } from "../catalogue.js";
import type { ModuleMap } from "../module-map.js";
import type { GatewayObserver } from "../observer.js";
import { SessionGone } from "../seat.js";
import type { Toolsets } from "../toolsets.js";
import { fingerprint, visibleTools } from "../visible.js";
import { FACTS, type Logger, type Toolset } from "../words.js";
import { event, STREAM_HEADERS } from "./reply.js";
import { notificationMessage } from "./rpc.js";
import type { SessionSeat } from "./session-seat.js";

const KEEP_ALIVE_MS = 15_000;
/** Another replica may have changed the toolset; that is noticed about this late, because the caller itself was told at once. */
const FOLLOW_MS = 5_000;
/** A burst of changes is told once. */
const BURST_MS = 100;

export interface StreamParts {
  readonly catalogue: Catalogue;
  readonly map: ModuleMap;
  readonly toolsets: Toolsets;
  readonly observer: GatewayObserver;
  readonly log: Logger;
  readonly random: () => number;
}

export class Streams {
  readonly #open = new Set<SessionStream>();
  readonly #stop: () => void;
  #due: NodeJS.Timeout | undefined;

  constructor(
    private readonly parts: StreamParts,
    private readonly most: number,
  ) {
    this.#stop = parts.catalogue.onChange(() => {
      if (this.#open.size > 0) this.#due ??= setTimeout(() => this.#lookAll(), BURST_MS);
    });
  }

  get size(): number {
    return this.#open.size;
  }

  get full(): boolean {
    return this.#open.size >= this.most;
  }

  /** `lastEventId` is what the client last heard on a stream of its session, if it says so. */
  open(seat: SessionSeat, toolset: Toolset, response: ServerResponse, lastEventId: string | undefined): void {
    const stream = new SessionStream(this.parts, seat, response, toolset, lastEventId);
    this.#open.add(stream);
    this.parts.observer.streams(this.#open.size);
    response.once("close", () => {
      this.#open.delete(stream);
      this.parts.observer.streams(this.#open.size);
      stream.left();
    });
  }

  close(): void {
    this.#stop();
    clearTimeout(this.#due);
    for (const stream of this.#open) stream.end();
  }

  #lookAll(): void {
    this.#due = undefined;
    for (const stream of this.#open) void stream.look();
  }
}

/** One open stream: tells `list_changed` whenever its session's list is another one than the client last heard of. */
class SessionStream {
  #toolset: Toolset;
  #told: string | undefined;
  #looking = false;
  #again = false;
  readonly #forget: () => void;
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(
    private readonly parts: StreamParts,
    private readonly seat: SessionSeat,
    private readonly response: ServerResponse,
    toolset: Toolset,
    lastEventId: string | undefined,
  ) {
    this.#toolset = toolset;
    this.#told = lastEventId;
    response.writeHead(200, STREAM_HEADERS);
    response.write(": open\n\n");
    this.#forget = parts.toolsets.on(seat.handle, (changed) => (changed ? this.#changed(changed) : this.end()));
    this.#timers = [
      setInterval(() => void response.write(": still here\n\n"), KEEP_ALIVE_MS),
      setInterval(() => void this.#follow(), FOLLOW_MS * (0.8 + 0.4 * parts.random())),
    ];
    void this.look();
  }

  /** Compares the list as it is now with what the client heard of. */
  async look(): Promise<void> {
    if (this.#toolset.facts[FACTS.mode] === "stable") return;
    if (this.#looking) return void (this.#again = true);
    this.#looking = true;
    try {
      do {
        this.#again = false;
        const { catalogue, map } = this.parts;
        await map.read();
        const now = fingerprint(visibleTools(this.#toolset, map.always, catalogue), map.mark, catalogue);
        if (this.#told !== undefined && now !== this.#told) this.#tell(now);
        this.#told = now;
      } while (this.#again);
    } catch (error) {
      this.parts.log.debug({ err: String(error) }, "a session's list cannot be looked at now");
    } finally {
      this.#looking = false;
    }
  }

  end(): void {
    this.left();
    this.response.end();
  }

  left(): void {
    this.#forget();
    for (const timer of this.#timers) clearInterval(timer);
  }

  #tell(id: string): void {
    this.response.write(event(notificationMessage("notifications/tools/list_changed", {}), id));
  }

  #changed(toolset: Toolset): void {
    this.#toolset = toolset;
    void this.look();
  }

  /** Also keeps the session from falling idle. */
  async #follow(): Promise<void> {
    try {
      const { toolset } = await this.seat.read();
      if (toolset.etag !== this.#toolset.etag) this.#changed(toolset);
    } catch (error) {
      // The next request of the client will hear the same, and begins a new session, or shows another token.
      if (error instanceof SessionGone || isUnknownCaller(error) || isForbidden(error)) this.end();
    }
  }
}
