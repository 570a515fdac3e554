/** Who is answered and who is withheld: a pure choice over what the index finds and what the catalogue says. */
import { matchesServer, matchesTool } from "../domain/filter.js";
import { toolId } from "../domain/ids.js";
import { LIMITS } from "../domain/limits.js";
import type { StubFields } from "../domain/stub.js";
import type { FindQuery, Reason, WithheldTool } from "./api.js";
import { type Intent, nameKey } from "./intent.js";
import type { Cut, ListedTool } from "./ports.js";
import { Granted, missingWords } from "./preconditions.js";
import { type Hit, SCORING, type SearchOptions, type SearchResult } from "./search.js";

export interface Candidate {
  readonly toolId: string;
  readonly listed: ListedTool;
  readonly label: StubFields;
  readonly score: number;
  readonly margin: number;
  /** Share of what could be asked of a tool, 0 to 1. */
  readonly fit: number;
  readonly reasons: readonly Reason[];
}

export interface Choice {
  readonly kept: readonly Candidate[];
  readonly withheld: readonly WithheldTool[];
  readonly weak: boolean;
}

export interface ChoiceDeps {
  readonly search: (intent: Intent, options: SearchOptions) => SearchResult;
  /** Tools in the index. */
  readonly tools: number;
  readonly cut: Cut;
  readonly labelOf: (listed: ListedTool) => StubFields;
}

/**
 * When nothing really fits: the best tool has less than `share` of what an ideal tool would have. A long intent asks for more than
 * any tool has, so of its ideal no more counts than `words` words that no tool has. With these values 1 to 5 of 100 intents of people
 * are called weak (25 where labels are slogans), and most sentences that ask for nothing.
 */
const WEAK = { share: 0.15, words: 3 } as const;

/** The best `topK` that may be offered, and who was in their way. */
export function choose(query: FindQuery, intent: Intent, topK: number, deps: ChoiceDeps): Choice {
  const { cut, labelOf } = deps;
  const granted = new Granted(query);
  const lookUp = (id: string): ListedTool | undefined => {
    const listed = cut.tool(id);
    return listed && wanted(query, listed) ? listed : undefined;
  };
  const refused = (id: string, listed: ListedTool) => refusal(id, listed, labelOf(listed), granted);
  const toCandidates = (result: SearchResult) => candidates(result, lookUp, labelOf, deps.tools);

  // A few more than wanted, so that it shows who was withheld; only where too many were is it searched again without them.
  const limit = 2 * topK + 10;
  let found = toCandidates(deps.search(intent, { limit, accept: ({ toolId: id }) => lookUp(id) !== undefined }));
  const judged = found.map((candidate) => refused(candidate.toolId, candidate.listed));
  const open = found.filter((_, i) => judged[i] === undefined);
  let kept = cutTo(open, topK, intent);
  const withheld = found.flatMap((candidate, i) => {
    const fault = judged[i];
    return fault && wouldRank(candidate, kept, topK) ? [{ ...fault, score: candidate.score }] : [];
  });
  if (kept.length < topK && found.length >= limit) {
    const mayOffer = (id: string) => {
      const listed = lookUp(id);
      return listed !== undefined && refused(id, listed) === undefined;
    };
    found = toCandidates(deps.search(intent, { limit: topK + 1, accept: ({ toolId: id }) => mayOffer(id) }));
    kept = cutTo(found, topK, intent);
  }
  const fits = kept.some(({ fit, reasons }) => fit >= WEAK.share || reasons.some((r) => r.kind === "exact-name"));
  return { kept, withheld: withheld.slice(0, LIMITS.withheldTools), weak: !fits };
}

/** Availability is no matter of the filter: who is unavailable is named as withheld. */
function wanted({ filter }: FindQuery, { tool, serverId }: ListedTool): boolean {
  return matchesServer(filter, filter.namespace, serverId) && matchesTool(filter, tool);
}

function candidates(
  { hits, ideal }: SearchResult,
  lookUp: (id: string) => ListedTool | undefined,
  labelOf: ChoiceDeps["labelOf"],
  tools: number,
): Candidate[] {
  const most = Math.min(ideal, WEAK.words * worthOfUnknown(tools));
  return hits.flatMap((hit, i) => {
    const listed = lookUp(hit.tool.toolId);
    if (!listed) return [];
    const margin = Math.max(0, hit.absolute - (hits[i + 1]?.absolute ?? 0));
    const fit = most > 0 ? Math.min(1, hit.raw / most) : 0;
    const facts = { listed, label: labelOf(listed), score: hit.absolute, margin, fit, reasons: reasonsOf(hit) };
    return [{ toolId: hit.tool.toolId, ...facts }];
  });
}

/** What a word that no tool has is worth in an ideal. */
function worthOfUnknown(tools: number): number {
  return (SCORING.k1 + 1) * Math.log(1 + (tools + 0.5) / 0.5);
}

function reasonsOf({ exactName, matched }: Hit): Reason[] {
  const reasons: Reason[] = exactName ? [{ kind: "exact-name" }] : [];
  return matched.length > 0 ? [...reasons, { kind: "matched-words", words: matched }] : reasons;
}

/**
 * The first `topK`, and beyond them the best tool of each name that the intent says: seven names are seven tools, but one
 * name that a hundred servers have is not a hundred.
 */
function cutTo(open: readonly Candidate[], topK: number, intent: Intent): readonly Candidate[] {
  const ids = new Set(intent.names);
  const said = new Set<string>();
  const kept: Candidate[] = [];
  for (const candidate of open) {
    const exact = candidate.reasons.some((reason) => reason.kind === "exact-name");
    const key = ids.has(candidate.toolId) ? candidate.toolId : nameKey(candidate.label.name);
    if (kept.length < topK || (exact && !said.has(key))) kept.push(candidate);
    if (exact) said.add(key);
  }
  return kept;
}

/** Whether it would be among the answers if it were not withheld. */
function wouldRank({ score, reasons }: Candidate, kept: readonly Candidate[], topK: number): boolean {
  return (
    kept.length < topK ||
    reasons.some((reason) => reason.kind === "exact-name") ||
    score >= Math.min(...kept.map((one) => one.score))
  );
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
