/** What a rule file says twice, and what it says of nothing: by its own words, and against the tools that there are. */
import type { Category, Rule, RuleFile, Selector } from "./model.js";
import { covers, type Selectable, type Selects, selects } from "./selectors.js";

export interface NamedTool {
  readonly serverId: string;
  readonly tool: Selectable;
}

/** Two categories that share tools. */
export interface Overlap {
  readonly categories: readonly [string, string];
  /** Selectors of both of which one takes all that the other takes; empty where only the tools tell. */
  readonly selectors: readonly (readonly [string, string])[];
  /** tool_ids in both; empty where no tools are known. */
  readonly tools: readonly string[];
}

/** In the order of the file. */
export function overlapsOf({ categories }: RuleFile, tools: readonly NamedTool[]): readonly Overlap[] {
  const holds = new Map(categories.map((category) => [category, selects(category.members)]));
  return pairsOf(categories).flatMap(([one, other]): readonly Overlap[] => {
    const selectors = one.members.flatMap((a) =>
      other.members.filter((b) => covers(a, b) || covers(b, a)).map((b): readonly [string, string] => [a.text, b.text]),
    );
    const [inOne, inOther] = [holds.get(one), holds.get(other)];
    const shared = tools.filter(({ serverId, tool }) => inOne?.(serverId, tool) && inOther?.(serverId, tool));
    const ids = shared.map(({ serverId, tool }) => `${serverId}/${tool.name}`);
    return selectors.length + ids.length === 0 ? [] : [{ categories: [one.name, other.name], selectors, tools: ids }];
  });
}

/** A selector that selects none of the tools, and where it stands. */
export interface Unmatched {
  /** `the category files`, `the rule "exports"`. */
  readonly of: string;
  readonly line: number;
  readonly selector: string;
}

export function unmatchedOf({ categories, rules }: RuleFile, tools: readonly NamedTool[]): readonly Unmatched[] {
  const declared = new Map<string, Selects>(categories.map(({ name, members }) => [name, selects(members)]));
  const ids = new Set(tools.map(({ serverId, tool }) => `${serverId}/${tool.name}`));
  const none = (of: string, line: number, selectors: readonly Selector[]): readonly Unmatched[] =>
    selectors
      .filter((selector) => {
        const chosen = selects([selector], declared);
        return !tools.some(({ serverId, tool }) => chosen(serverId, tool));
      })
      .map(({ text }) => ({ of, line, selector: text }));
  return [
    ...categories.flatMap(({ name, line, members }) => none(`the category ${name}`, line, members)),
    ...rules.flatMap((rule) => {
      const of = `the rule ${JSON.stringify(rule.name)}`;
      const included = rule.include.filter((id) => !ids.has(id)).map((selector) => ({ of, line: rule.line, selector }));
      return [...none(of, rule.line, selectorsOf(rule)), ...included];
    }),
  ];
}

function selectorsOf({ allow, deny, prefer, requireScope }: Rule): readonly Selector[] {
  return [...allow, ...deny, ...prefer, ...requireScope.flatMap(({ of }) => of)];
}

function pairsOf(categories: readonly Category[]): readonly (readonly [Category, Category])[] {
  return categories.flatMap((one, i) => categories.slice(i + 1).map((other) => [one, other] as const));
}
