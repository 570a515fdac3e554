/** The whole catalogue in a few hundred tokens: what there is, under names that FindTools takes as categories. */
import { compareText } from "../domain/ids.js";
import { estimatedTokens } from "../domain/stub.js";
import { inModule, type Module, moduleOf, type NamedTool, type Names, takeApart } from "./modules.js";

export interface ServerNames {
  readonly serverId: string;
  readonly names: Names;
}

/** A declared category with those of its tools that are there. */
export interface CategoryNames {
  readonly name: string;
  readonly servers: readonly ServerNames[];
}

export interface ModuleMap {
  /** Byte-identical for equal catalogues and categories. */
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
  readonly kind: "category" | "module";
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

/** The declared categories, and all servers, each with its modules. */
export function mapOfAll(servers: readonly ServerNames[], categories: readonly CategoryNames[], tokenBudget: number): ModuleMap {
  const groups = servers.map(serverGroup);
  const tools = groups.reduce((sum, group) => sum + group.tools, 0);
  const declared = categories.map(({ name, servers: of }): Group => {
    const count = of.reduce((sum, { names }) => sum + names.length, 0);
    return { name, kind: "category", tools: count, parts: partsBy(of.flatMap(({ names }) => takeApart(names)), 0) };
  });
  return layOut(`${plural(tools, "tool")} on ${plural(servers.length, "server")}`, [...declared, ...groups], "server", tokenBudget, tools);
}

/** Its tools where they all fit, otherwise what they are about on each server. */
export function mapOfCategory({ name, servers }: CategoryNames, tokenBudget: number): ModuleMap {
  const count = servers.reduce((sum, { names }) => sum + names.length, 0);
  const title = `${plural(count, "tool")} of ${name}`;
  const all = servers.flatMap(({ serverId, names }) => takeApart(names).map((tool) => toolGroup(serverId, tool)));
  // An id has some ten characters at least: where those are too many already, nobody needs to lay them out.
  if (count * 10 <= tokenBudget * 4) {
    const whole = layOut(title, all, "tool", tokenBudget);
    if (whole.leftOut === 0) return whole;
  }
  return layOut(title, servers.flatMap(({ serverId, names }) => moduleGroups(serverId, names)), "module", tokenBudget);
}

/** One module: a server's are its modules, each with what it is about; a server's module's are its tools. */
export function mapOfModule({ serverId, names, module }: Module, tokenBudget: number): ModuleMap {
  if (module === undefined) {
    return layOut(`${plural(names.length, "tool")} of ${serverId}`, moduleGroups(serverId, names), "module", tokenBudget);
  }
  const tools = inModule(names, module);
  const groups = tools.map((tool) => toolGroup(serverId, tool));
  return layOut(`${plural(tools.length, "tool")} of ${serverId}/${module}`, groups, "tool", tokenBudget);
}

/** Lists of tools are immutable: what is said of a server's is made once. */
const serverGroups = new WeakMap<Names, Group>();

function serverGroup({ serverId, names }: ServerNames): Group {
  const known = serverGroups.get(names);
  if (known && known.name === serverId) return known;
  const made: Group = { name: serverId, kind: "module", tools: names.length, parts: partsBy(takeApart(names), 0) };
  serverGroups.set(names, made);
  return made;
}

function moduleGroups(serverId: string, names: Names): readonly Group[] {
  const byModule = groupBy(takeApart(names), moduleOf);
  return [...byModule].map(([module, tools]) => ({
    name: `${serverId}/${module}`,
    kind: "module",
    tools: tools.length,
    parts: partsBy(tools, 1),
  }));
}

function toolGroup(serverId: string, { name }: NamedTool): Group {
  return { name: `${serverId}/${name}`, kind: "module", tools: 1, parts: [] };
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

/** First every group by its name and count, categories and then the largest first where not all fit; then, in turns, one part more for each. */
function layOut(title: string, groups: readonly Group[], what: string, tokenBudget: number, counted = countOf(groups)): ModuleMap {
  const room = tokenBudget * 4;
  const bySize = [...groups].sort((a, b) => rankOf(a) - rankOf(b) || b.tools - a.tools || compareText(a.name, b.name));
  const rest = (shown: number) => restLine(groups.length - shown, shown === 0, what);
  let length = `${title}.`.length;
  for (const group of bySize) length += 1 + lengthOf(group, 0);
  let shown = bySize.length;
  // What is left out is told in a line of its own, so one line less is not always less text.
  while (shown > 0 && length + lineLength(rest(shown)) > room) length -= 1 + lengthOf(bySize[--shown] as Group, 0);
  const kept = bySize.slice(0, shown);
  const detail = spread(kept, room - length - lineLength(rest(shown)));
  const inOrder = [...kept].sort((a, b) => rankOf(a) - rankOf(b) || compareText(a.name, b.name));
  const lines = inOrder.map((group) => lineOf(group, detail.get(group) ?? 0));
  const text = [`${title}.`, ...lines, ...rest(shown)].join("\n");
  const modules = inOrder.map(({ name, tools }) => ({ name, tools }));
  return { text, tokens: estimatedTokens(text.length), modules, leftOut: groups.length - shown, tools: counted };
}

function countOf(groups: readonly Group[]): number {
  return groups.reduce((sum, group) => sum + group.tools, 0);
}

function rankOf({ kind }: Group): number {
  return kind === "category" ? 0 : 1;
}

function restLine(leftOut: number, nothing: boolean, what: string): readonly string[] {
  return leftOut === 0 ? [] : [`and ${plural(leftOut, `${nothing ? "" : "more "}${what}`)}`];
}

function lineLength(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + 1 + line.length, 0);
}

/** How many parts of each group are shown in so much room. */
function spread(groups: readonly Group[], room: number): ReadonlyMap<Group, number> {
  const detail = new Map<Group, number>();
  let left = room;
  let growing = groups.filter(({ parts }) => parts.length > 0);
  while (growing.length > 0 && left > 0) {
    growing = growing.filter((group) => {
      const now = detail.get(group) ?? 0;
      if (now >= group.parts.length) return false;
      const more = lengthOf(group, now + 1) - lengthOf(group, now);
      if (more > left) return false;
      left -= more;
      detail.set(group, now + 1);
      return true;
    });
  }
  return detail;
}

/** Lengths of a group's line, by how many of its parts it has, as far as somebody asked. */
interface Lengths {
  readonly of: number[];
  /** Verbs of the families so far. */
  readonly families: Set<string>;
  /** What stands behind the colon, without the rest. */
  told: number;
}

/** Groups are asked again and again, one part more each time, and for the maps of the next catalogues. */
const lengths = new WeakMap<Group, Lengths>();

/** The length of `lineOf`, without writing it. */
function lengthOf(group: Group, count: number): number {
  const head = headOf(group).length;
  if (count === 0) return head;
  const known = lengths.get(group) ?? { of: [head], families: new Set(), told: 0 };
  lengths.set(group, known);
  while (known.of.length <= count) {
    const { name, verbs } = group.parts[known.of.length - 1] as Part;
    const family = familyOf(verbs);
    const between = known.told === 0 ? 0 : 2;
    known.told += between + name.length + (known.families.has(family) || family === "" ? 0 : 3 + family.length);
    known.families.add(family);
    const rest = group.parts.length - known.of.length;
    known.of.push(head + 2 + known.told + (rest > 0 ? 3 + String(rest).length : 0));
  }
  return known.of[count] as number;
}

function familyOf(verbs: readonly string[]): string {
  return verbs.slice(0, VERBS_SHOWN).join(", ");
}

function headOf({ name, kind, tools, parts }: Group): string {
  const called = kind === "category" ? `category ${name}` : name;
  return kind === "module" && parts.length === 0 ? called : `${called} ${tools}`;
}

/** The first `count` parts; those with equal verbs are one family: "order, return (create, list)". ASCII, as all names are. */
function lineOf(group: Group, count: number): string {
  if (count === 0) return headOf(group);
  const { parts } = group;
  const families = groupBy(parts.slice(0, count), ({ verbs }) => familyOf(verbs));
  const told = [...families].map(([verbs, of]) => {
    const objects = of.map((part) => part.name).join(", ");
    return verbs === "" ? objects : `${objects} (${verbs})`;
  });
  const rest = count < parts.length ? [`+${parts.length - count}`] : [];
  return `${headOf(group)}: ${[...told, ...rest].join("; ")}`;
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
