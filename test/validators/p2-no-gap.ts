/** P2: a watcher sees every revision that concerns it whole, in order, once; what it was told adds up to what is read. */
import { compareText } from "../../src/domain/ids.js";
import { formatRevision, parseRevision } from "../../src/domain/revision.js";
import type { History, Violation } from "./history.js";
import { knownRevisions, owed, subjectOf } from "./known.js";
import { keyOf, lineageOf } from "./lineage.js";
import { difference, foldAt, listsOf } from "./lists.js";
import { nameOf, shown, streamsOf, type Stream } from "./streams.js";

export function noGap(history: History): Violation[] {
  const texts = streamsOf(history).flatMap((stream) => {
    const order = outOfOrder(stream);
    // What came out of order adds up to nothing.
    if (order.length > 0) return order;
    return [...missing(history, stream), ...unlikeReads(history, stream)].map((t) => `${nameOf(stream)} ${t}`);
  });
  return [...new Set(texts)].map((text) => ({ promise: "P2", text: `P2 no gap: ${text}` }));
}

function outOfOrder(stream: Stream): string[] {
  const out = stream.odd.map(({ text }) => `${nameOf(stream)}: ${text}`);
  let last = stream.resumed;
  for (const { kind, position } of stream.steps) {
    if (kind === "bookmark") continue;
    if (last && position.revision <= last.revision) {
      const what = keyOf(position) === keyOf(last) ? "twice" : `after ${shown(last)}`;
      out.push(`${nameOf(stream)} saw revision ${shown(position)} ${what}`);
    }
    last = position;
  }
  return out;
}

/** Revisions after the first place that it stands for, up to the last one it reached. The way there of a resumed one is P4's. */
function missing(history: History, stream: Stream): string[] {
  const first = stream.steps[0]?.position;
  const last = stream.steps.at(-1)?.position;
  if (!first || !last) return [];
  const lineage = lineageOf(history);
  const seen = new Map(stream.steps.filter((s) => s.kind === "change").map((s) => [keyOf(s.position), s]));
  const out: string[] = [];
  for (const revision of knownRevisions(history)) {
    const { namespace, position } = revision;
    const mine = seen.get(keyOf(position));
    if (namespace !== stream.watch.namespace || position.revision > last.revision) continue;
    if (!mine && (position.revision <= first.revision || !lineage.upTo(position, last))) continue;
    const told = new Set(mine?.events.map(subjectOf));
    for (const [subject, by] of owed(revision, stream)) {
      if (told.has(subject)) continue;
      if (mine) out.push(`saw only a part of revision ${shown(position)}: ${subject} is in what ${nameOf(by.stream)} was told`);
      else out.push(`saw ${around(stream, position.revision)}, and revision ${shown(position)} concerned it: ${subject}, as ${nameOf(by.stream)} was told`);
      break;
    }
  }
  return out;
}

function around(stream: Stream, revision: number): string {
  const before = stream.steps.findLast((s) => s.position.revision < revision);
  const after = stream.steps.find((s) => s.position.revision > revision);
  return `${after?.kind ?? "nothing"} ${after?.position.revision ?? ""} after ${before?.kind ?? "nothing"} ${before?.position.revision ?? ""}`;
}

/** Whoever puts its messages together holds the list that is read at the same revision. */
function unlikeReads(history: History, stream: Stream): string[] {
  const lineage = lineageOf(history);
  const lists = listsOf(history).filter((l) => l.hash === stream.hash);
  const out: string[] = [];
  const places = lists.flatMap((list) => parseRevision(list.revision) ?? []);
  foldAt(stream, places, (a, b) => lineage.upTo(a, b), (place, folded) => {
    for (const list of lists) {
      if (list.revision !== formatRevision(place)) continue;
      const sorted = [...list.stubs].sort((a, b) => compareText(a.toolId, b.toolId));
      const text = difference(sorted, folded.stubs);
      if (text) out.push(`holds another list at revision ${shown(place)} than replica ${list.first.replica} reads: ${text}`);
    }
  });
  return [...new Set(out)];
}
