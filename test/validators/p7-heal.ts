/** P7: a while after the last fault, every replica lists what the registrants hold, no more and no less. */
import { type Belief, type History, only, type Violation } from "./history.js";
import { listsOf, type ReadList } from "./lists.js";
import { shown } from "./streams.js";

export function heal(history: History): Violation[] {
  const beliefs = beliefsOf(history);
  const texts = listsOf(history).flatMap((list) => unlikeBeliefs(history, list, beliefs));
  return [...new Set(texts)].map((text) => ({ promise: "P7", text: `P7 heal: ${text}` }));
}

/** Oldest first, by `namespace server_id`. */
function beliefsOf(history: History): Map<string, Belief[]> {
  const out = new Map<string, Belief[]>();
  for (const belief of only(history, "belief").sort((a, b) => a.at.n - b.at.n)) {
    const key = `${belief.namespace} ${belief.serverId}`;
    out.set(key, [...(out.get(key) ?? []), belief]);
  }
  return out;
}

function unlikeBeliefs(history: History, list: ReadList, beliefs: ReadonlyMap<string, readonly Belief[]>): string[] {
  const { first, last, stubs, revision } = list;
  const { namespace, tagsAny, tagsAll, serverIds, namePrefix, availability } = first.filter;
  const narrow = tagsAny.length + tagsAll.length + serverIds.length > 0 || namePrefix !== "" || availability !== undefined;
  const since = first.call.ms - history.facts.healMs;
  const troubled = only(history, "fault").some((f) => f.from.n < (last.back?.n ?? 0) && (f.to === undefined || f.to.ms > since));
  if (narrow || troubled || !last.back) return [];
  const out: string[] = [];
  for (const [key, all] of beliefs) {
    const [where, serverId = ""] = key.split(" ");
    const until = last.back.n;
    const heard = all.filter((b) => b.at.n < until);
    const now = heard.at(-1);
    // Whoever changed its mind a moment ago may be listed either way.
    if (where !== namespace || !now || now.at.ms > since) continue;
    const prefix = `${serverId}/`;
    const found = stubs.filter((s) => s.toolId.startsWith(prefix)).map((s) => s.toolId.slice(prefix.length)).sort();
    const wanted = now.tools ?? [];
    if (found.join("\n") === wanted.join("\n")) continue;
    const holds = now.tools === undefined ? "nobody holds it any more" : `its registrant holds ${wanted.join(", ") || "nothing"}`;
    out.push(`replica ${first.replica} lists of ${namespace}:${serverId} ${found.join(", ") || "nothing"} at ${shown(revision)}, and ${holds} since ${Math.round(first.call.ms - now.at.ms)} ms`);
  }
  return out;
}
