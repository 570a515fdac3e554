/** P5: a Register commits as one revision or not at all; repeating it changes nothing. */
import { formatRevision } from "../../src/domain/revision.js";
import { type History, only, type RegisterCall, type Violation } from "./history.js";
import { lineageOf } from "./lineage.js";
import { foldAt, listsOf } from "./lists.js";
import {
  type Acknowledged,
  acceptedOf,
  groupsOf,
  instanceKey,
  isAcknowledged,
  isRefused,
  leasesByInstance,
  lostWithin,
  mayEnd,
  overlap,
  ownWares,
  placeOf,
  rejectedOf,
} from "./registrations.js";
import { nameOf, shown, type Step, streamsOf } from "./streams.js";

export function atomic(history: History): Violation[] {
  const texts = [...halves(history), ...leftByRefused(history), ...unlikeAnswer(history), ...repeats(history)];
  return [...new Set(texts)].map((text) => ({ promise: "P5", text: `P5 atomic: ${text}` }));
}

function called(call: RegisterCall): string {
  const id = call.requestId === "" ? "" : `, request ${call.requestId}`;
  return `Register of ${call.namespace}:${call.serverId} by ${call.instanceId}${id}`;
}

const same = (a: readonly string[], b: readonly string[]): boolean => a.join("\n") === b.join("\n");

/** All names that it sent, sorted, when all of them came with a good definition or a digest. */
function wholeSet(group: readonly RegisterCall[]): string[] | undefined {
  const acknowledged = group.filter(isAcknowledged);
  if (acknowledged.some((call) => rejectedOf(call).length > 0)) return undefined;
  const [first] = group;
  if (first?.offer !== "declared" || first.tools.some((t) => t.digest === "")) return undefined;
  if (group.some((call) => JSON.stringify(call.tools) !== JSON.stringify(first.tools))) return undefined;
  return first.tools.map((t) => t.name).sort();
}

/** Where one tool of a Register shows up, all of them are there, and none beside them. */
function halves(history: History): string[] {
  const own = ownWares(groupsOf(history));
  const lineage = lineageOf(history);
  const out: string[] = [];
  for (const stream of streamsOf(history).filter((s) => isWhole(s.watch.filter))) {
    const shows = new Map<string, { readonly step: Step; readonly set: readonly string[]; readonly call: RegisterCall }>();
    for (const step of stream.steps) {
      for (const { toolId, newDigest } of step.events) {
        const group = own.get(`${stream.watch.namespace} ${toolId} ${newDigest}`);
        const set = group && wholeSet(group);
        if (group?.[0] && set) shows.set(step.revision, { step, set, call: group[0] });
      }
    }
    const places = [...shows.values()].map((s) => s.step.position);
    foldAt(stream, places, (a, b) => lineage.upTo(a, b), (place, list) => {
      const show = shows.get(formatRevision(place));
      if (!show) return;
      const found = list.toolsOf(show.call.serverId);
      if (same(found, show.set)) return;
      out.push(`${called(show.call)} showed at revision ${shown(place)} as ${words(found)} to ${nameOf(stream)}, not as ${words(show.set)}`);
    });
  }
  return out;
}

function isWhole({ tagsAny, tagsAll, serverIds, namePrefix, availability }: { tagsAny: readonly string[]; tagsAll: readonly string[]; serverIds: readonly string[]; namePrefix: string; availability: unknown }): boolean {
  return tagsAny.length + tagsAll.length + serverIds.length === 0 && namePrefix === "" && availability === undefined;
}

function words(names: readonly string[]): string {
  return names.length === 0 ? "nothing" : names.join(", ");
}

/** What was refused for good is never seen. */
function leftByRefused(history: History): string[] {
  const refused = new Map([...ownWares(groupsOf(history))].filter(([, group]) => group.every(isRefused)));
  if (refused.size === 0) return [];
  const out: string[] = [];
  const look = (namespace: string, toolId: string, digest: string, where: string): void => {
    const [call] = refused.get(`${namespace} ${toolId} ${digest}`) ?? [];
    if (call) out.push(`${called(call)} was refused, and yet ${toolId} of it was seen ${where}`);
  };
  for (const stream of streamsOf(history)) {
    for (const { events, stubs, revision } of stream.steps) {
      for (const s of stubs) look(stream.watch.namespace, s.toolId, s.digest, `at ${shown(revision)} by ${nameOf(stream)}`);
      for (const e of events) look(stream.watch.namespace, e.toolId, e.newDigest, `at ${shown(revision)} by ${nameOf(stream)}`);
    }
  }
  for (const { first, stubs, revision } of listsOf(history)) {
    for (const s of stubs) look(first.namespace, s.toolId, s.digest, `at ${shown(revision)} on replica ${first.replica}`);
  }
  return out;
}

/** At the revision that a Register was answered with, its server has the tools that it was told are listed. */
function unlikeAnswer(history: History): string[] {
  const out: string[] = [];
  for (const group of groupsOf(history)) {
    // A repeat may be answered with a later place, when its own is no longer kept.
    const [call] = group;
    if (!call || !isAcknowledged(call) || call.offer !== "declared" || rejectedOf(call).length > 0) continue;
    for (const { first, stubs, revision } of listsOf(history)) {
      if (revision !== call.outcome.value.revision || first.namespace !== call.namespace || !isWhole(first.filter)) continue;
      const prefix = `${call.serverId}/`;
      const found = stubs.filter((s) => s.toolId.startsWith(prefix)).map((s) => s.toolId.slice(prefix.length)).sort();
      if (same(found, acceptedOf(call))) continue;
      out.push(`${called(call)} was answered with revision ${shown(revision)}, where replica ${first.replica} lists ${words(found)}, not ${words(acceptedOf(call))}`);
    }
  }
  return out;
}

/** The same request again is answered with the same revision, as long as its instance surely lived and nobody else wrote for it. */
function repeats(history: History): string[] {
  const leases = leasesByInstance(history);
  const out: string[] = [];
  for (const group of groupsOf(history)) {
    const [first, ...again] = group.filter(isAcknowledged);
    if (!first || first.requestId === "") continue;
    for (const repeat of again) {
      const [a, b] = [placeOf(first), placeOf(repeat)];
      if (!a || !b || first.outcome.value.revision === repeat.outcome.value.revision) continue;
      if (Math.abs(b.revision - a.revision) >= history.facts.window || disturbed(history, first, repeat, leases)) continue;
      out.push(`${called(first)} was committed at ${shown(a)}, and again at ${shown(b)} when it was repeated`);
    }
  }
  return out;
}

function disturbed(history: History, first: Acknowledged, repeat: Acknowledged, leases: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const span = { from: Math.min(first.call.n, repeat.call.n), to: Math.max(first.back.n, repeat.back.n) };
  const ttlMs = Math.min(first.ttlMs, repeat.ttlMs);
  if (ttlMs > 0 && Math.max(first.back.ms, repeat.back.ms) >= Math.min(first.call.ms, repeat.call.ms) + ttlMs) return true;
  if (lostWithin(history, first.call, repeat.back)) return true;
  const meanwhile = (c: { call: { n: number }; back: { n: number } | undefined }): boolean => overlap({ from: c.call.n, to: c.back?.n }, span);
  const others = only(history, "register").filter((c) => instanceKey(c) === instanceKey(first) && c.requestId !== first.requestId);
  return others.some(meanwhile) || only(history, "deregister").some((d) => meanwhile(d) && mayEnd(d, first, leases));
}
