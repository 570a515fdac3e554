import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { problemText, RULE_LIMITS } from "../../../../src/gate/rules/model.js";
import { readRules } from "../../../../src/gate/rules/parse.js";

const read = (text: string) => readRules(Buffer.from(text));
const problems = (text: string): string[] => {
  const answer = read(text);
  return answer.ok ? [] : answer.problems.map(problemText);
};

const WHOLE = `
categories:
  files: [file_operation, "*/read_*", server:drive, tag:files]
  network: [tag:network]
rules:
  - name: exports are files
    when: { intent: [export, 导出, purchase order] }
    prefer: [file_operation]
    factor: 5
  - name: finance stays offline
    why: Finance sessions touch no network.
    when:
      - { state: [session=finance], tags_all: [internal] }
      - state_all: [a, b]
    unless: { state: [audited] }
    deny: [category:network, tag:env:prod]
    allow: [web/rates]
    require_scope: { "payments:write": [billing/*] }
    include: [ledger/lookup]
`;

describe("a rule file", () => {
  it("is read whole", () => {
    const answer = read(WHOLE);
    if (!answer.ok) expect.fail(JSON.stringify(answer.problems));
    const [files, network] = answer.file.categories;
    expect(files?.members.map(({ kind, text }) => [kind, text])).toEqual([
      ["tool", "file_operation"], ["tool", "*/read_*"], ["server", "server:drive"], ["tag", "tag:files"],
    ]);
    expect(network?.name).toBe("network");
    expect(answer.file.rules).toMatchObject([
      { name: "exports are files", line: 6, factor: 5, prefer: [{ server: "*", tool: "file_operation" }], deny: [] },
      {
        name: "finance stays offline",
        why: "Finance sessions touch no network.",
        when: [{ state: ["session=finance"], tagsAll: ["internal"] }, { stateAll: ["a", "b"] }],
        unless: [{ state: ["audited"] }],
        deny: [{ category: "network" }, { tag: "env:prod" }],
        requireScope: [{ scope: "payments:write", of: [{ server: "billing", tool: "*" }] }],
        include: ["ledger/lookup"],
      },
    ]);
  });

  it("without rules is one that says so", () => {
    expect(problems("rules: []")).toEqual([]);
    expect(problems("categories: {}\nrules: []\n")).toEqual([]);
  });

  it("names everything that is wrong at once, with lines and what was meant", () => {
    const told = problems(`categories:
  files: [category:network, "no such thing!"]
  Files: [x]
rules:
  - name: one
    deney: [x]
    when: { intnet: [export], state: fine, tags: [UPPER] }
  - deny: []
  - name: one
    prefer: [tags:net, category:filse]
    factor: many
  - name: two
    allow: x
    why: ""
    require_scope: {}
    include: [name, a/b, "", {}]
    unless: {}
  - just text
  - name: three
    when: { intent: [the of and] }
    factor: 2
    deny: ["a b", erp/close]
extra: 1
`);
    expect(told).toEqual([
      'line 2: the category "files" takes tools, servers and tags, no other category ("network")',
      'line 2: the category "files": "no such thing!" is no selector; one is a tool (close_order, erp/close_order, erp/*), server:erp, tag:network or category:files',
      'line 3: a category\'s name must be 1 to 63 of a-z, 0-9, . _ -, beginning with a letter or digit, not "Files"',
      'line 5: the rule "one" does nothing: it needs one of allow, deny, prefer, require_scope, include',
      'line 6: rule 1 has "deney", which is none of name, why, when, unless, factor, allow, deny, prefer, require_scope, include; did you mean "deny"?',
      'line 7: when of the rule "one" has "intnet", which is none of intent, intent_all, state, state_all, tags, tags_all; did you mean "intent"?',
      'line 7: state in when of the rule "one" must be a list, not "fine"',
      'line 7: tags in when of the rule "one" takes tags, not "UPPER"',
      "line 8: rule 2 has no name",
      "line 8: deny of rule 2 is empty",
      'line 9: "one" is the name of the rule on line 5 as well',
      'line 10: prefer of the rule "one": "tags:net" is no selector; one is a tool (close_order, erp/close_order, erp/*), server:erp, tag:network or category:files; did you mean "tag"?',
      'line 10: prefer of the rule "one" names the category "filse", which is not declared; did you mean "files"?',
      'line 11: factor of the rule "one" must be a number from 1 to 100, not "many"',
      'line 13: allow of the rule "two" must be a list, not "x"',
      "line 14: why must be a text, not nothing",
      'line 15: require_scope of the rule "two" names no scope',
      'line 16: include of the rule "two" takes texts, not nothing',
      'line 16: include of the rule "two" takes texts, not a map',
      'line 16: include of the rule "two" takes tool_ids such as files/file_operation, not "name"',
      'line 17: unless of the rule "two" says nothing',
      "line 18: rule 5 must be a map, some of name, why, when, unless, factor, allow, deny, prefer, require_scope, include, not \"just text\"",
      "line 18: rule 5 has no name",
      'line 20: intent in when of the rule "three" has "the of and", in which no word says anything: it would never match',
      'line 21: factor of the rule "three" needs prefer beside it',
      'line 22: deny of the rule "three": "a b" is no selector; one is a tool (close_order, erp/close_order, erp/*), server:erp, tag:network or category:files',
      'line 23: the file has "extra", which is none of categories, rules',
    ]);
  });

  it.each([
    ["nothing", "", "it is empty; delete the file, or write `rules: []`, to have no rules"],
    ["comments alone", "# rules\n\n", "it is empty"],
    ["a list", "- a\n", "line 1: the file must be a map, some of categories, rules, not a list"],
    ["a word", "rules", "line 1: the file must be a map"],
    ["an empty map", "{}", "line 1: it has neither `categories` nor `rules`"],
    ["rules that are none", "rules:\n", "line 1: rules must be a list, not nothing"],
    ["a NUL", "rules:\n  - name: a\0b\n", "line 2: there is a NUL character"],
    ["a value that begins with a star", "rules:\n  - name: a\n    deny: [*/close]\n", 'line 3: aliases are not taken: a value that begins with * is written in quotes, "*/close"'],
    ["a star alone", "rules:\n  - name: a\n    deny: [*]\n", "line 3: it is no YAML: Alias cannot be an empty string"],
    ["an anchor", "rules: &a []\n", "line 1: anchors (&a) are not taken"],
    ["a tag", "rules: !!js/function x\n", "line 1: YAML tags (tag:yaml.org,2002:js/function) are not taken"],
    ["two documents", "rules: []\n---\nrules: []\n", "line 2: it is no YAML: Source contains multiple documents"],
    ["a key twice", "rules: []\nrules: []\n", 'line 2: "rules" is there twice'],
    ["a list as a key", "? [a]\n: b\nrules: []\n", "line 1: a key must be a word"],
    ["no YAML", "rules: [\n", "line 2: it is no YAML"],
    ["a tab", "rules:\n\t- name: a\n", "line 2: it is no YAML"],
    ["too many", `rules: [${"{name: a, deny: [b]}, ".repeat(RULE_LIMITS.rules + 1)}]`, `line 1: rules has ${RULE_LIMITS.rules + 1} entries, at most ${RULE_LIMITS.rules} are taken`],
    ["too much", `# ${"x".repeat(RULE_LIMITS.bytes)}`, `it has ${RULE_LIMITS.bytes + 2} bytes, at most ${RULE_LIMITS.bytes} are taken`],
  ])("with %s is refused", (_what, text, expected) => {
    expect(problems(text).join("\n")).toContain(expected);
  });

  it("that is not UTF-8 is refused", () => {
    expect(readRules(Buffer.from([0x72, 0xff, 0xfe]))).toEqual({ ok: false, problems: [{ line: 0, text: "it is not UTF-8" }] });
  });

  it("tells no more problems than a person reads", () => {
    const told = problems(`rules:\n${"  - x\n".repeat(400)}`);
    expect(told).toHaveLength(RULE_LIMITS.problems + 1);
    expect(told.at(-1)).toMatch(/^and \d+ more$/);
  });

  const deep = (open: string, count: number) => `rules: ${open.repeat(count)}`;
  it.each([
    ["brackets in each other", deep("[", 100_000)],
    ["maps in each other", deep("{a: ", 50_000)],
    ["dashes after each other", `${"- ".repeat(100_000)}x`],
    ["questions after each other", `${"? ".repeat(100_000)}x`],
    ["steps down", Array.from({ length: 600 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
    ["aliases of aliases", `a: &a [x]\n${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*a, *a]`).join("\n")}`],
    ["anchors after each other", "&a ".repeat(80_000)],
    ["tags after each other", "!!x ".repeat(60_000)],
    ["tabs", "\t".repeat(250_000)],
    ["one long line of quotes", `"${"\\n".repeat(120_000)}"`],
    ["40,000 keys", Array.from({ length: 30_000 }, (_, i) => `k${i}: v`).join("\n")],
    ["60,000 empty items", "- \n".repeat(60_000)],
    ["dashes after a key", `a: ${"- ".repeat(100_000)}x`],
    ["questions after a key", `a: ${"? ".repeat(100_000)}x`],
    ["keys after each other", "a: ".repeat(80_000)],
    ["dashes in brackets", `a: [${"- ".repeat(100_000)}]`],
    ["anchors after a key", `a: ${"&a ".repeat(80_000)}`],
    ["colons", ": ".repeat(100_000)],
    ["a block of text", `a: |\n${"  x\n".repeat(60_000)}`],
    ["percent signs", "%".repeat(200_000)],
  ])("of %s is refused, and the process lives", (_what, text) => {
    expect(problems(text).length).toBeGreaterThan(0);
  });

  it("of any text is read or refused, never thrown at", () => {
    const pieces = fc.constantFrom("rules:", "- ", "name: a", "\n", "  ", "[", "]", "{", "}", "*", "&a", "!", "|", ">", '"', "'", "deny: ", "x", ": ", "#", "\t", "导出", "?", "---", "%", "\r");
    fc.assert(fc.property(fc.array(pieces, { maxLength: 60 }), (parts) => void read(parts.join(""))), { numRuns: 2_000 });
  });
});
