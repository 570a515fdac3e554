/** A rule file → its rules, or everything that is wrong with it, each with its line. */
import { SLUG_PATTERN, splitToolId, TAG_PATTERN, TOOL_NAME_PATTERN } from "../../domain/ids.js";
import { LIMITS } from "../../domain/limits.js";
import { type Category, type Condition, type Rule, RULE_LIMITS, type RuleFile, type RuleProblem, type Selector } from "./model.js";
import { phraseOf } from "./phrases.js";
import { readSelector } from "./selectors.js";
import { nearest } from "./nearest.js";
import { type Entry, type Node, readYaml, shown } from "./yaml.js";

export type ReadRules =
  | { readonly ok: true; readonly file: RuleFile }
  /** In the order of lines; at most RULE_LIMITS.problems. */
  | { readonly ok: false; readonly problems: readonly RuleProblem[] };

export function readRules(content: Uint8Array): ReadRules {
  const yaml = readYaml(content);
  if (!yaml.ok) return { ok: false, problems: first(yaml.problems) };
  const problems = [...yaml.problems];
  const file = new RuleReader(problems).file(yaml.root);
  return problems.length === 0 ? { ok: true, file } : { ok: false, problems: first(problems) };
}

function first(problems: readonly RuleProblem[]): readonly RuleProblem[] {
  const sorted = [...problems].sort((a, b) => a.line - b.line);
  const rest = sorted.length - RULE_LIMITS.problems;
  if (rest <= 0) return sorted;
  return [...sorted.slice(0, RULE_LIMITS.problems), { line: 0, text: `and ${rest} more` }];
}

const ACTIONS = ["allow", "deny", "prefer", "require_scope", "include"] as const;
const RULE_KEYS = ["name", "why", "when", "unless", "factor", ...ACTIONS];
const CONDITION_KEYS = ["intent", "intent_all", "state", "state_all", "tags", "tags_all"];

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,62}$/u;
const NAME_WORDS = "1 to 63 letters, digits, spaces and . _ -, beginning with a letter or digit";
const PRINTABLE = /^[^\p{Cc}]+$/u;

class RuleReader {
  private categories: ReadonlySet<string> = new Set();

  constructor(private readonly problems: RuleProblem[]) {}

  file(root: Node): RuleFile {
    const parts = this.map(root, "the file", ["categories", "rules"]);
    const categories = this.readCategories(parts.get("categories"));
    const rules = this.readRules(parts.get("rules"));
    if (root.kind === "map" && parts.size === 0) this.tell(root.line, "it has neither `categories` nor `rules`");
    return { categories, rules };
  }

  private readCategories(entry: Entry | undefined): readonly Category[] {
    if (!entry) return [];
    const named = this.mapEntries(entry.value, "categories", "its members by the name of each category");
    this.atMost(entry.line, "categories", named.length, RULE_LIMITS.categories);
    for (const { key, line } of named)
      if (!SLUG_PATTERN.test(key))
        this.tell(line, `a category's name must be 1 to 63 of a-z, 0-9, . _ -, beginning with a letter or digit, not ${shown(key)}`);
    const categories = named.slice(0, RULE_LIMITS.categories).map(({ key, line, value }): Category => {
      const members = this.selectors(value, `the category ${shown(key)}`, false);
      return { name: key, line, members };
    });
    this.categories = new Set(named.map(({ key }) => key));
    return categories;
  }

  private readRules(entry: Entry | undefined): readonly Rule[] {
    if (!entry) return [];
    const items = this.list(entry.value, "rules", RULE_LIMITS.rules);
    const lines = new Map<string, number>();
    return items.map((item, i) => {
      const rule = this.rule(item, i);
      const before = lines.get(rule.name);
      if (rule.name !== "" && before !== undefined)
        this.tell(rule.line, `${shown(rule.name)} is the name of the rule on line ${before} as well`);
      else lines.set(rule.name, rule.line);
      return rule;
    });
  }

  private rule(node: Node, index: number): Rule {
    const parts = this.map(node, `rule ${index + 1}`, RULE_KEYS);
    const name = this.text(parts.get("name"));
    if (!parts.has("name")) this.tell(node.line, `rule ${index + 1} has no name`);
    else if (name !== undefined && !NAME.test(name))
      this.tell(parts.get("name")?.line ?? node.line, `a rule's name must be ${NAME_WORDS}, not ${shown(name)}`);
    const called = name !== undefined && NAME.test(name) ? `the rule ${shown(name)}` : `rule ${index + 1}`;
    if (node.kind === "map" && !ACTIONS.some((action) => parts.has(action)))
      this.tell(node.line, `${called} does nothing: it needs one of ${ACTIONS.join(", ")}`);
    const why = this.text(parts.get("why")) ?? "";
    if (why !== "" && (why.length > RULE_LIMITS.why || !PRINTABLE.test(why)))
      this.tell(parts.get("why")?.line ?? 0, `why must be one line of at most ${RULE_LIMITS.why} characters`);
    const selectors = (key: "allow" | "deny" | "prefer") => {
      const entry = parts.get(key);
      return entry ? this.selectors(entry.value, `${key} of ${called}`, true) : [];
    };
    return {
      name: name ?? "",
      line: node.line,
      why,
      when: this.conditions(parts.get("when"), `when of ${called}`),
      unless: this.conditions(parts.get("unless"), `unless of ${called}`),
      allow: selectors("allow"),
      deny: selectors("deny"),
      prefer: selectors("prefer"),
      factor: this.factor(parts, called),
      requireScope: this.requireScope(parts.get("require_scope"), called),
      include: this.include(parts.get("include"), called),
    };
  }

  private factor(parts: ReadonlyMap<string, Entry>, called: string): number {
    const { least, most, unsaid } = RULE_LIMITS.factor;
    const entry = parts.get("factor");
    const text = this.text(entry);
    if (!entry || text === undefined) return unsaid;
    const value = Number(text);
    if (!/^\d{1,3}(\.\d{1,3})?$/.test(text) || value < least || value > most)
      this.tell(entry.line, `factor of ${called} must be a number from ${least} to ${most}, not ${shown(text)}`);
    if (!parts.has("prefer")) this.tell(entry.line, `factor of ${called} needs prefer beside it`);
    return value;
  }

  private requireScope(entry: Entry | undefined, called: string): Rule["requireScope"] {
    if (!entry) return [];
    const scopes = this.mapEntries(entry.value, `require_scope of ${called}`, "selectors by the scope that they need");
    this.atMost(entry.line, `require_scope of ${called}`, scopes.length, RULE_LIMITS.entries);
    if (entry.value.kind === "map" && scopes.length === 0) this.tell(entry.line, `require_scope of ${called} names no scope`);
    return scopes.slice(0, RULE_LIMITS.entries).map(({ key, line, value }) => {
      this.fact(key, line, `a scope of ${called}`);
      return { scope: key, of: this.selectors(value, `the scope ${shown(key)} of ${called}`, true) };
    });
  }

  private include(entry: Entry | undefined, called: string): readonly string[] {
    if (!entry) return [];
    return this.texts(entry.value, `include of ${called}`, RULE_LIMITS.include).map(({ text, line }) => {
      const id = splitToolId(text);
      if (!id || !SLUG_PATTERN.test(id.serverId) || !TOOL_NAME_PATTERN.test(id.toolName))
        this.tell(line, `include of ${called} takes tool_ids such as files/file_operation, not ${shown(text)}`);
      return text;
    });
  }

  private conditions(entry: Entry | undefined, where: string): readonly Condition[] {
    if (!entry) return [];
    const { value } = entry;
    if (value.kind === "map") return [this.condition(value, where)];
    if (value.kind === "text") {
      this.tell(value.line || entry.line, `${where} must have some of ${CONDITION_KEYS.join(", ")}, or be a list of such conditions`);
      return [];
    }
    return this.list(value, where, RULE_LIMITS.conditions).map((item) => this.condition(item, where));
  }

  private condition(node: Node, where: string): Condition {
    const parts = this.map(node, where, CONDITION_KEYS);
    if (node.kind === "map" && parts.size === 0) this.tell(node.line, `${where} says nothing`);
    const phrases = (key: string) => this.of(parts, key, where, (text, line, at) => this.phrase(text, line, at));
    const facts = (key: string) => this.of(parts, key, where, (text, line, at) => this.fact(text, line, at));
    const tags = (key: string) =>
      this.of(parts, key, where, (text, line, at) => {
        if (!TAG_PATTERN.test(text)) this.tell(line, `${at} takes tags, not ${shown(text)}`);
      });
    return {
      intent: phrases("intent"),
      intentAll: phrases("intent_all"),
      state: facts("state"),
      stateAll: facts("state_all"),
      tags: tags("tags"),
      tagsAll: tags("tags_all"),
    };
  }

  private of(
    parts: ReadonlyMap<string, Entry>,
    key: string,
    where: string,
    check: (text: string, line: number, at: string) => void,
  ): readonly string[] {
    const entry = parts.get(key);
    if (!entry) return [];
    const at = `${key} in ${where}`;
    return this.texts(entry.value, at, RULE_LIMITS.entries).map(({ text, line }) => {
      check(text, line, at);
      return text;
    });
  }

  private phrase(text: string, line: number, at: string): void {
    if (text.length > RULE_LIMITS.phrase)
      this.tell(line, `${at} takes phrases of at most ${RULE_LIMITS.phrase} characters, not of ${text.length}`);
    else if (phraseOf(text).length === 0)
      this.tell(line, `${at} has ${shown(text)}, in which no word says anything: it would never match`);
  }

  private fact(text: string, line: number, at: string): void {
    if (text.length > LIMITS.factLength || !PRINTABLE.test(text))
      this.tell(line, `${at} must be one line of 1 to ${LIMITS.factLength} characters, not ${shown(text)}`);
  }

  private selectors(node: Node, where: string, categories: boolean): readonly Selector[] {
    return this.texts(node, where, RULE_LIMITS.entries).flatMap(({ text, line }) => {
      const read = readSelector(text);
      if (!read.ok) {
        this.tell(line, `${where}: ${read.problem}`);
        return [];
      }
      if (read.selector.kind === "category") this.category(read.selector.category, line, where, categories);
      return [read.selector];
    });
  }

  private category(name: string, line: number, where: string, allowed: boolean): void {
    if (!allowed) this.tell(line, `${where} takes tools, servers and tags, no other category (${shown(name)})`);
    else if (!this.categories.has(name))
      this.tell(line, `${where} names the category ${shown(name)}, which is not declared${nearest(name, [...this.categories])}`);
  }

  private map(node: Node, where: string, known: readonly string[]): ReadonlyMap<string, Entry> {
    const entries = this.mapEntries(node, where, `some of ${known.join(", ")}`);
    for (const { key, line } of entries)
      if (!known.includes(key)) this.tell(line, `${where} has ${shown(key)}, which is none of ${known.join(", ")}${nearest(key, known)}`);
    return new Map(entries.filter(({ key }) => known.includes(key)).map((entry) => [entry.key, entry]));
  }

  private mapEntries(node: Node, where: string, expected: string): readonly Entry[] {
    if (node.kind === "map") return node.entries;
    if (node.kind !== "bad") this.tell(node.line, `${where} must be a map, ${expected}, not ${kindOf(node)}`);
    return [];
  }

  private list(node: Node, where: string, most: number): readonly Node[] {
    if (node.kind === "list") {
      this.atMost(node.line, where, node.items.length, most);
      return node.items.slice(0, most);
    }
    if (node.kind !== "bad") this.tell(node.line, `${where} must be a list, not ${kindOf(node)}`);
    return [];
  }

  /** A list of at least one text, none of them empty. */
  private texts(node: Node, where: string, most: number): readonly { readonly text: string; readonly line: number }[] {
    const items = this.list(node, where, most);
    if (node.kind === "list" && items.length === 0) this.tell(node.line, `${where} is empty`);
    return items.flatMap((item) => {
      if (item.kind === "text" && item.text !== "") return [item];
      if (item.kind !== "bad") this.tell(item.line || node.line, `${where} takes texts, not ${kindOf(item)}`);
      return [];
    });
  }

  private text(entry: Entry | undefined): string | undefined {
    if (!entry || entry.value.kind === "bad") return undefined;
    if (entry.value.kind === "text" && entry.value.text !== "") return entry.value.text;
    this.tell(entry.line, `${entry.key} must be a text, not ${kindOf(entry.value)}`);
    return undefined;
  }

  private atMost(line: number, where: string, count: number, most: number): void {
    if (count > most) this.tell(line, `${where} has ${count} entries, at most ${most} are taken`);
  }

  private tell(line: number, text: string): void {
    this.problems.push({ line, text });
  }
}

function kindOf(node: Node): string {
  switch (node.kind) {
    case "map":
      return "a map";
    case "list":
      return "a list";
    case "text":
      return node.text === "" ? "nothing" : shown(node.text);
    case "bad":
      return "that";
  }
}
