import type { Filter } from "../../domain/filter.js";
import { LIMITS } from "../../domain/limits.js";
import { formatResumeToken, formatRevision, type Position } from "../../domain/revision.js";
import type { WatchCodec } from "../api.js";
import type { History } from "../history.js";
import type { Entry } from "../ports.js";
import { allFrames } from "../stub-pages.js";
import { eventsOf } from "./events.js";
import { toolsAt } from "./tools-at.js";

/** Room for the fields beside the payload of one watch message. */
const ENVELOPE_BYTES = 512;
const PAYLOAD_BYTES = LIMITS.watchChunkBytes - ENVELOPE_BYTES;
/** Filters whose messages are kept for the entry at hand, and for snapshots. */
const CACHED_FILTERS = 1_024;

/** Snapshots kept, all filters together: a snapshot may be the whole catalogue. */
const SNAPSHOT_BYTES = 32 * 1024 * 1024;

/** A filter with its hash, made once per watcher. */
export interface HashedFilter {
  readonly filter: Filter;
  readonly hash: string;
}

/** Makes watch messages once per filter and shares the bytes between all watchers with that filter. */
export class WatchMessages {
  #entryRevision = 0;
  readonly #entryParts = new Map<string, readonly Uint8Array[]>();
  readonly #snapshots = new Map<string, { revision: number; chunks: readonly Uint8Array[] }>();
  /** Bytes put in since it was last emptied; replaced ones count until then. */
  #snapshotBytes = 0;
  #bookmarkRevision = -1;
  readonly #bookmarks = new Map<string, Uint8Array>();

  constructor(
    private readonly history: History,
    private readonly codec: WatchCodec,
  ) {}

  /** The messages of one entry, each at most LIMITS.watchChunkBytes; none when it does not concern the filter. */
  entry(entry: Entry, f: HashedFilter): readonly Uint8Array[] {
    // Watchers at the head all ask for the same entry, so only the newest one's messages are worth keeping.
    if (entry.position.revision < this.#entryRevision) return this.#encodeEntry(entry, f);
    if (entry.position.revision > this.#entryRevision) {
      this.#entryRevision = entry.position.revision;
      this.#entryParts.clear();
    }
    return remember(this.#entryParts, f.hash, () => this.#encodeEntry(entry, f));
  }

  /** The opening snapshot without its closing message. Reused while nothing in the namespace changes. */
  snapshot(f: HashedFilter): readonly Uint8Array[] {
    const ns = this.history.namespace(f.filter.namespace);
    const revision = ns?.revision ?? 0;
    const known = this.#snapshots.get(f.hash);
    if (known?.revision === revision) return known.chunks;
    const chunks = chunk(allFrames(ns, f.filter)).map((frames) => this.codec.snapshot(frames, undefined, ""));
    const bytes = chunks.reduce((sum, c) => sum + c.byteLength, 0);
    // Those of an earlier revision are no use to anybody either.
    this.#snapshotBytes += bytes;
    if (this.#snapshotBytes > SNAPSHOT_BYTES) {
      this.#snapshots.clear();
      this.#snapshotBytes = bytes;
    }
    this.#snapshots.set(f.hash, { revision, chunks });
    return chunks;
  }

  /** Closes a snapshot. Without a token the watcher has to begin again one day: it was served from a stale catalogue. */
  snapshotEnd(position: Position, f: HashedFilter, resumable: boolean): Uint8Array {
    const token = resumable ? formatResumeToken(position, f.hash) : "";
    return this.codec.snapshot([], { token }, formatRevision(position));
  }

  bookmark(position: Position, f: HashedFilter): Uint8Array {
    if (this.#bookmarkRevision !== position.revision) {
      this.#bookmarkRevision = position.revision;
      this.#bookmarks.clear();
    }
    return remember(this.#bookmarks, f.hash, () =>
      this.codec.bookmark(formatResumeToken(position, f.hash), formatRevision(position)),
    );
  }

  #encodeEntry(entry: Entry, f: HashedFilter): readonly Uint8Array[] {
    const { change, position } = entry;
    const events = eventsOf(change, f.filter, () =>
      toolsAt(this.history, change.namespace, change.serverId, position.revision),
    );
    if (events.length === 0) return [];
    const parts = chunk(events.map((e) => this.codec.event(e)));
    const revision = formatRevision(position);
    const token = formatResumeToken(position, f.hash);
    return parts.map((p, i) => this.codec.change(p, i === parts.length - 1 ? token : "", revision, entry.atMs));
  }
}

function remember<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (cache.size >= CACHED_FILTERS) cache.clear();
  cache.set(key, made);
  return made;
}

/** Groups pieces so that each group stays under the payload limit (one piece alone may pass it). */
function chunk(pieces: readonly Uint8Array[]): Uint8Array[][] {
  const groups: Uint8Array[][] = [];
  let group: Uint8Array[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    if (group.length > 0 && bytes + piece.byteLength > PAYLOAD_BYTES) {
      groups.push(group);
      group = [];
      bytes = 0;
    }
    group.push(piece);
    bytes += piece.byteLength;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}
