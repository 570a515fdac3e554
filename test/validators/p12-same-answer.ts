/** P12: equal catalogues give byte-identical lists, on every replica, in pages of any size and in the snapshot of a watch. */
import type { History, Violation } from "./history.js";
import { listsOf } from "./lists.js";
import { nameOf, shown, streamsOf } from "./streams.js";

export function sameAnswer(history: History): Violation[] {
  const first = new Map<string, { readonly frames: string; readonly who: string; readonly ids: string; readonly bytes: string }>();
  const texts: string[] = [];
  for (const { hash, revision, frames, stubs, first: call } of listsOf(history)) {
    const key = `${hash} ${revision}`;
    const who = `replica ${call.replica} in pages of ${call.pageSize || "the default size"}`;
    const known = first.get(key);
    const ids = stubs.map((s) => s.toolId).join(" ");
    if (!known) first.set(key, { frames, who, ids, bytes: stubs.map((s) => s.bytes).join() });
    else if (known.frames !== frames) texts.push(`${who} answers another list at ${shown(revision)} than ${known.who}: ${ids} and ${known.ids}`);
  }
  for (const stream of streamsOf(history)) {
    for (const step of stream.steps) {
      const known = step.kind === "snapshot" ? first.get(`${stream.hash} ${step.revision}`) : undefined;
      if (known && step.stubs.map((s) => s.bytes).join() !== known.bytes) {
        texts.push(`${nameOf(stream)} began with another list at ${shown(step.revision)} than ${known.who} answers`);
      }
    }
  }
  return [...new Set(texts)].map((text) => ({ promise: "P12", text: `P12 same answer: ${text}` }));
}

