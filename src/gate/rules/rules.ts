/** The rules of a namespace, made ready once for all questions. */
import { compareText } from "../../domain/ids.js";
import type { FindQuery } from "../api.js";
import type { Intent } from "../intent.js";
import { Granted } from "../preconditions.js";
import type { Rules, Ruling } from "../stages.js";
import type { Condition, Rule, RuleFile, Selector } from "./model.js";
import { type Phrase, phraseOf, saidIn, says } from "./phrases.js";
import { isPlain, type Selectable, type Selects, selects } from "./selectors.js";

/** A rule with its words as terms and its selectors as functions. */
interface ReadyRule {
  readonly name: string;
  readonly why: string;
  readonly when: readonly ReadyCondition[];
  readonly unless: readonly ReadyCondition[];
  readonly allow: Selects;
  readonly deny: Selects;
  readonly prefer: Selects;
  readonly preferByName: Selects;
  readonly factor: number;
  readonly requireScope: readonly { readonly scope: string; readonly of: Selects }[];
  readonly include: readonly string[];
  readonly sought: readonly string[];
}

interface ReadyCondition extends Condition {
  readonly phrases: readonly Phrase[];
  readonly phrasesAll: readonly Phrase[];
}

/** What a set of matching rules says of one tool, whoever asks. */
interface Verdict {
  readonly denial: string | undefined;
  readonly scopes: readonly { readonly scope: string; readonly rule: string }[];
  readonly preference: { readonly factor: number; readonly least: number; readonly rule: string } | undefined;
}

/** Sets of matching rules whose verdicts are kept: questions of a kind match the same rules. */
const SETS_KEPT = 64;
/** What a tool that a rule prefers by its name has at least, where the best by words alone has 1. */
const BY_NAME = 0.5;

/**
 * Deny beats prefer and include, whatever the order of the rules; allow is an exception from deny, of the same rule or another.
 * A required scope holds for an allowed tool, too.
 */
export function rulesOf(file: RuleFile): Rules {
  const categories = new Map<string, Selects>(file.categories.map(({ name, members }) => [name, selects(members)]));
  const rules = file.rules.map((rule) => ready(rule, categories));
  const sets = new Map<string, RuleSet>();
  const setOf = (matching: readonly ReadyRule[], key: string): RuleSet => {
    const known = sets.get(key);
    if (known) return known;
    if (sets.size >= SETS_KEPT) sets.clear();
    const made = new RuleSet(matching);
    sets.set(key, made);
    return made;
  };
  return {
    categories: file.categories.map(({ name }) => name),
    stateFacts: stateFactsOf(file),
    category: (name) => categories.get(name),
    judge(query, intent) {
      const asked = new Asked(query, intent);
      const matching = rules.filter((rule) => asked.matches(rule));
      return setOf(matching, matching.map((rule) => rules.indexOf(rule)).join(",")).rulingFor(query);
    },
  };
}

function stateFactsOf({ rules }: RuleFile): string[] {
  const conditions = rules.flatMap(({ when, unless }) => [...when, ...unless]);
  return [...new Set(conditions.flatMap(({ state, stateAll }) => [...state, ...stateAll]))].sort(compareText);
}

function ready(rule: Rule, categories: ReadonlyMap<string, Selects>): ReadyRule {
  const { name, why, factor, include } = rule;
  const of = (selectors: readonly Selector[]) => selects(selectors, categories);
  const byName = rule.prefer.filter((s) => s.kind === "tool" && isPlain(s.tool) && (isPlain(s.server) || s.server === "*"));
  return {
    name,
    why,
    when: rule.when.map(withTerms),
    unless: rule.unless.map(withTerms),
    allow: of(rule.allow),
    deny: of(rule.deny),
    prefer: of(rule.prefer),
    preferByName: of(byName),
    factor,
    requireScope: rule.requireScope.map(({ scope, of: which }) => ({ scope, of: of(which) })),
    include,
    sought: byName.map(({ text }) => (text.startsWith("*/") ? text.slice(2) : text)),
  };
}

function withTerms(condition: Condition): ReadyCondition {
  return { ...condition, phrases: condition.intent.map(phraseOf), phrasesAll: condition.intentAll.map(phraseOf) };
}

/** A question, ready to be held against conditions. */
class Asked {
  private readonly said: ReadonlySet<string>;
  private readonly granted: Granted;
  private readonly tags: ReadonlySet<string>;

  constructor(query: FindQuery, intent: Intent) {
    this.said = saidIn(intent);
    this.granted = new Granted(query);
    this.tags = new Set([...query.filter.tagsAny, ...query.filter.tagsAll]);
  }

  matches({ when, unless }: ReadyRule): boolean {
    return (when.length === 0 || when.some((c) => this.holds(c))) && !unless.some((c) => this.holds(c));
  }

  private holds(condition: ReadyCondition): boolean {
    const phrase = (one: Phrase) => says(this.said, one);
    const fact = (one: string) => this.granted.state(one);
    const tag = (one: string) => this.tags.has(one);
    return (
      anyOf(condition.phrases, phrase) &&
      condition.phrasesAll.every(phrase) &&
      anyOf(condition.state, fact) &&
      condition.stateAll.every(fact) &&
      anyOf(condition.tags, tag) &&
      condition.tagsAll.every(tag)
    );
  }
}

/** Nothing said holds. */
function anyOf<T>(items: readonly T[], holds: (item: T) => boolean): boolean {
  return items.length === 0 || items.some(holds);
}

/** Rules that match together: a verdict is made once for each tool. */
class RuleSet {
  private readonly verdicts = new WeakMap<Selectable, Verdict>();
  private readonly always: Ruling["always"];
  private readonly sought: readonly string[];

  constructor(private readonly rules: readonly ReadyRule[]) {
    const included = new Map<string, string>();
    for (const { include, name } of rules) for (const id of include) if (!included.has(id)) included.set(id, name);
    this.always = [...included].map(([toolId, rule]) => ({ toolId, rule }));
    this.sought = [...new Set(rules.flatMap(({ sought }) => sought))];
  }

  rulingFor({ scopes }: FindQuery): Ruling {
    const granted = new Set(scopes);
    return {
      denial: (serverId, tool) => {
        const verdict = this.verdict(serverId, tool);
        if (verdict.denial !== undefined) return verdict.denial;
        const missing = verdict.scopes.filter(({ scope }) => !granted.has(scope));
        if (missing.length === 0) return undefined;
        return missing.map(({ scope, rule }) => `the rule ${JSON.stringify(rule)} requires the scope ${scope} for it`).join(" and ");
      },
      preference: (serverId, tool) => this.verdict(serverId, tool).preference,
      always: this.always,
      sought: this.sought,
    };
  }

  private verdict(serverId: string, tool: Selectable): Verdict {
    const known = this.verdicts.get(tool);
    if (known) return known;
    const made = this.judged(serverId, tool);
    this.verdicts.set(tool, made);
    return made;
  }

  private judged(serverId: string, tool: Selectable): Verdict {
    const { rules } = this;
    const denying = rules.find(({ deny }) => deny(serverId, tool));
    const allowed = denying && rules.some(({ allow }) => allow(serverId, tool));
    const scopes = rules.flatMap(({ name, requireScope }) =>
      requireScope.filter(({ of }) => of(serverId, tool)).map(({ scope }) => ({ scope, rule: name })),
    );
    const preferring = rules.filter(({ prefer }) => prefer(serverId, tool)).sort((a, b) => b.factor - a.factor);
    const [best] = preferring;
    const least = preferring.some(({ preferByName }) => preferByName(serverId, tool)) ? BY_NAME : 0;
    return {
      denial: denying && !allowed ? `the rule ${JSON.stringify(denying.name)} denies it here${because(denying.why)}` : undefined,
      scopes,
      preference: best && { factor: best.factor, least, rule: best.name },
    };
  }
}

function because(why: string): string {
  return why === "" ? "" : `: ${why}`;
}
