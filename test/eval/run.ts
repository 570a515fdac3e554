import { createHash } from "node:crypto";
import type { Finder, Found } from "./finder.js";
import { mean, percentile, type Scores, scoresOf } from "./metrics.js";
import { confusionOf, siblingsOf } from "./siblings.js";
import type { RetrievalSet, SetQuery } from "./sets.js";

/** One line of the result. Scores, shares and confusion are percent. */
export interface Row extends Scores {
  readonly set: string;
  /**
   * `cold`: all queries, nothing remembered. `half`: the scored half, nothing remembered. `warm`: the scored half after
   * reports of the other one. `replay-10`, `replay-30`: the same, with that many percent of the reports naming a random tool.
   */
  readonly mode: string;
  readonly via: string;
  readonly queries: number;
  /** Of the pairs of a right tool and a wrong sibling; absent where there are none. */
  readonly sibling_confusion?: number;
  readonly sibling_pairs: number;
  readonly weak: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  /** Estimated tokens of an answer, on average. */
  readonly tokens: number;
}

const REPLAYS = [
  { mode: "warm", wrong: 0 },
  { mode: "replay-10", wrong: 0.1 },
  { mode: "replay-30", wrong: 0.3 },
] as const;

export async function runSet(set: RetrievalSet, finder: Finder, via: string, modes?: readonly string[]): Promise<Row[]> {
  const wanted = (mode: string) => !modes || modes.includes(mode);
  const { past, scored } = halves(set.queries);
  const rows: Row[] = [];
  const add = async (mode: string, queries: readonly SetQuery[]) => {
    if (queries.length > 0) rows.push(await score(set, mode, via, queries, (query) => finder.find(query)));
  };
  if (wanted("cold")) await add("cold", set.queries);
  if (wanted("half")) await add("half", scored);
  for (const { mode, wrong } of REPLAYS) {
    if (!wanted(mode)) continue;
    await finder.forget();
    await replay(set, finder, past, wrong);
    await add(mode, scored);
  }
  await finder.forget();
  return rows;
}

export async function score(
  set: RetrievalSet,
  mode: string,
  via: string,
  queries: readonly SetQuery[],
  find: (query: SetQuery) => Promise<Found>,
): Promise<Row> {
  const siblings = siblingsOf(set.tools);
  const scores: Scores[] = [];
  const found: Found[] = [];
  let pairs = 0;
  let confused = 0;
  for (const query of queries) {
    const answer = await find(query);
    found.push(answer);
    scores.push(scoresOf(answer.ranked, query.relevant));
    const confusion = confusionOf(answer.ranked, query.relevant, siblings);
    pairs += confusion.pairs;
    confused += confusion.confused;
  }
  const times = found.map(({ ms }) => ms);
  const percent = Object.fromEntries(Object.entries(mean(scores)).map(([key, value]) => [key, round(value * 100, 2)]));
  return {
    set: set.name,
    mode,
    via,
    queries: queries.length,
    ...(percent as unknown as Scores),
    ...(pairs > 0 ? { sibling_confusion: round((100 * confused) / pairs, 1) } : {}),
    sibling_pairs: pairs,
    weak: round((100 * found.filter(({ weak }) => weak).length) / queries.length, 1),
    p50_ms: round(percentile(times, 0.5), 3),
    p99_ms: round(percentile(times, 0.99), 3),
    tokens: Math.round(found.reduce((sum, { tokens }) => sum + tokens, 0) / queries.length),
  };
}

async function replay(set: RetrievalSet, finder: Finder, past: readonly SetQuery[], wrong: number): Promise<void> {
  for (const query of past) {
    for (const relevant of query.relevant) {
      const chance = drawn(`${query.id} ${relevant} wrong`);
      const other = set.tools[Math.floor(drawn(`${query.id} ${relevant} tool`) * set.tools.length)];
      await finder.report(query, chance < wrong && other ? other.id : relevant);
    }
  }
}

/** By a hash of the id: the same halves whatever the order and the number of queries. */
export function halves(queries: readonly SetQuery[]): { past: SetQuery[]; scored: SetQuery[] } {
  const past: SetQuery[] = [];
  const scored: SetQuery[] = [];
  for (const query of queries) (drawn(`${query.id} half`) < 0.5 ? past : scored).push(query);
  return { past, scored };
}

/** A number from 0 to 1 that is the same in every run. */
function drawn(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32LE(0) / 2 ** 32;
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
