/** Which tools are used one after the other, and how often. */
import type { Outcome } from "./outcome.js";

/** Tools used one after the other, in the order of use. */
export interface Chain {
  readonly toolIds: readonly string[];
  /** Of all uses of its first tool, 0 to 1. */
  readonly share: number;
}

export const FOLLOWS = {
  /** Seen less often than this is chance. */
  least: 3,
  /** Of the uses of the first tool. */
  share: 0.3,
  /** Tools that come next of which the shares are counted: those that came next most often. */
  looked: 8,
  /** Tools of a chain: an outcome knows that many before it, less one. */
  longest: 4,
} as const;

/**
 * Read from the outcomes of tools, and so as bounded and as shared as they are. A caller's outcomes are compared with its own
 * alone, over the time of which both are kept: a tool whose uses are so many that only the last are kept is not followed more
 * often for that.
 */
export class Follows {
  /** Tool → tools that came right after it, and how often; and the same the other way round. */
  private readonly followers = new Map<string, Map<string, number>>();
  private readonly leaders = new Map<string, ReadonlyMap<string, number>>();
  private readonly known = new Map<string, readonly Chain[]>();
  private readonly successes = new Map<string, readonly Outcome[]>();

  /** These are the outcomes of a tool now, the newest first. */
  set(toolId: string, outcomes: readonly Outcome[]): void {
    const good = outcomes.filter(({ success }) => success);
    const before = this.leaders.get(toolId) ?? new Map<string, number>();
    const after = seenOften(good.flatMap(({ after: [first] }) => first ?? []));
    for (const leader of before.keys()) if (!after.has(leader)) this.drop(leader, toolId);
    for (const [leader, count] of after) {
      const all = this.followers.get(leader) ?? new Map<string, number>();
      this.followers.set(leader, all.set(toolId, count));
    }
    for (const id of [toolId, ...before.keys(), ...after.keys()]) this.known.delete(id);
    if (after.size === 0) this.leaders.delete(toolId);
    else this.leaders.set(toolId, after);
    if (good.length === 0) this.successes.delete(toolId);
    else this.successes.set(toolId, good);
  }

  /** Tools that often come right after this one, the most frequent first. */
  after(toolId: string): readonly Chain[] {
    const known = this.known.get(toolId);
    if (known) return known;
    const chains = this.longer({ toolIds: [toolId], share: 1 });
    this.known.set(toolId, chains);
    return chains;
  }

  /** Whole chains that hold this tool, none of them a part of another, the most frequent first. */
  holding(toolId: string): readonly Chain[] {
    const chains = this.startsOf(toolId).flatMap((start) => this.after(start).flatMap((chain) => this.whole(chain)));
    const holding = chains.filter(({ toolIds }) => toolIds.includes(toolId));
    return withoutParts(holding).sort(byShare);
  }

  private whole(chain: Chain): readonly Chain[] {
    if (chain.toolIds.length >= FOLLOWS.longest) return [chain];
    const longer = this.longer(chain);
    return longer.length === 0 ? [chain] : longer.flatMap((next) => this.whole(next));
  }

  /** The chain with each tool that often comes next. */
  private longer({ toolIds }: Chain): readonly Chain[] {
    const last = toolIds.at(-1) as string;
    const chains: Chain[] = [];
    const uses = this.successes.get(toolIds[0] as string)?.length ?? 0;
    // Most of the many that follow a much used tool are seldom, and to tell how seldom exactly takes long.
    const often = [...(this.followers.get(last) ?? [])].filter(([id, count]) => count >= FOLLOWS.share * uses && !toolIds.includes(id));
    if (often.length > FOLLOWS.looked) often.sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
    for (const [next] of often.slice(0, FOLLOWS.looked)) {
      const share = this.shareOf([...toolIds, next]);
      if (share >= FOLLOWS.share) chains.push({ toolIds: [...toolIds, next], share });
    }
    return chains.sort(byShare);
  }

  /** Tools that a chain with this one may begin with. */
  private startsOf(toolId: string): readonly string[] {
    const starts = new Set([toolId]);
    let edge = [toolId];
    for (let step = 1; step < FOLLOWS.longest; step++) {
      const before = edge.flatMap((id) => [...(this.leaders.get(id)?.keys() ?? [])].filter((leader) => this.isFrequent(leader, id)));
      edge = before.filter((id) => !starts.has(id));
      for (const id of edge) starts.add(id);
    }
    return [...starts];
  }

  private isFrequent(leader: string, toolId: string): boolean {
    return this.after(leader).some(({ toolIds }) => toolIds[1] === toolId);
  }

  /** 0 where it was seen too seldom, or by one caller of several alone. */
  private shareOf(toolIds: readonly string[]): number {
    const [first, last] = [toolIds[0] as string, toolIds.at(-1) as string];
    const path = toolIds.slice(0, -1).reverse();
    const uses = byCaller(this.successes.get(first) ?? []);
    const ends = (this.successes.get(last) ?? []).filter(({ after }) => path.every((id, i) => after[i] === id));
    let all = 0;
    let seen = 0;
    let supporters = 0;
    for (const [caller, { count, oldestMs }] of uses) {
      const own = ends.filter((outcome) => outcome.caller === caller && outcome.atMs >= oldestMs).length;
      all += count;
      seen += Math.min(own, count);
      if (own > 0) supporters++;
    }
    if (seen < FOLLOWS.least || (supporters < 2 && uses.size > 1)) return 0;
    return seen / all;
  }

  private drop(leader: string, toolId: string): void {
    const all = this.followers.get(leader);
    all?.delete(toolId);
    if (all?.size === 0) this.followers.delete(leader);
  }
}

/** How often each is there, without those that are there too seldom. */
function seenOften(toolIds: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const toolId of toolIds) counts.set(toolId, (counts.get(toolId) ?? 0) + 1);
  return new Map([...counts].filter(([, count]) => count >= FOLLOWS.least));
}

function byCaller(outcomes: readonly Outcome[]): ReadonlyMap<number, { readonly count: number; readonly oldestMs: number }> {
  const callers = new Map<number, { count: number; oldestMs: number }>();
  for (const { caller, atMs } of outcomes) {
    const known = callers.get(caller) ?? { count: 0, oldestMs: atMs };
    callers.set(caller, { count: known.count + 1, oldestMs: Math.min(known.oldestMs, atMs) });
  }
  return callers;
}

export function byShare(a: Chain, b: Chain): number {
  const [x, y] = [a.toolIds.join(" "), b.toolIds.join(" ")];
  return b.share - a.share || b.toolIds.length - a.toolIds.length || (x < y ? -1 : x > y ? 1 : 0);
}

export function withoutParts(chains: readonly Chain[]): Chain[] {
  const texts = new Map(chains.map((chain) => [` ${chain.toolIds.join(" ")} `, chain]));
  const isPart = (text: string) => [...texts.keys()].some((other) => other !== text && other.includes(text));
  return [...texts].filter(([text]) => !isPart(text)).map(([, chain]) => chain);
}
