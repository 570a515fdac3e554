import { Fault } from "../../domain/fault.js";
import { formatResumeToken, type Position } from "../../domain/revision.js";
import type { WatchSink } from "../api.js";
import type { History } from "../history.js";
import type { HashedFilter, WatchMessages } from "./messages.js";

/** How a watcher begins. */
export type Opening =
  /** With a snapshot of the head; `resumable: false` when the catalogue is stale. */
  | { readonly kind: "snapshot"; readonly resumable: boolean }
  /** After a position that the ring has checked. */
  | { readonly kind: "resume"; readonly after: Position };

/**
 * One watch: a cursor into the history. It owns no queue beyond the parts of the message it is at: while its transport
 * does not drain it simply stays behind, until the ring has dropped what it needs (WATCHER_TOO_SLOW).
 */
export class Watcher {
  /** Everything up to here was handed to the transport, or does not concern the filter. */
  #cursor: number;
  #token: string;
  #pending: readonly Uint8Array[];
  #pendingAt = 0;
  /** Token that holds once #pending is through. */
  #pendingToken: string;
  #blocked = false;
  #closed = false;
  #bookmarkDue: boolean;

  constructor(
    private readonly history: History,
    private readonly messages: WatchMessages,
    private readonly f: HashedFilter,
    private readonly sink: WatchSink,
    opening: Opening,
  ) {
    const start = opening.kind === "resume" ? opening.after : history.head;
    this.#cursor = start.revision;
    const token = formatResumeToken(start, f.hash);
    this.#token = opening.kind === "resume" ? token : "";
    this.#pendingToken = opening.kind === "resume" || opening.resumable ? token : "";
    this.#pending =
      opening.kind === "resume" ? [] : [...messages.snapshot(f), messages.snapshotEnd(start, f, opening.resumable)];
    // A watcher learns at once how far it is, and one that only has a list whether that list is current.
    this.#bookmarkDue = true;
  }

  /** Behind because its transport is full. */
  get lagging(): boolean {
    return this.#blocked;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Writes as much as the transport takes. `bookmarks` are allowed while the catalogue is known to be current. */
  pump(bookmarks: boolean): void {
    while (!this.#closed && !this.#blocked) {
      const next = this.#pending[this.#pendingAt];
      if (next) {
        this.#write(next);
        if (++this.#pendingAt === this.#pending.length) this.#token = this.#pendingToken;
      } else if (this.#cursor < this.history.head.revision) {
        this.#nextEntry();
      } else if (this.#bookmarkDue && bookmarks) {
        this.#bookmarkDue = false;
        this.#token = formatResumeToken(this.history.head, this.f.hash);
        this.#write(this.messages.bookmark(this.history.head, this.f));
      } else return;
    }
  }

  bookmark(): void {
    this.#bookmarkDue = true;
    this.pump(true);
  }

  /** The ring has dropped its oldest entries; ends the watcher if it still needed one (never a silent gap, P2). */
  checkReach(): void {
    if (this.#closed || this.#cursor >= this.history.ring.base.revision) return;
    this.fail(
      new Fault(
        "WATCHER_TOO_SLOW",
        "this watcher did not read for so long that the history moved on; resume or relist",
        {
          metadata: { resume_token: this.#token },
        },
      ),
    );
  }

  drained(bookmarks: boolean): void {
    this.#blocked = false;
    this.pump(bookmarks);
  }

  close(): void {
    this.#closed = true;
  }

  fail(fault: Fault): void {
    if (this.#closed) return;
    this.#closed = true;
    this.sink.fail(fault);
  }

  #nextEntry(): void {
    const entry = this.history.ring.at(this.#cursor + 1);
    if (!entry) return this.checkReach();
    this.#cursor++;
    this.#pending = this.messages.entry(entry, this.f);
    this.#pendingAt = 0;
    this.#pendingToken = formatResumeToken(entry.position, this.f.hash);
  }

  #write(message: Uint8Array): void {
    if (!this.sink.write(message)) this.#blocked = true;
  }
}
