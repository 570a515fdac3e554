import type { SetTool } from "./sets.js";

const VERBS = new Set(
  `accept activate add allow append apply approve archive ask assign attach book block build calculate cancel change check clear clone
close commit compare complete compute confirm connect convert copy count create deactivate decline decode delete deny deploy destroy
detach detect disable disconnect download edit enable encode end evaluate execute export extract fetch find finish fork format generate
get hide import insert install invite issue join leave link list load lock log lookup make mark merge modify move open order parse patch
pause pay play post predict print process publish pull push put query read receive record refund register reject release remove rename
reopen replace reply request reserve reset resolve restart restore resume retrieve return revoke revert run save scan schedule search
select send set share show sign sort split start stop store submit subscribe suspend switch sync tag test track transfer translate turn
unblock unlink unlock unsubscribe update upgrade upload use validate verify view visualize watch write`.split(/\s+/),
);

/**
 * Siblings of a tool: tools of the same server whose names speak of the same object with another verb. Answers their ids by
 * tool; tools without a sibling are absent.
 */
export function siblingsOf(tools: readonly SetTool[]): Map<string, string[]> {
  const families = new Map<string, { id: string; verb: string }[]>();
  for (const tool of tools) {
    const parts = partsOf(tool.name);
    const verb = parts.find((part) => VERBS.has(part));
    const object = parts.filter((part) => part !== verb).map((part) => part.replace(/s$/, "")).sort();
    if (verb === undefined || object.length === 0) continue;
    const key = `${tool.server ?? ""}\n${object.join(" ")}`;
    const family = families.get(key);
    if (family) family.push({ id: tool.id, verb });
    else families.set(key, [{ id: tool.id, verb }]);
  }
  const siblings = new Map<string, string[]>();
  for (const family of families.values()) {
    for (const { id, verb } of family) {
      const others = family.filter((other) => other.verb !== verb).map((other) => other.id);
      if (others.length > 0) siblings.set(id, others);
    }
  }
  return siblings;
}

function partsOf(name: string): string[] {
  const parts = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+/g) ?? [];
  return parts.map((part) => part.toLowerCase());
}

/** Of the pairs of a right tool and a wrong sibling, how many there are and in how many the sibling stands first. */
export function confusionOf(ranked: readonly string[], relevant: readonly string[], siblings: ReadonlyMap<string, string[]>) {
  const rank = new Map(ranked.map((id, i) => [id, i]));
  let pairs = 0;
  let confused = 0;
  for (const gold of relevant) {
    for (const sibling of siblings.get(gold) ?? []) {
      if (relevant.includes(sibling)) continue;
      pairs++;
      if ((rank.get(sibling) ?? Infinity) < (rank.get(gold) ?? Infinity)) confused++;
    }
  }
  return { pairs, confused };
}
