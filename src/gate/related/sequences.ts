/** What past calls say goes together: tools that often come next, and whole sequences as one bundle. */
import type { StubFields } from "../../domain/stub.js";
import type { RecentTool, Sequence } from "../api.js";
import { byShare, type Follows, withoutParts } from "../outcomes/follows.js";
import type { Cut, ListedTool } from "../ports.js";
import type { Beside, Related } from "../stages.js";
import { describeSequence } from "./sequence-words.js";

const MOST = {
  /** Tools that come next, for one answer and for all. */
  perTool: 2,
  all: 3,
  /** For the call that was made last. */
  perRecent: 1,
} as const;

export interface SequencesDeps {
  readonly follows: Pick<Follows, "after" | "holding">;
  readonly recent: readonly RecentTool[];
  readonly cut: Pick<Cut, "tool">;
  readonly labelOf: (listed: ListedTool) => StubFields;
}

export function sequencesRelated({ follows, recent, cut, labelOf }: SequencesDeps): Related {
  const next = (of: string, most: number): Beside[] =>
    follows.after(of).slice(0, most).map(({ toolIds }) => ({ toolId: toolIds[1] as string, reason: { kind: "companion", of } }));
  return {
    beside(chosen) {
      const held = new Set(chosen.map(({ toolId }) => toolId));
      const found = [
        ...chosen.flatMap(({ toolId }) => next(toolId, MOST.perTool)),
        ...lastOf(recent).flatMap((toolId) => next(toolId, MOST.perRecent)),
      ];
      const once = new Map<string, Beside>();
      for (const beside of found) if (!held.has(beside.toolId) && !once.has(beside.toolId)) once.set(beside.toolId, beside);
      return [...once.values()].slice(0, MOST.all);
    },
    sequences(chosen): readonly Sequence[] {
      const chains = withoutParts(chosen.flatMap((toolId) => follows.holding(toolId))).sort(byShare);
      return chains.flatMap(({ toolIds, share }) => {
        const tools = toolIds.flatMap((toolId) => cut.tool(toolId) ?? []);
        if (tools.length < toolIds.length) return [];
        const description = describeSequence(tools.map((listed) => ({ name: listed.tool.name, title: labelOf(listed).title })));
        return [{ toolIds, share, description }];
      });
    },
  };
}

/** Tools that were called with success in the latest turn that had a call. */
export function lastOf(recent: readonly RecentTool[]): readonly string[] {
  const good = recent.filter(({ success }) => success);
  const last = Math.min(...good.map(({ turnsAgo }) => turnsAgo));
  return good.filter(({ turnsAgo }) => turnsAgo === last).map(({ toolId }) => toolId);
}
