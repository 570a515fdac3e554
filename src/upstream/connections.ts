/** Connections by endpoint, transport and credential: era and session are found out once, remembered with a date, and looked at again. */
import type { Clock } from "../catalogue/ports.js";
import type { Dial } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import type { Channel } from "./channel.js";
import type { Connection } from "./connection.js";
import { abandonable, deadline } from "./deadline.js";
import type { EraTools } from "./era.js";
import { negotiate, openSseSession } from "./era.js";
import { HttpFailure, timedOut } from "./failures.js";
import type { Session } from "./session.js";

/** A server that was upgraded in place is noticed within this. */
const LOOK_AGAIN_MS = 3_600_000;
/** Endpoints remembered; the least recently used one goes first. */
const REMEMBERED = 20_000;

interface Entry {
  readonly channel: Channel;
  connection: Connection | undefined;
  /** Monotonic. */
  foundAtMs: number;
  /** It was found to speak HTTP+SSE although it was registered otherwise. */
  foundSse: boolean;
  /** The negotiation that is under way; whoever needs the connection waits for it. */
  pending: Promise<Connection> | undefined;
  /** A stream of change notices was open before. */
  listened: boolean;
  /** Who holds it now; and when somebody last did, monotonic. */
  holders: number;
  usedAtMs: number;
}

/** `D`: whatever tells one session from another; `keyOf` says it in a text. */
export class Connections<D extends Dial = Dial> {
  private readonly entries = new Map<string, Entry>();
  private readonly closing = new AbortController();

  constructor(
    private readonly tools: EraTools,
    private readonly channelTo: (dial: D) => Channel,
    private readonly keyOf: (dial: D) => string = dialKey,
  ) {}

  /** Keeps the session of a server from being idle until the answer is called. */
  hold(dial: D): () => void {
    const entry = this.entry(dial);
    entry.holders++;
    return () => {
      entry.holders--;
      entry.usedAtMs = this.clock.monotonic();
    };
  }

  /** Ends the sessions that nobody has held for so long. */
  async closeIdle(idleMs: number): Promise<void> {
    const now = this.clock.monotonic();
    const idle = [...this.entries].filter(([, { holders, usedAtMs }]) => holders === 0 && now - usedAtMs >= idleMs);
    for (const [key] of idle) this.entries.delete(key);
    await Promise.all(idle.map(([, { connection }]) => connection?.close()));
  }

  /** The connection to a server, negotiated if there is none or the known one is old. Throws UpstreamError. */
  async get(dial: D, signal: AbortSignal): Promise<Connection> {
    const entry = this.entry(dial);
    const { connection } = entry;
    if (connection && this.isFresh(entry)) return connection;
    const held = connection?.era === "legacy" ? (connection as Session) : undefined;
    return this.negotiated(dial, entry, held, signal);
  }

  /** A connection in place of one that failed; the same for all whom it failed. Throws UpstreamError. */
  async renew(dial: D, failed: Connection, signal: AbortSignal): Promise<Connection> {
    const entry = this.entry(dial);
    if (entry.connection !== undefined && entry.connection !== failed) return entry.connection;
    entry.connection = undefined;
    return this.negotiated(dial, entry, undefined, signal);
  }

  /** Notes that a stream opened; answers whether one had been open before. */
  reopened(dial: D): boolean {
    const entry = this.entry(dial);
    const before = entry.listened;
    entry.listened = true;
    return before;
  }

  /** Gives up handshakes under way and ends all sessions, as far as their servers listen. */
  async close(): Promise<void> {
    this.closing.abort();
    const open = [...this.entries.values()].flatMap(({ connection }) => (connection ? [connection] : []));
    this.entries.clear();
    await Promise.all(open.map((connection) => connection.close()));
  }

  private get clock(): Clock {
    return this.tools.clock;
  }

  private entry(dial: D): Entry {
    const key = this.keyOf(dial);
    const known = this.entries.get(key);
    const entry = known ?? {
      channel: this.channelTo(dial),
      connection: undefined,
      foundAtMs: 0,
      foundSse: false,
      pending: undefined,
      listened: false,
      holders: 0,
      usedAtMs: this.clock.monotonic(),
    };
    this.entries.delete(key);
    this.entries.set(key, entry);
    if (known === undefined) this.forgetOldest();
    return entry;
  }

  private forgetOldest(): void {
    if (this.entries.size <= REMEMBERED) return;
    for (const [key, { connection }] of this.entries) {
      this.entries.delete(key);
      void connection?.close();
      return;
    }
  }

  /** The negotiation belongs to nobody in particular: it has its own deadline, and goes on when one of the waiting leaves. */
  private negotiated(
    dial: D,
    entry: Entry,
    held: Session | undefined,
    signal: AbortSignal,
  ): Promise<Connection> {
    entry.pending ??= this.negotiate(dial, entry, held).finally(() => {
      entry.pending = undefined;
    });
    return abandonable(entry.pending, signal, () => timedOut(dial.endpoint, "the handshake", signal.reason));
  }

  private async negotiate({ transport }: D, entry: Entry, held: Session | undefined): Promise<Connection> {
    const limit = deadline(this.clock, LIMITS.loadMs, this.closing.signal);
    try {
      const session = await this.remembered(entry, limit.signal);
      const connection = session ?? (await negotiate(entry.channel, this.tools, { transport, held }, limit.signal));
      if (held && connection !== held) void held.close();
      entry.connection = connection;
      if (connection === session) return session;
      entry.foundAtMs = this.clock.monotonic();
      entry.foundSse = transport !== "http-sse" && connection.transport === "http-sse";
      return connection;
    } finally {
      limit.lift();
    }
  }

  /** Streams of HTTP+SSE come and go; what their server speaks is not asked anew for each. Undefined: it has to be. */
  private async remembered(entry: Entry, signal: AbortSignal): Promise<Session | undefined> {
    if (!entry.foundSse || !this.isFresh(entry)) return undefined;
    try {
      return await openSseSession(entry.channel, this.tools, signal);
    } catch (error) {
      if (error instanceof HttpFailure && error.kind !== "auth") return undefined;
      throw error;
    }
  }

  private isFresh(entry: Entry): boolean {
    return this.clock.monotonic() - entry.foundAtMs < LOOK_AGAIN_MS;
  }
}

/** A session belongs to whoever the server took us for. */
export function dialKey({ endpoint, transport, credential }: Dial): string {
  return JSON.stringify([endpoint, transport, credential?.namespace, credential?.name]);
}
