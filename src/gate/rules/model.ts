/** What a rule file says, once it is read. */

/** Tools by what is said of them; a tool is selected when any of these holds. */
export type Selector =
  /** `server/tool` or `tool`, which is `*\/tool`; `*` stands for any characters. */
  | { readonly kind: "tool"; readonly server: string; readonly tool: string; readonly text: string }
  | { readonly kind: "server"; readonly server: string; readonly text: string }
  | { readonly kind: "tag"; readonly tag: string; readonly text: string }
  | { readonly kind: "category"; readonly category: string; readonly text: string };

/** What a question must be like. Everything given must hold. */
export interface Condition {
  /** Words or phrases: one of them, and every one of them. All words of a phrase must be said, in any order. */
  readonly intent: readonly string[];
  readonly intentAll: readonly string[];
  /** Facts of the agent's state: `name`, or `name=value`. */
  readonly state: readonly string[];
  readonly stateAll: readonly string[];
  /** Tags that the question's filter asks for. */
  readonly tags: readonly string[];
  readonly tagsAll: readonly string[];
}

export interface Rule {
  readonly name: string;
  readonly line: number;
  /** For people; empty if unsaid. */
  readonly why: string;
  /** One of them must hold; none = always. */
  readonly when: readonly Condition[];
  /** None of them may hold. */
  readonly unless: readonly Condition[];
  readonly allow: readonly Selector[];
  readonly deny: readonly Selector[];
  readonly prefer: readonly Selector[];
  /** How much more a preferred tool's score counts. */
  readonly factor: number;
  readonly requireScope: readonly { readonly scope: string; readonly of: readonly Selector[] }[];
  /** tool_ids. */
  readonly include: readonly string[];
}

export interface Category {
  readonly name: string;
  readonly line: number;
  /** None of them a category. */
  readonly members: readonly Selector[];
}

export interface RuleFile {
  readonly categories: readonly Category[];
  readonly rules: readonly Rule[];
}

/** What is wrong in a rule file. */
export interface RuleProblem {
  /** From 1; 0 for the file as a whole. */
  readonly line: number;
  /** One sentence without its full stop. */
  readonly text: string;
}

/** What one namespace's file may hold: far more than a person keeps in mind, and little enough to be judged at every question. */
export const RULE_LIMITS = {
  bytes: 256 * 1024,
  rules: 500,
  categories: 200,
  /** Entries of one list: selectors, words, facts, tags. */
  entries: 200,
  /** Conditions of one `when` or `unless`. */
  conditions: 20,
  /** Tools that one rule includes: each takes tokens of every answer. */
  include: 10,
  /** Characters of a phrase, and of `why`. */
  phrase: 100,
  why: 200,
  factor: { least: 1, most: 100, unsaid: 3 },
  /** Problems that are told of one file. */
  problems: 50,
} as const;

/** `line 12: …`, as it is shown. */
export function problemText({ line, text }: RuleProblem): string {
  return line === 0 ? text : `line ${line}: ${text}`;
}
