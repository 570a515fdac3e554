/** Who is answered and who is withheld: a pure choice over what the index finds and what the catalogue says. */
import { matchesServer, matchesTool } from "../domain/filter.js";
import { toolId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery, Reason, WithheldTool } from "./api.js";
import type { Candidates } from "./candidates.js";
import type { Candidate } from "./fusion.js";
import { type Intent, nameKey } from "./intent.js";
import { isIn } from "./modules.js";
import type { Cut, ListedTool } from "./ports.js";
import { Granted, missingWords } from "./preconditions.js";
import type { IndexedTool } from "./search.js";

export interface Choosable {
  readonly toolId: string;
  readonly listed: ListedTool;
  readonly label: StubFields;
  /** Share of what an ideal tool for the intent has, by words, 0 to 1. */
  readonly score: number;
  /** How far it is ahead of the next candidate, where the best by words alone counts 1. */
  readonly margin: number;
  readonly reasons: readonly Reason[];
}

export interface Choice {
  readonly kept: readonly Choosable[];
  readonly withheld: readonly WithheldTool[];
  readonly weak: boolean;
}

export interface ChoiceDeps {
  /** Candidates, best first, `pool` at least where there are so many. */
  readonly rank: (accept: (tool: IndexedTool) => boolean, pool: number) => Candidates;
  readonly cut: Cut;
  readonly labelOf: (listed: ListedTool) => StubFields;
}

/** Candidates that are ranked by all signals. */
const POOL = 100;

/** The best `topK` that may be offered, and who was in their way. */
export function choose(query: FindQuery, intent: Intent, topK: number, deps: ChoiceDeps): Choice {
  const { cut, labelOf } = deps;
  const granted = new Granted(query);
  const lookUp = (id: string): ListedTool | undefined => {
    const listed = cut.tool(id);
    return listed && wanted(query, listed) ? listed : undefined;
  };
  const refused = (id: string, listed: ListedTool) => refusal(id, listed, labelOf(listed), granted);
  const mayOffer = (id: string): boolean => {
    const listed = lookUp(id);
    return listed !== undefined && refused(id, listed) === undefined;
  };
  const pool = Math.max(POOL, 2 * topK);
  let { ranked, weak } = deps.rank(({ toolId: id }) => lookUp(id) !== undefined, pool);
  const withheld: WithheldTool[] = [];
  const open = new Shortlist(topK, intent);
  for (const { tool, exactName, absolute } of ranked) {
    if (open.full && !exactName) break;
    const listed = lookUp(tool.toolId);
    const why = listed && refused(tool.toolId, listed);
    if (why) withheld.push({ ...why, score: absolute });
    else open.offer(tool, exactName);
  }
  // Only where too many are withheld it is searched again without them.
  if (!open.full && ranked.length >= pool) {
    ({ ranked, weak } = deps.rank(({ toolId: id }) => mayOffer(id), pool));
    for (const { tool, exactName } of ranked) open.offer(tool, exactName);
  }
  const kept = ranked.flatMap((candidate, i) => {
    const listed = open.has(candidate.tool.toolId) && lookUp(candidate.tool.toolId);
    return listed ? [{ candidate, listed, next: ranked[i + 1] }] : [];
  });
  return {
    kept: kept.map(({ candidate, listed, next }) => ({
      toolId: candidate.tool.toolId,
      listed,
      label: labelOf(listed),
      score: candidate.absolute,
      margin: Math.max(0, candidate.score - (next?.score ?? 0)),
      reasons: reasonsOf(candidate),
    })),
    withheld: withheld.slice(0, LIMITS.withheldTools),
    weak: weak || kept.length === 0,
  };
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

/** Availability is no matter of the filter: who is unavailable is named as withheld. */
function wanted({ filter, category }: FindQuery, { tool, serverId, siblings }: ListedTool): boolean {
  return (
    matchesServer(filter, filter.namespace, serverId) &&
    matchesTool(filter, tool) &&
    (category === "" || isIn(category, serverId, tool.name, siblings))
  );
}

function reasonsOf({ exactName, matched }: Candidate): Reason[] {
  const reasons: Reason[] = exactName ? [{ kind: "exact-name" }] : [];
  return matched.length > 0 ? [...reasons, { kind: "matched-words", words: matched }] : reasons;
}

type Refusal = Omit<WithheldTool, "score">;

function refusal(id: string, { availability, serverId }: ListedTool, label: StubFields, granted: Granted): Refusal | undefined {
  const substitutes = label.substitutes.map((name) => (name.includes("/") ? name : toolId(serverId, name)));
  if (availability === "unavailable") {
    return { toolId: id, cause: "unhealthy", why: `its server ${serverId} is unavailable`, substitutes };
  }
  const missing = granted.missing(label.requires, serverId);
  if (missing.length === 0) return undefined;
  const cause = missing.some(({ kind }) => kind === "scope") ? "scope" : "precondition";
  return { toolId: id, cause, why: missingWords(missing), substitutes };
}
