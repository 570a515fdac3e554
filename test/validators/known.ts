/** What all watchers together were told: each revision with its events, filter by filter. */
import { type Filter } from "../../src/domain/filter.js";
import { splitToolId } from "../../src/domain/ids.js";
import type { Position } from "../../src/domain/revision.js";
import type { History, SeenEvent } from "./history.js";
import { keyOf } from "./lineage.js";
import { streamsOf, type Step, type Stream } from "./streams.js";

export interface Telling {
  readonly stream: Stream;
  readonly step: Step;
}

export interface KnownRevision {
  readonly namespace: string;
  readonly position: Position;
  /** Filter hash → who was told what. */
  readonly byFilter: ReadonlyMap<string, readonly Telling[]>;
}

const cache = new WeakMap<History, readonly KnownRevision[]>();

/** In order of their numbers. */
export function knownRevisions(history: History): readonly KnownRevision[] {
  const known = cache.get(history);
  if (known) return known;
  const found = new Map<string, KnownRevision & { readonly byFilter: Map<string, Telling[]> }>();
  for (const stream of streamsOf(history)) {
    for (const step of stream.steps) {
      if (step.kind !== "change") continue;
      const key = `${stream.watch.namespace} ${keyOf(step.position)}`;
      const revision = found.get(key) ?? { namespace: stream.watch.namespace, position: step.position, byFilter: new Map<string, Telling[]>() };
      found.set(key, revision);
      revision.byFilter.set(stream.hash, [...(revision.byFilter.get(stream.hash) ?? []), { stream, step }]);
    }
  }
  const all = [...found.values()].sort((a, b) => a.position.revision - b.position.revision);
  cache.set(history, all);
  return all;
}

/** What an event is about, inside one revision. */
export function subjectOf(event: SeenEvent): string {
  return event.toolId || `server ${event.serverId}`;
}

/**
 * Whether an event that was told under one filter must be told under another. No says nothing: a tool that left may have had other
 * tags, and under a filter on availability tools come and go that did not change at all.
 */
export function concerns(filter: Filter, event: SeenEvent, toldUnder: Filter): boolean {
  if (event.toolId === "" || filter.availability !== undefined || toldUnder.availability !== undefined) return false;
  if (filter.serverIds.length > 0 && !filter.serverIds.includes(event.serverId)) return false;
  if (!(splitToolId(event.toolId)?.toolName ?? "").startsWith(filter.namePrefix)) return false;
  if (filter.tagsAny.length === 0 && filter.tagsAll.length === 0) return true;
  const tags = event.stub?.tags;
  if (!tags) return false;
  return (filter.tagsAny.length === 0 || filter.tagsAny.some((t) => tags.includes(t))) && filter.tagsAll.every((t) => tags.includes(t));
}

/** Subjects that a watcher with this filter has to hear of in this revision, each with who heard of it. */
export function owed(revision: KnownRevision, stream: Stream): Map<string, Telling> {
  const out = new Map<string, Telling>();
  for (const [hash, tellings] of revision.byFilter) {
    for (const telling of tellings) {
      if (telling.stream === stream) continue;
      for (const event of telling.step.events) {
        if (hash === stream.hash || concerns(stream.watch.filter, event, telling.stream.watch.filter)) out.set(subjectOf(event), telling);
      }
    }
  }
  return out;
}
