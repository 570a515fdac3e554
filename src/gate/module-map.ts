/** The whole catalogue in a few hundred tokens: what there is, under names that FindTools takes as categories. */
import { compareText } from "../domain/ids.js";
import { estimatedTokens } from "../domain/stub.js";
import { inModule, type Module, moduleOf, type NamedTool, type Names, takeApart } from "./modules.js";

export interface ServerNames {
  readonly serverId: string;
  readonly names: Names;
}

export interface ModuleMap {
  /** Byte-identical for equal catalogues. */
  readonly text: string;
  readonly tokens: number;
  /** Those that the text shows, in its order. */
  readonly modules: readonly { readonly name: string; readonly tools: number }[];
  /** Modules of this level that did not fit. */
  readonly leftOut: number;
  readonly tools: number;
}

/** A line of the map: a module, and what is in it. */
interface Group {
  readonly name: string;
  readonly tools: number;
  /** Most tools first. */
  readonly parts: readonly Part[];
}

interface Part {
  readonly name: string;
  readonly tools: number;
  /** Most used first. */
  readonly verbs: readonly string[];
}

/** Verbs that a family shows. */
const VERBS_SHOWN = 4;

/** All servers, each with its modules. */
export function mapOfAll(servers: readonly ServerNames[], tokenBudget: number): ModuleMap {
  const groups = servers.map(({ serverId, names }) => ({ name: serverId, tools: names.length, parts: partsBy(takeApart(names), 0) }));
  const tools = groups.reduce((sum, group) => sum + group.tools, 0);
  return layOut(`${plural(tools, "tool")} on ${plural(servers.length, "server")}`, groups, "server", tokenBudget);
}

/** One module: a server's are its modules, each with what it is about; a server's module's are its tools. */
export function mapOfModule({ serverId, names, module }: Module, tokenBudget: number): ModuleMap {
  return module === undefined ? mapOfServer(serverId, names, tokenBudget) : toolsOf(serverId, names, module, tokenBudget);
}

function mapOfServer(serverId: string, names: Names, tokenBudget: number): ModuleMap {
  const byModule = groupBy(takeApart(names), moduleOf);
  const groups = [...byModule].map(([module, tools]) => ({
    name: `${serverId}/${module}`,
    tools: tools.length,
    parts: partsBy(tools, 1),
  }));
  return layOut(`${plural(names.length, "tool")} of ${serverId}`, groups, "module", tokenBudget);
}

function toolsOf(serverId: string, names: Names, module: string, tokenBudget: number): ModuleMap {
  const tools = inModule(names, module);
  const groups = tools.map(({ name }) => ({ name: `${serverId}/${name}`, tools: 1, parts: [] }));
  return layOut(`${plural(tools.length, "tool")} of ${serverId}/${module}`, groups, "tool", tokenBudget);
}

function partsBy(tools: readonly NamedTool[], level: number): readonly Part[] {
  const groups = groupBy(tools, ({ nouns }) => nouns[Math.min(level, nouns.length - 1)] as string);
  const parts = [...groups].map(([name, of]) => ({ name, tools: of.length, verbs: verbsOf(of) }));
  return parts.sort((a, b) => b.tools - a.tools || compareText(a.name, b.name));
}

function verbsOf(tools: readonly NamedTool[]): string[] {
  const counts = [...groupBy(tools.filter(({ verb }) => verb !== ""), ({ verb }) => verb)];
  return counts.sort(([a, as], [b, bs]) => bs.length - as.length || compareText(a, b)).map(([verb]) => verb);
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** First every group by its name and count, the largest first where not all fit; then, in turns, one part more for each. */
function layOut(title: string, groups: readonly Group[], kind: string, tokenBudget: number): ModuleMap {
  const tools = groups.reduce((sum, group) => sum + group.tools, 0);
  const bySize = [...groups].sort((a, b) => b.tools - a.tools || compareText(a.name, b.name));
  let shown = bySize;
  const textOf = () => render(title, shown, kind, groups.length - shown.length, new Map());
  const budget = tokenBudget * 4;
  if (textOf().length > budget) {
    // The longest beginning that fits; halving finds it, because each line more makes the text longer.
    let low = 0;
    let high = bySize.length;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      shown = bySize.slice(0, middle);
      if (textOf().length <= budget) low = middle;
      else high = middle - 1;
    }
    shown = bySize.slice(0, low);
  }
  const detail = spread(shown, budget - textOf().length);
  const text = render(title, shown, kind, groups.length - shown.length, detail);
  const modules = inOrder(shown).map(({ name, tools: of }) => ({ name, tools: of }));
  return { text, tokens: estimatedTokens(text.length), modules, leftOut: groups.length - shown.length, tools };
}

/** How many parts of each group are shown in so much room. */
function spread(groups: readonly Group[], room: number): ReadonlyMap<string, number> {
  const detail = new Map<string, number>();
  let left = room;
  let growing = [...groups];
  while (growing.length > 0) {
    growing = growing.filter((group) => {
      const now = detail.get(group.name) ?? 0;
      if (now >= group.parts.length) return false;
      const more = lineOf(group, now + 1).length - lineOf(group, now).length;
      if (more > left) return false;
      left -= more;
      detail.set(group.name, now + 1);
      return true;
    });
  }
  return detail;
}

function render(
  title: string,
  groups: readonly Group[],
  kind: string,
  leftOut: number,
  detail: ReadonlyMap<string, number>,
): string {
  const lines = inOrder(groups).map((group) => lineOf(group, detail.get(group.name) ?? 0));
  const rest = leftOut === 0 ? [] : [`and ${plural(leftOut, `${groups.length === 0 ? "" : "more "}${kind}`)}`];
  return [`${title}.`, ...lines, ...rest].join("\n");
}

function inOrder(groups: readonly Group[]): readonly Group[] {
  return [...groups].sort((a, b) => compareText(a.name, b.name));
}

/** The first `count` parts; those with equal verbs are one family: "order, return (create, list)". ASCII, as all names are. */
function lineOf({ name, tools, parts }: Group, count: number): string {
  const head = parts.length === 0 ? name : `${name} ${tools}`;
  if (count === 0) return head;
  const families = groupBy(parts.slice(0, count), ({ verbs }) => verbs.slice(0, VERBS_SHOWN).join(", "));
  const told = [...families].map(([verbs, of]) => {
    const objects = of.map((part) => part.name).join(", ");
    return verbs === "" ? objects : `${objects} (${verbs})`;
  });
  const rest = count < parts.length ? [`+${parts.length - count}`] : [];
  return `${head}: ${[...told, ...rest].join("; ")}`;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
