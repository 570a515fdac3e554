import { Fault } from "../domain/fault.js";
import { type Filter, filterHash, matchesAvailability, matchesServer, matchesTool } from "../domain/filter.js";
import { compareText, splitToolId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { Tool } from "../domain/server.js";
import { lowerBound, type NamespaceState, type ServerView, toolIdOf } from "./state.js";

export interface Page {
  /** Runs of frames, in order. */
  readonly frames: readonly Uint8Array[];
  readonly nextPageToken: string;
}

const EMPTY_PAGE: Page = { frames: [], nextPageToken: "" };

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
  const pieces: Uint8Array[] = [];
  let count = 0;
  let bytes = 0;
  let last = "";
  const page = (nextPageToken: string): Page => ({ frames: pieces, nextPageToken });
  for (const { view, from, to } of matching(ns, filter, after)) {
    const frames = view.frames();
    const fits = frames.fitting(from, Math.min(to, from + pageSize - count), LIMITS.pageBytes - bytes);
    // A page holds at least one, however large.
    const end = count === 0 ? Math.max(fits, from + 1) : fits;
    if (end > from) {
      const piece = frames.run(from, end);
      pieces.push(piece);
      count += end - from;
      bytes += piece.byteLength;
      last = toolIdOf(view, view.tools[end - 1] as Tool);
    }
    if (end < to) return page(formatPageToken(hash, last));
  }
  return page("");
}

/** All frames under a filter, in tool_id order. */
export function allFrames(ns: NamespaceState | undefined, filter: Filter): Uint8Array[] {
  const out: Uint8Array[] = [];
  if (!ns) return out;
  for (const { view, from, to } of matching(ns, filter, "")) {
    for (let i = from; i < to; i++) out.push(view.frames().run(i, i + 1));
  }
  return out;
}

/** Tools of one server that follow each other: the indexes `from` up to, without, `to`. Never empty. */
interface Run {
  readonly view: ServerView;
  readonly from: number;
  readonly to: number;
}

function* matching(ns: NamespaceState, filter: Filter, after: string): Generator<Run> {
  const last = after === "" ? undefined : splitToolId(after);
  const startKey = last ? `${last.serverId}/` : "";
  const start = lowerBound(ns.ordered, (s) => compareText(s.sortKey, startKey));
  for (let s = start; s < ns.ordered.length; s++) {
    const view = ns.ordered[s] as ServerView;
    if (!matchesServer(filter, filter.namespace, view.serverId)) continue;
    if (!matchesAvailability(filter, view.availability)) continue;
    const from = last && view.sortKey === startKey ? indexAfter(view, last.toolName) : 0;
    yield* runs(view, filter, from);
  }
}

function indexAfter(view: ServerView, toolName: string): number {
  const at = view.lowerBound(toolName);
  return view.tools[at]?.name === toolName ? at + 1 : at;
}

/** By the narrowest index of a server for a filter: a tag's list, or a range of names, which may be everything. */
function* runs(view: ServerView, filter: Filter, from: number): Generator<Run> {
  const { tools } = view;
  const tag = filter.tagsAll[0] ?? (filter.tagsAny.length === 1 ? filter.tagsAny[0] : undefined);
  if (tag !== undefined) {
    for (const i of view.withTag(tag)) {
      if (i >= from && matchesTool(filter, tools[i] as Tool)) yield { view, from: i, to: i + 1 };
    }
    return;
  }
  const named = namesFrom(view, filter.namePrefix, from);
  if (filter.tagsAny.length === 0) {
    if (named.from < named.to) yield { view, ...named };
  } else if (filter.tagsAny.some((t) => view.hasTag(t))) {
    for (let i = named.from; i < named.to; i++) {
      if (matchesTool(filter, tools[i] as Tool)) yield { view, from: i, to: i + 1 };
    }
  }
}

/** The tools whose names begin so; they follow each other, because tools are in name order. */
function namesFrom(view: ServerView, prefix: string, from: number): { from: number; to: number } {
  const { tools } = view;
  if (prefix === "") return { from, to: tools.length };
  const first = Math.max(from, view.lowerBound(prefix));
  let to = first;
  while (tools[to]?.name.startsWith(prefix)) to++;
  return { from: first, to };
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
