import type { RelistCause } from "../domain/fault.js";
import { type Position, samePosition } from "../domain/revision.js";
import type { Entry } from "./ports.js";

export interface RingLimits {
  readonly revisions: number;
  readonly bytes: number;
}

/**
 * The recent history of one log, in order and without gaps: what lagging watchers and resume tokens are served from.
 * It is the one shared queue of all watchers, so a slow one costs no memory of its own.
 */
export class Ring {
  /** Entries[0] is dropped lazily: `#start` marks the oldest kept one, so trimming is amortised O(1). */
  #entries: Entry[] = [];
  #start = 0;
  #bytes = 0;

  constructor(
    private basePosition: Position,
    private readonly limits: RingLimits,
  ) {}

  /** The position just before the oldest kept entry. */
  get base(): Position {
    return this.basePosition;
  }

  get head(): Position {
    return this.#entries.length > this.#start ? (this.#entries.at(-1) as Entry).position : this.basePosition;
  }

  get length(): number {
    return this.#entries.length - this.#start;
  }

  /** Appends the entry that directly follows the head; throws if it does not, as that would be a silent gap (P2). */
  append(entry: Entry): void {
    const head = this.head;
    if (entry.position.revision !== head.revision + 1 || entry.prev !== head.chain) {
      throw new Error(`entry ${entry.position.revision} does not follow revision ${head.revision}`);
    }
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
    while (this.length > 1 && (this.length > this.limits.revisions || this.#bytes > this.limits.bytes))
      this.#dropOldest();
  }

  /** The entry with this revision, if kept. */
  at(revision: number): Entry | undefined {
    return this.#entries[this.#start + revision - this.basePosition.revision - 1];
  }

  /** Whether a reader may go on from here, or why not (P4). */
  check(position: Position): "ok" | RelistCause {
    if (position.revision > this.head.revision) return "ahead";
    if (position.revision < this.basePosition.revision) return "compacted";
    const known =
      position.revision === this.basePosition.revision ? this.basePosition : this.at(position.revision)?.position;
    return known && samePosition(known, position) ? "ok" : "chain";
  }

  /** The position of a revision, if it is still kept. */
  positionOf(revision: number): Position | undefined {
    return revision === this.basePosition.revision ? this.basePosition : this.at(revision)?.position;
  }

  #dropOldest(): void {
    const oldest = this.#entries[this.#start] as Entry;
    this.basePosition = oldest.position;
    this.#bytes -= oldest.bytes;
    this.#entries[this.#start] = undefined as unknown as Entry;
    this.#start++;
    if (this.#start > 1024 && this.#start * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#start);
      this.#start = 0;
    }
  }
}
