import type { Fault } from "../../domain/fault.js";
import type { WatchCodec, WatchHandle, WatchSink } from "../api.js";
import type { History } from "../history.js";
import { type HashedFilter, WatchMessages } from "./messages.js";
import { type Opening, Watcher } from "./watcher.js";

/**
 * Fans one history out to its watchers. A commit never waits for a watcher: those whose transport is full are passed over
 * and read on from the ring when they drain.
 */
export class WatchHub {
  readonly #watchers = new Set<Watcher>();
  readonly #messages: WatchMessages;
  /** Whether the catalogue is known to be current: only then may a bookmark say "you have everything" (P3). */
  #current = true;
  /** Why this hub ended; whoever was admitted just before hears it too. */
  #ended: Fault | undefined;

  constructor(
    private readonly history: History,
    codec: WatchCodec,
  ) {
    this.#messages = new WatchMessages(history, codec);
  }

  get size(): number {
    return this.#watchers.size;
  }

  get lagging(): number {
    let n = 0;
    for (const w of this.#watchers) if (w.lagging) n++;
    return n;
  }

  open(f: HashedFilter, opening: Opening, sink: WatchSink): WatchHandle {
    const watcher = new Watcher(this.history, this.#messages, f, sink, opening);
    this.#watchers.add(watcher);
    if (this.#ended) watcher.fail(this.#ended);
    watcher.pump(this.#current);
    this.#forgetIfClosed(watcher);
    return {
      drained: () => {
        watcher.drained(this.#current);
        this.#forgetIfClosed(watcher);
      },
      close: () => {
        watcher.close();
        this.#watchers.delete(watcher);
      },
    };
  }

  /** The history has new entries. */
  advanced(): void {
    for (const watcher of this.#watchers) {
      if (watcher.lagging) watcher.checkReach();
      else watcher.pump(this.#current);
      this.#forgetIfClosed(watcher);
    }
  }

  /** Called every LIMITS.bookmarkMs. */
  bookmark(): void {
    if (!this.#current) return;
    for (const watcher of this.#watchers) watcher.bookmark();
  }

  setCurrent(current: boolean): void {
    this.#current = current;
  }

  /** Ends every watcher. */
  failAll(fault: Fault): void {
    this.#ended = fault;
    for (const watcher of this.#watchers) {
      watcher.fail(fault);
      this.#forgetIfClosed(watcher);
    }
  }

  #forgetIfClosed(watcher: Watcher): void {
    if (watcher.closed) this.#watchers.delete(watcher);
  }
}
