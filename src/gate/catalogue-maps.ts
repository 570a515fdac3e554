/** Maps of whole catalogues: what is asked again of an equal catalogue is there, and a change makes anew only what it touches. */
import type { Tool } from "../domain/server.js";
import { type CategoryNames, mapOfAll, type ModuleMap } from "./module-map.js";
import type { Cut } from "./ports.js";
import type { Rules } from "./stages.js";

type Servers = ReturnType<Cut["servers"]>;

interface Held {
  readonly servers: Servers;
  readonly rules: Rules;
  readonly byBudget: Map<number, ModuleMap>;
}

/** Namespaces and budgets that are kept: a map is a few kilobytes. */
const NAMESPACES = 100;
const BUDGETS = 8;

export class CatalogueMaps {
  private readonly held = new Map<string, Held>();

  of(namespace: string, servers: Servers, rules: Rules, tokenBudget: number): ModuleMap {
    const { byBudget } = this.heldFor(namespace, servers, rules);
    const known = byBudget.get(tokenBudget);
    if (known) return known;
    const categories = rules.categories.map((name) => categoryNames(name, servers, rules));
    const made = mapOfAll(servers, categories, tokenBudget);
    if (byBudget.size >= BUDGETS) byBudget.clear();
    byBudget.set(tokenBudget, made);
    return made;
  }

  private heldFor(namespace: string, servers: Servers, rules: Rules): Held {
    const known = this.held.get(namespace);
    if (known && known.rules === rules && same(known.servers, servers)) return known;
    if (!known && this.held.size >= NAMESPACES) this.held.clear();
    const made: Held = { servers, rules, byBudget: new Map() };
    this.held.set(namespace, made);
    return made;
  }
}

/** Lists of tools are immutable, so equal ones are the same. */
function same(a: Servers, b: Servers): boolean {
  return a.length === b.length && a.every(({ serverId, names }, i) => b[i]?.serverId === serverId && b[i]?.names === names);
}

type Category = NonNullable<ReturnType<Rules["category"]>>;

/** By a category's function, and so for as long as its rules are in force. */
const members = new WeakMap<Category, WeakMap<readonly Tool[], readonly Tool[]>>();

/** The members of a declared category on all servers that have any. */
export function categoryNames(name: string, servers: Servers, rules: Rules): CategoryNames {
  const holds = rules.category(name);
  if (!holds) return { name, servers: [] };
  const known = members.get(holds) ?? new WeakMap<readonly Tool[], readonly Tool[]>();
  members.set(holds, known);
  const of = servers.map(({ serverId, names }) => {
    const kept = known.get(names) ?? names.filter((tool) => holds(serverId, tool));
    known.set(names, kept);
    return { serverId, names: kept };
  });
  return { name, servers: of.filter(({ names }) => names.length > 0) };
}
