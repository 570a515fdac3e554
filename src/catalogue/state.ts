import { compareText, toolId } from "../domain/ids.js";
import type { Availability, ServerRecord, Tool } from "../domain/server.js";
import { Frames } from "./frames.js";
import { shownOf } from "../domain/quarantine.js";
import type { StubCodec } from "./ports.js";

/** A server as readers need it: its record, and its tools as ready-made list elements. Immutable. */
export class ServerView {
  /** Servers sorted by this are sorted by tool_id too: `/` sorts after `.` and `-`, so `a.b/x` < `a/x`. */
  readonly sortKey: string;
  /** Those that lists show, in name order: withheld ones are only in the record. */
  readonly tools: readonly Tool[];
  #frames: Frames | undefined;
  #byTag: Map<string, readonly number[]> | undefined;

  constructor(
    readonly record: ServerRecord,
    private readonly codec: StubCodec,
  ) {
    this.sortKey = `${record.header.serverId}/`;
    this.tools = shownOf(record.tools);
  }

  get serverId(): string {
    return this.record.header.serverId;
  }

  get availability(): Availability {
    return this.record.header.availability;
  }

  /** Encoded list elements in name order; made on first use, kept for good. */
  frames(): Frames {
    this.#frames ??= new Frames(this.tools, this.record.header.availability, this.codec);
    return this.#frames;
  }

  /** Indexes of the tools that carry a tag, ascending. */
  withTag(tag: string): readonly number[] {
    if (!this.#byTag) {
      const index = new Map<string, number[]>();
      this.tools.forEach((tool, i) => {
        for (const t of tool.tags) {
          const list = index.get(t);
          if (list) list.push(i);
          else index.set(t, [i]);
        }
      });
      this.#byTag = index;
    }
    return this.#byTag.get(tag) ?? [];
  }

  hasTag(tag: string): boolean {
    return this.withTag(tag).length > 0;
  }

  /** Index of the first listed tool whose name is ≥ the given one. */
  lowerBound(name: string): number {
    return lowerBound(this.tools, (t) => compareText(t.name, name));
  }

  tool(name: string): Tool | undefined {
    const found = this.tools[this.lowerBound(name)];
    return found?.name === name ? found : undefined;
  }
}

/** One tenant's servers. Changed in place by the fold; readers never hold on to its arrays across an await. */
export class NamespaceState {
  readonly servers = new Map<string, ServerView>();
  /** In sortKey order. */
  readonly ordered: ServerView[] = [];
  /** Revision of the last change inside this namespace; caches of answers are valid while it stands. */
  revision = 0;
  /** Withheld ones among them: they take their place. */
  toolCount = 0;
  #digests: Map<string, { serverId: string; toolName: string }> | undefined;

  put(view: ServerView, revision: number): void {
    const old = this.servers.get(view.serverId);
    const at = lowerBound(this.ordered, (s) => compareText(s.sortKey, view.sortKey));
    this.ordered.splice(at, old ? 1 : 0, view);
    this.servers.set(view.serverId, view);
    this.#changed(view.record.tools.length - (old?.record.tools.length ?? 0), revision);
  }

  remove(serverId: string, revision: number): void {
    const old = this.servers.get(serverId);
    if (old) {
      this.ordered.splice(
        lowerBound(this.ordered, (s) => compareText(s.sortKey, old.sortKey)),
        1,
      );
      this.servers.delete(serverId);
    }
    this.#changed(-(old?.record.tools.length ?? 0), revision);
  }

  /** A tool that has this digest now. */
  holderOf(digest: string): { serverId: string; toolName: string } | undefined {
    if (!this.#digests) {
      this.#digests = new Map();
      for (const view of this.ordered) {
        for (const tool of view.record.tools) {
          if (tool.digest && !this.#digests.has(tool.digest)) {
            this.#digests.set(tool.digest, { serverId: view.serverId, toolName: tool.name });
          }
        }
      }
    }
    return this.#digests.get(digest);
  }

  #changed(tools: number, revision: number): void {
    this.toolCount += tools;
    this.revision = revision;
    this.#digests = undefined;
  }
}

/** First index for which `compare` is not negative, in a list sorted accordingly. */
export function lowerBound<T>(list: readonly T[], compare: (item: T) => number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    const item = list[mid] as T;
    if (compare(item) < 0) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** `server_id/name` of a tool of a view. */
export function toolIdOf(view: ServerView, tool: Tool): string {
  return toolId(view.serverId, tool.name);
}
