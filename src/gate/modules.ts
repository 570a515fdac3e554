/** What the names of a server's tools say about what belongs together. */
import { Fault } from "../domain/fault.js";
import { compareText } from "../domain/ids.js";

/** A tool's name taken apart. */
export interface NamedTool {
  readonly name: string;
  /** What it is about, from the general to the special; never empty. */
  readonly nouns: readonly string[];
  /** What it does; empty where the name does not say. */
  readonly verb: string;
}

/** Words that say what is done. */
const VERBS = new Set(
  (
    "abort accept add aggregate analyze append apply approve archive assign attach auth browse bulk build calculate cancel check " +
    "clear click clone close commit compare complete connect convert copy count create deactivate debug delete deny deploy describe detach diff " +
    "disable disconnect download drag drop dump edit embed enable evaluate execute explain export extract fetch fill find fork forward generate get " +
    "import insert inspect install invite issue join kill launch list lock login logout manage merge modify move navigate open " +
    "parse patch pause pay ping play poll press preview print publish pull push put query read rebase receive redirect refresh " +
    "refund register reject release reload remove rename render reopen replace reply request reset resize resolve restart restore resume retry " +
    "revert revoke rollback rotate run save scan search select send set share show simulate sort split start stop subscribe " +
    "submit suspend switch sync take toggle transfer trigger undo uninstall unlink unlock unpublish unsubscribe update upgrade upload " +
    "upsert use validate verify wait watch write"
  ).split(" "),
);

/** Words that are things as often: what is done only where no other word says it. */
const PERHAPS = new Set("batch book call display link log mark order post record schedule tag test type view".split(" "));

/** A module of the map by its name, `server` or `server/module`. */
export interface Module {
  readonly serverId: string;
  readonly names: Names;
  /** Undefined for the whole server. */
  readonly module: string | undefined;
}

/** Throws NOT_FOUND when there is none of that name. */
export function moduleNamed(cut: { server(serverId: string): Names | undefined }, name: string): Module {
  const { serverId, module } = splitModule(name);
  const names = cut.server(serverId);
  if (names && (module === undefined || inModule(names, module).length > 0)) return { serverId, names, module };
  throw new Fault("NOT_FOUND", `no such module in this namespace: ${name}; GetModuleMap tells their names`, {
    metadata: { module: name },
  });
}

/** Whether a tool of this server, whose tools are these, is in the module. */
export function isIn(name: string, serverId: string, tool: string, names: Names): boolean {
  const wanted = splitModule(name);
  if (wanted.serverId !== serverId) return false;
  return wanted.module === undefined || modulesOf(names).get(tool) === wanted.module;
}

function splitModule(name: string): { readonly serverId: string; readonly module: string | undefined } {
  const slash = name.indexOf("/");
  return slash < 0 ? { serverId: name, module: undefined } : { serverId: name.slice(0, slash), module: name.slice(slash + 1) };
}

/** Versions and small words, which group nothing. */
const NOTHING = /^(?:v?\d+|a|an|the|of|to|by|for|in|on|from|with|and|or|is|all|my)$/;

const PIECE = /[vV]\d+(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g;

/** The tools of one server; a list that is never written to. */
export type Names = readonly { readonly name: string }[];

/** Lists are immutable, and a server's is asked about again and again. */
const apart = new WeakMap<Names, readonly NamedTool[]>();

/** In name order, each under the nouns of its name, without those that all tools of the server share. */
export function takeApart(names: Names): readonly NamedTool[] {
  const known = apart.get(names);
  if (known) return known;
  const tools = withoutShared(names.map(({ name }) => name).sort(compareText).map(partsOf));
  apart.set(names, tools);
  return tools;
}

const modules = new WeakMap<Names, ReadonlyMap<string, string>>();

/** Tool → its module. */
function modulesOf(names: Names): ReadonlyMap<string, string> {
  const known = modules.get(names);
  if (known) return known;
  const made = new Map(takeApart(names).map((tool) => [tool.name, moduleOf(tool)]));
  modules.set(names, made);
  return made;
}

/** The tools of a server that belong to a module. */
export function inModule(names: Names, module: string): readonly NamedTool[] {
  return takeApart(names).filter((tool) => moduleOf(tool) === module);
}

export function moduleOf({ nouns }: NamedTool): string {
  return nouns[0] as string;
}

function withoutShared(tools: readonly NamedTool[]): readonly NamedTool[] {
  let shared = 0;
  while (tools.length > 2 && tools.every(({ nouns }) => nouns.length > shared + 1 && nouns[shared] === tools[0]?.nouns[shared])) shared++;
  return shared === 0 ? tools : tools.map((tool) => ({ ...tool, nouns: tool.nouns.slice(shared) }));
}

function partsOf(name: string): NamedTool {
  const words = (name.match(PIECE) ?? [name]).map((word) => word.toLowerCase());
  const meaning = words.filter((word) => !NOTHING.test(word));
  const verb = meaning.find((word) => VERBS.has(word)) ?? meaning.find((word) => PERHAPS.has(word)) ?? "";
  const nouns = meaning.filter((word) => word !== verb && !VERBS.has(word)).map(singular);
  return { name, nouns: nouns.length > 0 ? nouns : [verb || name], verb };
}

function singular(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`;
  return word.length > 3 && /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}
