/** Who is answered and who is withheld: a pure choice over what the index finds and what the catalogue says. */
import { LIMITS } from "../domain/limits.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery, Reason, Sequence, SideEffect, WithheldTool } from "./api.js";
import type { Candidates } from "./candidates.js";
import type { Candidate } from "./fusion.js";
import { type Intent, nameKey } from "./intent.js";
import { firstSteps } from "./related/declared.js";
import { isDestructive } from "./related/verbs.js";
import { type OfferDeps, Offers, sideEffectOf } from "./offers.js";
import type { ListedTool } from "./ports.js";
import type { IndexedTool } from "./search.js";
import type { Priority, Related } from "./stages.js";

export interface Choosable {
  readonly toolId: string;
  readonly listed: ListedTool;
  readonly label: StubFields;
  /** Share of what an ideal tool for the intent has, by words, 0 to 1. */
  readonly score: number;
  /** How far it is ahead of the next candidate, where the best by words alone counts 1. */
  readonly margin: number;
  readonly reasons: readonly Reason[];
  readonly sideEffect: SideEffect;
  /** Its annotations say so, or its name does where they say nothing. */
  readonly mayDestroy: boolean;
}

export interface Choice {
  readonly kept: readonly Choosable[];
  readonly withheld: readonly WithheldTool[];
  readonly weak: boolean;
  /** Sequences with tools of `kept`, all of whose tools may be offered. */
  readonly bundles: readonly Sequence[];
}

export interface ChoiceDeps extends OfferDeps {
  /** Candidates by their weighed scores, best first, `pool` at least where there are so many. */
  readonly rank: (accept: (tool: IndexedTool) => boolean, pool: number, weigh: (toolId: string, score: number) => number) => Candidates;
  readonly priority: Priority;
  readonly related: Related;
}

/** Candidates that are ranked by all signals. */
const POOL = 100;
/** Sequences that are shown. */
const BUNDLES = 3;

/** The best `topK` that may be offered, what goes with them, and who was in their way. */
export function choose(query: FindQuery, intent: Intent, topK: number, deps: ChoiceDeps): Choice {
  const offers = new Offers(query, deps);
  const { ranked, fits, withheld, inTheWay, open } = shortlist(offers, intent, topK, deps);
  const chosen = ranked.flatMap((candidate, i) => {
    const listed = open.has(candidate.tool.toolId) && offers.lookUp(candidate.tool.toolId);
    if (!listed) return [];
    const margin = Math.max(0, candidate.score - (ranked[i + 1]?.score ?? 0));
    return [choosable(listed, candidate.tool.toolId, candidate.absolute, margin, reasonsOf(candidate, deps))];
  });
  const kept = withAlways(chosen);
  const steps = firstSteps(withheld.map(({ toolId }) => toolId), offers);
  // What may be offered decides: a tool that fits and is withheld is no answer, unless there is a way to it.
  const led = new Set(steps.map(({ reason }) => reason.of));
  const offered = [...ranked.filter(({ tool }) => open.has(tool.toolId)), ...inTheWay.filter(({ tool }) => led.has(tool.toolId))];
  const weak = !offered.some(fits);
  const bundles = bundlesOf(kept);
  const all = withBundles(withBeside(kept), bundles);
  return { kept: all, withheld: withheld.slice(0, LIMITS.withheldTools), weak, bundles };

  function choosable(
    listed: ListedTool,
    toolId: string,
    score: number,
    margin: number,
    reasons: readonly Reason[],
  ): Choosable {
    const label = deps.labelOf(listed);
    const sideEffect = sideEffectOf(label);
    return { toolId, listed, label, score, margin, reasons, sideEffect, mayDestroy: isDestructive(sideEffect, listed.tool.name, label.title) };
  }

  function withAlways(found: readonly Choosable[]): readonly Choosable[] {
    const all = [...found];
    for (const { toolId, rule } of deps.ruling.always) {
      const reason: Reason = { kind: "rule", rule };
      const at = all.findIndex((kept) => kept.toolId === toolId);
      const known = all[at];
      const listed = offers.lookUp(toolId);
      if (known) all[at] = { ...known, reasons: [...known.reasons, reason] };
      else if (listed && offers.mayOffer(toolId)) {
        all.push(choosable(listed, toolId, scoreOf(toolId), 0, [reason]));
      }
    }
    return all;
  }

  function bundlesOf(found: readonly Choosable[]): readonly Sequence[] {
    const sequences = deps.related.sequences(found.map(({ toolId }) => toolId));
    return sequences.filter(({ toolIds }) => toolIds.every((id) => offers.mayOffer(id))).slice(0, BUNDLES);
  }

  /** Where definitions are wanted, those of a bundle come together. */
  function withBundles(found: readonly Choosable[], bundles: readonly Sequence[]): readonly Choosable[] {
    if (query.schemas === "none") return found;
    const all = [...found];
    for (const { toolIds } of bundles)
      for (const [i, toolId] of toolIds.entries()) {
        const listed = offers.lookUp(toolId);
        if (!listed || all.some((held) => held.toolId === toolId)) continue;
        // Whoever is first in its sequence goes with what comes after it.
        const of = toolIds[i === 0 ? 1 : i - 1] as string;
        all.push(choosable(listed, toolId, scoreOf(toolId), 0, [{ kind: "companion", of }]));
      }
    return all;
  }

  /** Of a tool that is answered for another reason than its rank. */
  function scoreOf(toolId: string): number {
    return ranked.find(({ tool }) => tool.toolId === toolId)?.absolute ?? 0;
  }

  function withBeside(found: readonly Choosable[]): readonly Choosable[] {
    const all = [...found];
    const held = new Set(found.map(({ toolId }) => toolId));
    for (const { toolId, reason } of [...steps, ...deps.related.beside(found, deps.cut)]) {
      const listed = offers.lookUp(toolId);
      if (held.has(toolId) || !listed || !offers.mayOffer(toolId)) continue;
      held.add(toolId);
      all.push(choosable(listed, toolId, scoreOf(toolId), 0, [reason]));
    }
    return all;
  }
}

function shortlist(offers: Offers, intent: Intent, topK: number, deps: ChoiceDeps) {
  const pool = Math.max(POOL, 2 * topK);
  const rank = (accept: (tool: IndexedTool) => boolean) => deps.rank(accept, pool, weigh);
  const weigh = (toolId: string, score: number) => {
    const listed = offers.lookUp(toolId);
    const { factor = 1, least = 0 } = (listed && deps.ruling.preference(listed.serverId, listed.tool)) ?? {};
    return Math.max(least, score * factor * deps.priority.factorOf(toolId));
  };
  let { ranked, fits } = rank(({ toolId }) => offers.lookUp(toolId) !== undefined);
  const withheld: WithheldTool[] = [];
  const inTheWay: Candidate[] = [];
  const open = new Shortlist(topK, intent);
  for (const candidate of ranked) {
    const { tool, exactName, absolute } = candidate;
    if (open.full && !exactName) break;
    const listed = offers.lookUp(tool.toolId);
    const why = listed && offers.refusal(tool.toolId, listed);
    if (why) {
      withheld.push({ ...why, score: absolute });
      inTheWay.push(candidate);
    } else open.offer(tool, exactName);
  }
  // Only where too many are withheld it is searched again without them.
  if (!open.full && ranked.length >= pool) {
    ({ ranked, fits } = rank(({ toolId }) => offers.mayOffer(toolId)));
    for (const { tool, exactName } of ranked) open.offer(tool, exactName);
  }
  return { ranked, fits, withheld, inTheWay, open };
}

/**
 * The first `topK`, and beyond them the best tool of each name that the intent says: seven names are seven tools, but one
 * name that a hundred servers have is not a hundred.
 */
class Shortlist {
  private readonly kept = new Set<string>();
  private readonly said = new Set<string>();
  private readonly ids: ReadonlySet<string>;

  constructor(
    private readonly topK: number,
    { names }: Intent,
  ) {
    this.ids = new Set(names);
  }

  get full(): boolean {
    return this.kept.size >= this.topK;
  }

  has(id: string): boolean {
    return this.kept.has(id);
  }

  offer({ toolId: id, name }: IndexedTool, exact: boolean): void {
    const key = this.ids.has(id) ? id : nameKey(name);
    if (!this.full || (exact && !this.said.has(key))) this.kept.add(id);
    if (exact) this.said.add(key);
  }
}

/** From this on the past speaks for itself, not by a distant likeness. */
const REMEMBERED = 0.1;

function reasonsOf({ exactName, matched, remembered, dense, tool }: Candidate, { ruling, cut }: ChoiceDeps): Reason[] {
  const reasons: Reason[] = exactName ? [{ kind: "exact-name" }] : [];
  const words = matched();
  if (words.length > 0) reasons.push({ kind: "matched-words", words });
  if (remembered >= REMEMBERED) reasons.push({ kind: "remembered" });
  if (dense > 0) reasons.push({ kind: "meaning" });
  const listed = cut.tool(tool.toolId);
  const preference = listed && ruling.preference(listed.serverId, listed.tool);
  if (preference) reasons.push({ kind: "rule", rule: preference.rule });
  return reasons;
}
