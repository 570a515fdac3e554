/** P9: a bad tool does not hide its siblings, a tenant sees only its own, and every call is answered. */
import { type History, only, type Violation } from "./history.js";
import { listsOf } from "./lists.js";
import { acceptedOf, isAcknowledged, overlap, rejectedOf } from "./registrations.js";
import { nameOf, shown, streamsOf } from "./streams.js";

export function isolate(history: History): Violation[] {
  const texts = [...siblings(history), ...strangers(history), ...unanswered(history)];
  return [...new Set(texts)].map((text) => ({ promise: "P9", text: `P9 isolate: ${text}` }));
}

/** At the revision of a Register with rejected tools, exactly the others are listed. */
function siblings(history: History): string[] {
  const out: string[] = [];
  for (const call of only(history, "register").filter(isAcknowledged)) {
    const bad = rejectedOf(call);
    if (bad.length === 0 || call.offer !== "declared" || call.requestId !== "") continue;
    for (const { first, stubs, revision } of listsOf(history)) {
      const { namespace, tagsAny, tagsAll, serverIds, namePrefix, availability } = first.filter;
      const narrow = tagsAny.length + tagsAll.length + serverIds.length > 0 || namePrefix !== "" || availability !== undefined;
      if (narrow || namespace !== call.namespace || revision !== call.outcome.value.revision) continue;
      const listed = new Set(stubs.map((s) => s.toolId));
      const hidden = acceptedOf(call).filter((name) => !listed.has(`${call.serverId}/${name}`));
      if (hidden.length > 0) {
        out.push(`${call.serverId} was registered with a bad ${bad.join(", ")} at ${shown(revision)}, and replica ${first.replica} does not list its good ${hidden.join(", ")}`);
      }
    }
  }
  return out;
}

/** A server that was only ever registered in other namespaces is in no answer. */
function strangers(history: History): string[] {
  const homes = new Map<string, Set<string>>();
  for (const { serverId, namespace } of only(history, "register")) {
    const spaces = homes.get(serverId) ?? new Set<string>();
    homes.set(serverId, spaces.add(namespace));
  }
  const out: string[] = [];
  const look = (namespace: string, serverId: string, where: string): void => {
    const home = homes.get(serverId);
    if (home && !home.has(namespace)) out.push(`${where} in namespace ${namespace} was told of ${serverId} of namespace ${[...home].join(", ")}`);
  };
  const server = (toolId: string): string => toolId.slice(0, toolId.indexOf("/"));
  for (const { first, stubs } of listsOf(history)) for (const s of stubs) look(first.namespace, server(s.toolId), `a reader at replica ${first.replica}`);
  for (const call of only(history, "servers")) {
    if (call.outcome.kind === "ok") for (const s of call.outcome.value.servers) look(call.namespace, s.serverId, `a reader at replica ${call.replica}`);
  }
  for (const stream of streamsOf(history)) {
    for (const { events, stubs } of stream.steps) {
      for (const e of events) look(stream.watch.namespace, e.serverId, nameOf(stream));
      for (const s of stubs) look(stream.watch.namespace, server(s.toolId), nameOf(stream));
    }
  }
  return out;
}

/** One bad server may make its own callers wait, and nobody for ever. */
function unanswered(history: History): string[] {
  const calls = [...only(history, "register"), ...only(history, "renew"), ...only(history, "deregister"), ...only(history, "operator")];
  const reads = [...only(history, "stubs"), ...only(history, "servers"), ...only(history, "schema")];
  const down = only(history, "fault").filter((f) => f.what === "replica-down");
  return [...calls, ...reads].flatMap(({ kind, replica, call, back }) => {
    const lasted = history.end.ms - call.ms;
    if (back || lasted < history.facts.answerMs) return [];
    const excused = down.some((f) => (f.replica === "" || f.replica === replica) && overlap({ from: f.from.n, to: f.to?.n }, { from: call.n, to: undefined }));
    return excused ? [] : [`a ${kind} at replica ${replica} was not answered in ${Math.round(lasted)} ms`];
  });
}
