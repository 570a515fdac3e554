/** Tools of one server that do opposite things to the same thing: close and delete, enable and disable. */
import { compareText, toolId } from "../../domain/ids.js";
import type { Tool } from "../../domain/server.js";
import type { StubFields } from "../../domain/stub.js";
import { sideEffectOf } from "../offers.js";
import type { Beside, Related } from "../stages.js";
import { type Act, actOfName, actOfTitle, areOpposite, isDestructive } from "./verbs.js";

/** Siblings shown of one tool, and in one answer; beyond it only those without which something destructive would stand alone. */
const OF_ONE = 2;
const OF_ALL = 3;
/** Chosen tools whose opposites are shown: the others hardly are what is meant. */
const CHOSEN = 3;
/** Tools about one thing that are looked at. */
const FAMILY = 50;
/** Titles of larger servers are not read for it. */
const TITLED = 2_000;

type Chosen = Parameters<Related["beside"]>[0][number];

interface Member {
  readonly tool: Tool;
  readonly verb: string;
}

type Families = ReadonlyMap<string, readonly Member[]>;

/**
 * Siblings of chosen tools, read from names, and from Chinese titles where a name says nothing. Lists of tools are immutable, so what is
 * read of a server's is kept for as long as it is the server's. Needs no memory of past calls, and equal catalogues give equal siblings.
 */
export class Siblings implements Related {
  private readonly acts = new WeakMap<Tool, Act | "none">();
  private readonly byName = new WeakMap<readonly Tool[], Families>();
  private readonly byTitle = new WeakMap<readonly Tool[], Families>();

  constructor(private readonly labelOf: (tool: Tool) => StubFields) {}

  beside(chosen: readonly Chosen[]): readonly Beside[] {
    const held = new Set(chosen.map(({ toolId: id }) => id));
    const found: Beside[] = [];
    const add = (of: Chosen, member: Member): void => {
      const id = toolId(of.listed.serverId, member.tool.name);
      held.add(id);
      found.push({ toolId: id, reason: { kind: "sibling", of: of.toolId } });
    };
    const families = chosen.map((one) => this.familyOf(one));
    for (const [i, one] of chosen.entries()) {
      const family = families[i];
      if (!family || !this.isDestructive(family.self)) continue;
      // A gentler tool for the same thing is among the answers already.
      if (family.others.some((other) => held.has(idOf(one, other)) && !this.isDestructive(other))) continue;
      const gentlest = [...family.others].filter((other) => !held.has(idOf(one, other))).sort(this.gentler(family.self))[0];
      if (gentlest) add(one, gentlest);
    }
    for (const [i, one] of chosen.slice(0, CHOSEN).entries()) {
      const family = families[i];
      if (!family) continue;
      const opposite = family.others.filter(({ verb }) => areOpposite(family.self.verb, verb)).sort(this.gentler(family.self));
      for (const other of opposite) {
        const ofOne = found.filter(({ reason }) => reason.of === one.toolId).length;
        if (found.length >= OF_ALL || ofOne >= OF_ONE) break;
        if (!held.has(idOf(one, other))) add(one, other);
      }
    }
    return found;
  }

  sequences(): readonly never[] {
    return [];
  }

  /** Opposites first, then what destroys least, what changes before what only looks, then by name. */
  private gentler(self: Member): (a: Member, b: Member) => number {
    const cost = (member: Member) =>
      (areOpposite(self.verb, member.verb) ? 0 : 4) + (this.isDestructive(member) ? 8 : 0) + (this.effectOf(member) === "read-only" ? 1 : 0);
    return (a, b) => cost(a) - cost(b) || compareText(a.tool.name, b.tool.name);
  }

  private isDestructive(member: Member): boolean {
    return isDestructive(this.effectOf(member), member.tool.name, this.labelOf(member.tool).title);
  }

  private effectOf({ tool }: Member) {
    return sideEffectOf(this.labelOf(tool));
  }

  /** The chosen tool and the others about the same thing; undefined where neither name nor title tells. */
  private familyOf({ listed, label }: Chosen): { readonly self: Member; readonly others: readonly Member[] } | undefined {
    const { tool, siblings } = listed;
    const named = this.actOf(tool);
    const act = named ?? actOfTitle(label.title);
    if (!act) return undefined;
    const families = named ? this.namedFamilies(siblings) : this.titledFamilies(siblings);
    const others = (families.get(act.object) ?? []).filter((other) => other.tool !== tool && other.verb !== act.verb);
    return { self: { tool, verb: act.verb }, others };
  }

  private namedFamilies(tools: readonly Tool[]): Families {
    return kept(this.byName, tools, () => familiesOf(tools, (tool) => this.actOf(tool)));
  }

  private titledFamilies(tools: readonly Tool[]): Families {
    return kept(this.byTitle, tools, () =>
      tools.length > TITLED ? new Map() : familiesOf(tools, (tool) => (this.actOf(tool) ? undefined : actOfTitle(this.labelOf(tool).title))),
    );
  }

  private actOf(tool: Tool): Act | undefined {
    const known = this.acts.get(tool);
    if (known) return known === "none" ? undefined : known;
    const act = actOfName(tool.name);
    this.acts.set(tool, act ?? "none");
    return act;
  }
}

function familiesOf(tools: readonly Tool[], actOf: (tool: Tool) => Act | undefined): Families {
  const families = new Map<string, Member[]>();
  for (const tool of tools) {
    const act = actOf(tool);
    if (!act) continue;
    const family = families.get(act.object);
    if (!family) families.set(act.object, [{ tool, verb: act.verb }]);
    else if (family.length < FAMILY) family.push({ tool, verb: act.verb });
  }
  return families;
}

function idOf({ listed }: Chosen, { tool }: Member): string {
  return toolId(listed.serverId, tool.name);
}

function kept<K extends object, V>(cache: WeakMap<K, V>, key: K, make: () => V): V {
  const known = cache.get(key);
  if (known) return known;
  const made = make();
  cache.set(key, made);
  return made;
}
