/** P1: all watchers agree on what each revision is, and on the order of revisions. */
import type { Position } from "../../src/domain/revision.js";
import { type History, only, type Violation } from "./history.js";
import { parseRevision } from "../../src/domain/revision.js";
import { knownRevisions, type KnownRevision, subjectOf, type Telling } from "./known.js";
import { lineageOf } from "./lineage.js";
import { nameOf, shown, streamsOf } from "./streams.js";

export function order(history: History): Violation[] {
  const revisions = knownRevisions(history);
  const texts = [...revisions.flatMap(oneMeaning), ...(history.facts.oneHistory ? oneChain(history) : noMerge(history))];
  return texts.map((text) => ({ promise: "P1", text: `P1 order: ${text}` }));
}

/** A revision is the same to everybody: the same events under one filter, the same tools under all. */
function oneMeaning(revision: KnownRevision): string[] {
  const out: string[] = [];
  const stubs = new Map<string, { readonly bytes: string; readonly telling: Telling }>();
  for (const tellings of revision.byFilter.values()) {
    const first = tellings[0];
    for (const other of tellings.slice(1)) if (first) out.push(...disagreement(revision.position, first, other));
    for (const telling of tellings) {
      for (const { toolId, stub } of telling.step.events) {
        if (!stub) continue;
        const known = stubs.get(toolId);
        if (!known) stubs.set(toolId, { bytes: stub.bytes, telling });
        else if (known.bytes !== stub.bytes) out.push(differ(revision.position, toolId, known.telling, telling));
      }
    }
  }
  return [...new Set(out)];
}

function disagreement(position: Position, a: Telling, b: Telling): string[] {
  const other = new Map(b.step.events.map((e) => [subjectOf(e), e]));
  const both = a.step.events.filter((e) => other.has(subjectOf(e)));
  const changed = both.find((e) => JSON.stringify(e) !== JSON.stringify(other.get(subjectOf(e))));
  if (changed) return [differ(position, subjectOf(changed), a, b)];
  // When one has more, the other was told only a part, which is another promise; when each has more, they were told of two things.
  if (both.length < a.step.events.length && both.length < b.step.events.length) {
    return [`revision ${shown(position)} is about one thing for ${nameOf(a.stream)} and about another for ${nameOf(b.stream)}`];
  }
  const subjects = new Set(both.map(subjectOf));
  const there = b.step.events.map(subjectOf).filter((s) => subjects.has(s));
  if (both.map(subjectOf).join("\n") === there.join("\n")) return [];
  return [`revision ${shown(position)} has its events in another order for ${nameOf(a.stream)} than for ${nameOf(b.stream)}`];
}

function differ(position: Position, subject: string, a: Telling, b: Telling): string {
  return `revision ${shown(position)} says one thing of ${subject} to ${nameOf(a.stream)} and another to ${nameOf(b.stream)}`;
}

/** Nothing was lost, so a number stands for one commit. */
function oneChain(history: History): string[] {
  const chains = new Map<string, { readonly chain: string; readonly who: string }>();
  const out: string[] = [];
  for (const { position, who } of everySeen(history)) {
    const number = `${position.partition}.${position.revision}`;
    const known = chains.get(number);
    if (!known) chains.set(number, { chain: position.chain, who });
    else if (known.chain !== position.chain) {
      out.push(`number ${position.revision} stands for two commits: chain ${known.chain} (${known.who}) and ${position.chain} (${who})`);
    }
  }
  return out;
}

function* everySeen(history: History): Generator<{ readonly position: Position; readonly who: string }> {
  for (const stream of streamsOf(history)) for (const { position } of stream.steps) yield { position, who: nameOf(stream) };
  for (const kind of ["register", "deregister", "operator", "stubs", "servers", "schema"] as const) {
    for (const { outcome, replica } of only(history, kind)) {
      const position = outcome.kind === "ok" ? parseRevision(outcome.value.revision) : undefined;
      if (position) yield { position, who: `${kind} at replica ${replica}` };
    }
  }
}

/** Histories may part where the store lost something; they never come together again. */
function noMerge(history: History): string[] {
  const out: string[] = [];
  for (const stream of streamsOf(history)) {
    const last = stream.steps.at(-1)?.position;
    if (!last) continue;
    const chains = new Map<string, string>();
    for (const key of lineageOf(history).ancestorsOf(last)) {
      const at = key.lastIndexOf(".");
      const [number, chain] = [key.slice(0, at), key.slice(at + 1)];
      const known = chains.get(number);
      if (known !== undefined && known !== chain) {
        out.push(`${shown(last)}, which ${nameOf(stream)} reached, comes after two commits with number ${number}: chains ${known} and ${chain}`);
      }
      chains.set(number, chain);
    }
  }
  return [...new Set(out)];
}
