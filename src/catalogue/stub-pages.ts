import { Fault } from "../domain/fault.js";
import { type Filter, filterHash, matchesAvailability, matchesServer, matchesTool } from "../domain/filter.js";
import { splitToolId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import { compareText } from "../domain/ids.js";
import { lowerBound, type NamespaceState, type ServerView, toolIdOf } from "./state.js";

export interface Page {
  readonly frames: Uint8Array;
  readonly nextPageToken: string;
}

const EMPTY_PAGE: Page = { frames: new Uint8Array(0), nextPageToken: "" };

/** Answers kept per namespace; the most common readers ask for the same few lists again and again. */
const CACHED_PAGES = 256;

/** Whole encoded answers of one namespace, valid while its revision stands. */
class PageCache {
  revision = -1;
  readonly pages = new Map<string, Page>();

  get(revision: number, key: string): Page | undefined {
    if (this.revision !== revision) {
      this.pages.clear();
      this.revision = revision;
    }
    return this.pages.get(key);
  }

  set(key: string, page: Page): void {
    if (this.pages.size >= CACHED_PAGES) this.pages.delete(this.pages.keys().next().value as string);
    this.pages.set(key, page);
  }
}

const caches = new WeakMap<NamespaceState, PageCache>();

/** One keyset page of stubs in tool_id order, as concatenated frames. */
export function stubPage(ns: NamespaceState | undefined, filter: Filter, pageSize: number, pageToken: string): Page {
  const hash = filterHash(filter);
  const after = pageToken === "" ? "" : parsePageToken(pageToken, hash);
  if (!ns) return EMPTY_PAGE;
  let cache = caches.get(ns);
  if (!cache) {
    cache = new PageCache();
    caches.set(ns, cache);
  }
  const key = `${hash} ${pageSize} ${after}`;
  const known = cache.get(ns.revision, key);
  if (known) return known;
  const page = cut(ns, filter, hash, pageSize, after);
  cache.set(key, page);
  return page;
}

function cut(ns: NamespaceState, filter: Filter, hash: string, pageSize: number, after: string): Page {
  const frames: Uint8Array[] = [];
  let bytes = 0;
  let last = "";
  for (const { view, index } of matching(ns, filter, after)) {
    const frame = view.frames()[index] as Uint8Array;
    const full = frames.length >= pageSize || (frames.length > 0 && bytes + frame.byteLength > LIMITS.pageBytes);
    if (full) return { frames: Buffer.concat(frames, bytes), nextPageToken: formatPageToken(hash, last) };
    frames.push(frame);
    bytes += frame.byteLength;
    last = toolIdOf(view, view.record.tools[index] as (typeof view.record.tools)[number]);
  }
  return { frames: Buffer.concat(frames, bytes), nextPageToken: "" };
}

/** All frames under a filter, in tool_id order. */
export function allFrames(ns: NamespaceState | undefined, filter: Filter): Uint8Array[] {
  const out: Uint8Array[] = [];
  if (ns) for (const { view, index } of matching(ns, filter, "")) out.push(view.frames()[index] as Uint8Array);
  return out;
}

function* matching(ns: NamespaceState, filter: Filter, after: string): Generator<{ view: ServerView; index: number }> {
  const from = after === "" ? undefined : splitToolId(after);
  const startKey = from ? `${from.serverId}/` : "";
  const start = lowerBound(ns.ordered, (s) => compareText(s.sortKey, startKey));
  for (let s = start; s < ns.ordered.length; s++) {
    const view = ns.ordered[s] as ServerView;
    if (!matchesServer(filter, filter.namespace, view.serverId)) continue;
    if (!matchesAvailability(filter, view.availability)) continue;
    const afterName = from && view.sortKey === startKey ? from.toolName : undefined;
    for (const index of candidates(view, filter)) {
      const tool = view.record.tools[index];
      if (!tool || (afterName !== undefined && compareText(tool.name, afterName) <= 0)) continue;
      if (matchesTool(filter, tool)) yield { view, index };
    }
  }
}

/** The narrowest index of a server for a filter: a tag's list, a name range, or everything. */
function candidates(view: ServerView, filter: Filter): Iterable<number> {
  const required = filter.tagsAll[0];
  if (required !== undefined) return view.withTag(required);
  const only = filter.tagsAny.length === 1 ? filter.tagsAny[0] : undefined;
  if (only !== undefined) return view.withTag(only);
  if (filter.tagsAny.length > 1 && !filter.tagsAny.some((t) => view.hasTag(t))) return [];
  return namesFrom(view, filter.namePrefix);
}

function* namesFrom(view: ServerView, prefix: string): Generator<number> {
  const { tools } = view.record;
  for (let i = prefix === "" ? 0 : view.lowerBound(prefix); i < tools.length; i++) {
    if (!tools[i]?.name.startsWith(prefix)) return;
    yield i;
  }
}

function formatPageToken(hash: string, lastToolId: string): string {
  return Buffer.from(`p1.${hash}.${lastToolId}`).toString("base64url");
}

/** The tool_id after which the page begins. It need not exist any more. */
function parsePageToken(token: string, hash: string): string {
  const text = /^[A-Za-z0-9_-]+$/.test(token) ? Buffer.from(token, "base64url").toString("utf8") : "";
  const match = /^p1\.([0-9a-f]{16})\.([a-z0-9][a-z0-9._-]*\/[A-Za-z0-9_.-]+)$/.exec(text);
  if (!match?.[2]) throw invalidPageToken("it is not one that this registry gave");
  if (match[1] !== hash) throw invalidPageToken("it belongs to another filter or namespace");
  return match[2];
}

export function invalidPageToken(why: string): Fault {
  return new Fault("INVALID_PAGE_TOKEN", `page_token: ${why}; begin again without one`, {
    violations: [{ field: "page_token", description: why }],
  });
}
