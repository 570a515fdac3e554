/** Lists of stubs: as they were read, and as the messages of a watch add up to them. */
import { filterHash } from "../../src/domain/filter.js";
import { compareText } from "../../src/domain/ids.js";
import type { Position } from "../../src/domain/revision.js";
import { stubsIn, withAvailability } from "./frames.js";
import { type History, only, type SeenEvent, type SeenStub, type StubsCall } from "./history.js";
import type { Step, Stream } from "./streams.js";

/** All pages of one list, read at one revision: an exact cut of the catalogue. */
export interface ReadList {
  readonly first: StubsCall;
  readonly last: StubsCall;
  readonly hash: string;
  readonly revision: string;
  readonly stale: boolean;
  /** Pages, one after the other. */
  readonly frames: string;
  readonly stubs: readonly SeenStub[];
}

type Answered = StubsCall & { readonly outcome: { readonly kind: "ok" } };

const cache = new WeakMap<History, readonly ReadList[]>();

/** Lists whose pages all have one revision. Others are no cut, and only their pages say something. */
export function listsOf(history: History): readonly ReadList[] {
  const known = cache.get(history);
  if (known) return known;
  const calls = only(history, "stubs")
    .filter((c): c is Answered => c.outcome.kind === "ok" && !c.outcome.value.notModified)
    .sort((a, b) => a.call.n - b.call.n);
  const later = new Map<string, Answered[]>();
  for (const c of calls) {
    const key = pageKey(c.replica, c.pageToken, c.outcome.value.revision);
    const same = later.get(key);
    if (same) same.push(c);
    else later.set(key, [c]);
  }
  const lists = calls.filter((c) => c.pageToken === "").flatMap((first) => listFrom(first, later));
  cache.set(history, lists);
  return lists;
}

function pageKey(replica: string, pageToken: string, revision: string): string {
  return `${replica} ${pageToken} ${revision}`;
}

function listFrom(first: Answered, later: ReadonlyMap<string, readonly Answered[]>): ReadList[] {
  const hash = filterHash(first.filter);
  const pages = [first];
  for (let page = first; page.outcome.value.nextPageToken !== ""; ) {
    const { nextPageToken, revision } = page.outcome.value;
    const after = page.back?.n ?? Number.POSITIVE_INFINITY;
    const next = later.get(pageKey(first.replica, nextPageToken, revision))?.find((c) => c.call.n > after);
    if (!next) return [];
    pages.push(next);
    page = next;
  }
  const parts = pages.map((p) => Buffer.from(p.outcome.value.frames, "base64"));
  const frames = Buffer.concat(parts).toString("base64");
  const { revision } = first.outcome.value;
  const stale = pages.some((p) => p.outcome.value.stale);
  return [{ first, last: pages.at(-1) ?? first, hash, revision, stale, frames, stubs: stubsIn(frames) }];
}

/** A list that follows the messages of a watch. */
export class Folded {
  readonly #stubs = new Map<string, SeenStub>();

  take(step: Step): void {
    if (step.kind === "snapshot") {
      this.#stubs.clear();
      for (const stub of step.stubs) this.#stubs.set(stub.toolId, stub);
    }
    for (const event of step.events) this.#event(event);
  }

  #event(event: SeenEvent): void {
    if (event.type === "AVAILABILITY_CHANGED") {
      for (const [id, stub] of this.#stubs) {
        if (id.startsWith(`${event.serverId}/`)) this.#stubs.set(id, withAvailability(stub, event.availability));
      }
    } else if (event.stub) this.#stubs.set(event.toolId, event.stub);
    else this.#stubs.delete(event.toolId);
  }

  /** Names of one server's tools, sorted. */
  toolsOf(serverId: string): string[] {
    const prefix = `${serverId}/`;
    const ids = [...this.#stubs.keys()].filter((id) => id.startsWith(prefix));
    return ids.map((id) => id.slice(prefix.length)).sort(compareText);
  }

  /** In tool_id order. */
  get stubs(): SeenStub[] {
    return [...this.#stubs.values()].sort((a, b) => compareText(a.toolId, b.toolId));
  }
}

/**
 * Calls back for each place that is asked for and lies in what the stream has seen, with the list there. Only for streams that
 * began with a snapshot. `within` says whether a place lies in the stream's own history.
 */
export function foldAt(
  stream: Stream,
  asked: readonly Position[],
  within: (place: Position, last: Position) => boolean,
  visit: (place: Position, list: Folded) => void,
): void {
  const first = stream.steps.findIndex((s) => s.kind === "snapshot");
  const last = stream.steps.at(-1)?.position;
  const from = stream.steps[first]?.position;
  if (!last || !from) return;
  const places = asked.filter((p) => p.revision >= from.revision && within(p, last)).sort((a, b) => a.revision - b.revision);
  const list = new Folded();
  let at = first;
  for (const place of places) {
    for (let step = stream.steps[at]; step && step.position.revision <= place.revision; step = stream.steps[++at]) list.take(step);
    visit(place, list);
  }
}

export function difference(a: readonly SeenStub[], b: readonly SeenStub[]): string | undefined {
  const other = new Map(b.map((s) => [s.toolId, s]));
  for (const stub of a) {
    const same = other.get(stub.toolId);
    if (!same) return `${stub.toolId} is only in the first`;
    if (same.bytes !== stub.bytes) return `${stub.toolId} differs`;
    other.delete(stub.toolId);
  }
  for (const id of other.keys()) return `${id} is only in the second`;
  return undefined;
}
