/**
 * P6: no lease ends early, and nobody's late call touches what another instance registered. A lease surely lives for its TTL from
 * when the last good renewal was asked for: the store counted from a later moment.
 */
import { parseRevision } from "../../src/domain/revision.js";
import { type History, type Moment, only, type Violation } from "./history.js";
import { lineageOf } from "./lineage.js";
import { listsOf } from "./lists.js";
import {
  type Acknowledged,
  acceptedOf,
  instanceKey,
  isAcknowledged,
  leasesByInstance,
  lostWithin,
  mayEnd,
  placeOf,
} from "./registrations.js";
import { nameOf, shown, streamsOf } from "./streams.js";

/** The store's clock and the recorder's may drift apart by this much in one TTL. */
const DRIFT_MS = 250;
const RENEWED = new Set(["OK", "SUPERSEDED", "REGISTER_AGAIN"]);

/** A lease with every call that surely began its TTL anew. */
interface Life {
  readonly leaseId: string;
  /** The Register that it was first told of in. */
  readonly of: Acknowledged;
  readonly ttlMs: number;
  readonly touches: readonly { readonly call: Moment; readonly back: Moment }[];
}

export function lease(history: History): Violation[] {
  const lives = livesOf(history);
  const texts = [...expired(history, lives), ...absent(history, lives), ...unknown(history, lives), ...touched(history, lives)];
  return [...new Set(texts)].map((text) => ({ promise: "P6", text: `P6 lease: ${text}` }));
}

function livesOf(history: History): Life[] {
  const registers = only(history, "register").filter(isAcknowledged).sort((a, b) => a.call.n - b.call.n);
  const renewals = renewalsOf(history);
  const byLease = new Map<string, Acknowledged[]>();
  for (const call of registers) {
    const { leaseId } = call.outcome.value;
    if (leaseId !== "") byLease.set(leaseId, [...(byLease.get(leaseId) ?? []), call]);
  }
  return [...byLease].map(([leaseId, calls]): Life => {
    const of = calls[0] as Acknowledged;
    const ttls = only(history, "register").filter((c) => instanceKey(c) === instanceKey(of) && c.ttlMs > 0);
    return { leaseId, of, ttlMs: Math.min(...ttls.map((c) => c.ttlMs)), touches: [...calls, ...(renewals.get(leaseId) ?? [])] };
  });
}

/** Calls that renewed a lease, by lease. */
function renewalsOf(history: History): Map<string, { readonly call: Moment; readonly back: Moment }[]> {
  const out = new Map<string, { readonly call: Moment; readonly back: Moment }[]>();
  for (const { leaseIds, outcome, call, back } of only(history, "renew")) {
    for (const [i, leaseId] of leaseIds.entries()) {
      if (outcome.kind !== "ok" || !back || !RENEWED.has(outcome.value.states[i] ?? "")) continue;
      const known = out.get(leaseId);
      if (known) known.push({ call, back });
      else out.set(leaseId, [{ call, back }]);
    }
  }
  return out;
}

/** The last touch because of which it surely lived at a moment; undefined when it need not have. */
function surelyLives(history: History, life: Life, at: Moment): { readonly call: Moment } | undefined {
  const { of, ttlMs, touches } = life;
  const touch = touches.filter((t) => t.back.n < at.n).reduce<Life["touches"][number] | undefined>((a, b) => (a && a.call.ms >= b.call.ms ? a : b), undefined);
  if (!touch || at.ms >= touch.call.ms + ttlMs - DRIFT_MS) return undefined;
  const may = (c: { call: Moment; back: Moment | undefined }): boolean => c.call.n < at.n && (c.back === undefined || c.back.n > touch.call.n);
  const leases = leasesByInstance(history);
  if (only(history, "deregister").some((d) => may(d) && mayEnd(d, of, leases))) return undefined;
  const replaced = only(history, "register").some(
    (r) => may(r) && instanceKey(r) === instanceKey(of) && (!isAcknowledged(r) || r.outcome.value.leaseId !== life.leaseId),
  );
  // What the store lost is no lease's end; the registrant hears of it and registers again.
  return replaced || lostWithin(history, of.call, at) ? undefined : touch;
}

function told(life: Life, touch: { readonly call: Moment }, at: Moment): string {
  return `${life.of.namespace}:${life.of.serverId} (${life.of.instanceId}) was good for ${life.ttlMs} ms, ${Math.round(at.ms - touch.call.ms)} ms before`;
}

function expired(history: History, lives: readonly Life[]): string[] {
  const lineage = lineageOf(history);
  const out: string[] = [];
  for (const stream of streamsOf(history)) {
    for (const { events, at, position } of stream.steps) {
      const servers = new Set(events.filter((e) => e.type === "EXPIRED").map((e) => e.serverId));
      if (servers.size === 0) continue;
      for (const life of lives) {
        const granted = placeOf(life.of);
        if (life.of.namespace !== stream.watch.namespace || !servers.has(life.of.serverId)) continue;
        if (!granted || !lineage.before(granted, position)) continue;
        const touch = surelyLives(history, life, at);
        if (touch) out.push(`${nameOf(stream)} heard EXPIRED at ${shown(position)}, and the lease of ${told(life, touch, at)}`);
      }
    }
  }
  return out;
}

/** A list that has folded the grant shows the server. */
function absent(history: History, lives: readonly Life[]): string[] {
  const lineage = lineageOf(history);
  const out: string[] = [];
  for (const list of listsOf(history)) {
    const { first, last, stubs, revision } = list;
    const place = parseRevision(revision);
    const { tagsAny, tagsAll, serverIds, namePrefix, availability } = first.filter;
    const narrow = tagsAny.length + tagsAll.length + serverIds.length > 0 || namePrefix !== "" || availability !== undefined;
    if (!place || !last.back || narrow) continue;
    const listed = new Set(stubs.map((s) => s.toolId.slice(0, s.toolId.indexOf("/"))));
    for (const life of lives) {
      const { of } = life;
      if (of.namespace !== first.namespace || listed.has(of.serverId)) continue;
      const granted = placeOf(of);
      if (!granted || !lineage.upTo(granted, place)) continue;
      if (mayHaveNoTools(history, of, last.back)) continue;
      const touch = surelyLives(history, life, last.back);
      if (touch) out.push(`replica ${first.replica} lists nothing of it at ${shown(place)}, and the lease of ${told(life, touch, last.back)}`);
    }
  }
  return out;
}

function mayHaveNoTools(history: History, of: Acknowledged, by: Moment): boolean {
  const sameServer = (c: { namespace: string; serverId: string; call: Moment }): boolean =>
    c.namespace === of.namespace && c.serverId === of.serverId && c.call.n < by.n;
  const empty = only(history, "register").some((c) => sameServer(c) && (!isAcknowledged(c) || c.offer !== "declared" || acceptedOf(c).length === 0));
  const tool = only(history, "deregister").some((d) => d.target.kind === "tool" && d.namespace === of.namespace && d.target.id.startsWith(`${of.serverId}/`));
  return empty || tool;
}

function unknown(history: History, lives: readonly Life[]): string[] {
  const byLease = new Map(lives.map((life) => [life.leaseId, life]));
  return only(history, "renew").flatMap(({ namespace, replica, leaseIds, outcome, back }) => {
    if (outcome.kind !== "ok" || !back) return [];
    return leaseIds.flatMap((id, i) => {
      const life = byLease.get(id);
      const state = outcome.value.states[i] ?? "";
      if (!life || life.of.namespace !== namespace || RENEWED.has(state)) return [];
      const touch = surelyLives(history, life, back);
      return touch ? [`replica ${replica} answered a renewal with ${state}, and the lease of ${told(life, touch, back)}`] : [];
    });
  });
}

/** An instance that goes takes nothing away from another one of its server. */
function touched(history: History, lives: readonly Life[]): string[] {
  const byLease = new Map(lives.map((life) => [life.leaseId, life]));
  return only(history, "deregister").flatMap((call) => {
    const gone = call.target.kind === "lease" ? byLease.get(call.target.id) : undefined;
    if (!gone || call.outcome.kind !== "ok" || !call.outcome.value.removed || !call.back) return [];
    const { back, outcome } = call;
    const other = lives.find(
      (l) => l.leaseId !== gone.leaseId && l.of.namespace === gone.of.namespace && l.of.serverId === gone.of.serverId && l.of.back.n < call.call.n && surelyLives(history, l, back),
    );
    if (!other) return [];
    return streamsOf(history).flatMap((stream) => {
      const step = stream.steps.find((s) => s.kind === "change" && s.revision === outcome.value.revision);
      const event = step?.events.find((e) => e.toolId !== "" && e.serverId === gone.of.serverId && stream.watch.namespace === gone.of.namespace);
      return event ? [`the end of ${gone.of.instanceId} at ${shown(outcome.value.revision)} brought ${nameOf(stream)} ${event.type} ${event.toolId}, and ${other.of.instanceId} lived`] : [];
    });
  });
}
