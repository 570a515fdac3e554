import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { everything } from "../../../../src/domain/filter.js";
import type { FindOutput, FindQuery } from "../../../../src/gate/api.js";
import { covers, glob, readSelector } from "../../../../src/gate/rules/selectors.js";
import { rulesFrom as rules } from "../../../support/gate-rules.js";
import { asking, shelf } from "../../../support/gate.js";

/** A few servers that most rules can be said of. */
function desk(text: string) {
  const held = shelf(async () => [], rules(text));
  held.put("files/file_operation", { briefDescription: "Read, write and move files", tags: ["files"] });
  held.put("reports/export_report", { briefDescription: "Export a report as a spreadsheet", tags: ["reports"] });
  held.put("web/http_get", { briefDescription: "Get a page over HTTP", tags: ["network"] });
  held.put("web/exchange_rates", { briefDescription: "Exchange rates of today over HTTP", tags: ["network"] });
  held.put("ledger/list_accounts", { briefDescription: "List accounts and their balances", tags: ["finance"] });
  const find = async (intent: string, more: Partial<FindQuery> = {}) => held.gate.find(asking(intent, more), undefined);
  return { ...held, find };
}

const ids = ({ tools }: FindOutput) => tools.map(({ toolId }) => toolId);
const away = ({ withheld }: FindOutput) => withheld.map(({ toolId, cause, why }) => [toolId, cause, why]);

describe("rules", () => {
  it("an intent with export prefers file_operation, also where none of its words are there", async () => {
    const { find } = desk(`
rules:
  - name: exports are files
    when: { intent: [export] }
    prefer: [file_operation]
`);
    for (const said of ["export", "Exporting the balances", "they exported it to files"]) {
      const { tools } = await find(said);
      const preferred = tools.find(({ toolId }) => toolId === "files/file_operation");
      expect(preferred?.reasons, said).toContainEqual({ kind: "rule", rule: "exports are files" });
    }
    expect(ids(await find("export a spreadsheet of files"))[0]).toBe("files/file_operation");
    expect(ids(await find("a spreadsheet"))).not.toContain("files/file_operation");
    expect(ids(await find("import a spreadsheet", { history: ["export it"] }))).not.toContain("files/file_operation");
  });

  it("a finance session has no network tools, but for the exceptions, and an answer says which rule it was", async () => {
    const { find, told } = desk(`
categories: { network: [tag:network] }
rules:
  - name: rates are fine
    allow: [exchange_rates]
  - name: finance stays offline
    why: Finance sessions touch no network.
    when: { state: [session=finance] }
    deny: [category:network]
`);
    expect(ids(await find("page over HTTP"))).toContain("web/http_get");
    expect(ids(await find("page over HTTP", { state: ["session=sales", "finance"] }))).toContain("web/http_get");
    const answer = await find("page over HTTP", { state: ["session=finance"] });
    expect(ids(answer)).toEqual(["web/exchange_rates"]);
    expect(away(answer)).toEqual([["web/http_get", "rule", 'the rule "finance stays offline" denies it here: Finance sessions touch no network.']]);
    expect(told).toContain("rule");
    // Not even by its name.
    const named = await find("web/http_get", { state: ["session=finance"] });
    expect(ids(named)).not.toContain("web/http_get");
    expect(named.withheld[0]).toMatchObject({ toolId: "web/http_get", cause: "rule" });
  });

  it("deny beats prefer and include, whatever their order; allow beats deny; a required scope holds for all", async () => {
    const { find } = desk(`
rules:
  - { name: a, prefer: [http_get], include: [web/http_get] }
  - { name: b, deny: ["*"] }
  - { name: c, allow: [exchange_rates, file_operation] }
  - { name: d, require_scope: { rates: [exchange_rates] } }
`);
    const answer = await find("exchange rates and files over HTTP");
    expect(ids(answer)).toEqual(["files/file_operation"]);
    expect(away(answer)).toContainEqual(["web/exchange_rates", "rule", 'the rule "d" requires the scope rates for it']);
    expect(away(answer)).toContainEqual(["web/http_get", "rule", 'the rule "b" denies it here']);
    expect(new Set(ids(await find("exchange rates and files over HTTP", { scopes: ["rates"] })))).toEqual(
      new Set(["web/exchange_rates", "files/file_operation"]),
    );
  });

  it("includes a tool in every answer that they match, once, with its rule as the reason", async () => {
    const { find } = desk(`
rules:
  - { name: look first, when: { tags: [finance] }, include: [ledger/list_accounts, ledger/gone] }
`);
    const filter = { ...everything("default"), tagsAny: ["finance", "reports"] };
    const answer = await find("export a report", { filter, topK: 1 });
    expect(ids(answer)).toEqual(["reports/export_report", "ledger/list_accounts"]);
    expect(answer.tools[1]).toMatchObject({ reasons: [{ kind: "rule", rule: "look first" }], score: 0 });
    const found = await find("list the accounts", { filter });
    expect(found.tools.map(({ toolId, reasons }) => [toolId, reasons.map(({ kind }) => kind)])).toEqual([
      ["ledger/list_accounts", ["matched-words", "rule"]],
    ]);
    expect(ids(await find("export a report", { topK: 1 }))).toEqual(["reports/export_report"]);
  });

  it.each([
    ["any word", "{ intent: [save, export] }", {}, true],
    ["none of the words", "{ intent: [save, load] }", {}, false],
    ["all words of a phrase, in any order", "{ intent: [the report exports] }", {}, true],
    ["a phrase said in part", "{ intent: [export of invoices] }", {}, false],
    ["every phrase", "{ intent_all: [export, report] }", {}, true],
    ["every phrase but one", "{ intent_all: [export, invoice] }", {}, false],
    ["a regular expression, which is none", '{ intent: ["exp.*"] }', {}, false],
    ["words and state", "{ intent: [export], state: [a] }", { state: ["a=1"] }, true],
    ["words, but not the state", "{ intent: [export], state: [a] }", { state: ["b"] }, false],
    ["every fact", "{ state_all: [a, b=2] }", { state: ["a", "b=2"] }, true],
    ["every fact but its value", "{ state_all: [a, b=2] }", { state: ["a", "b=3"] }, false],
    ["one of two conditions", "[{ state: [x] }, { intent: [export] }]", {}, true],
    ["neither of two conditions", "[{ state: [x] }, { intent: [import] }]", {}, false],
    ["a tag asked for", "{ tags: [reports] }", { filter: { ...everything("default"), tagsAll: ["reports"] } }, true],
    ["every tag", "{ tags_all: [reports, x] }", { filter: { ...everything("default"), tagsAll: ["reports"] } }, false],
  ])("when %s", async (_what, when, more, matches) => {
    const denying = desk(`rules: [{ name: r, when: ${when}, deny: [export_report] }]`);
    const sparing = desk(`rules: [{ name: r, unless: ${when}, deny: [export_report] }]`);
    const denied = async ({ find }: typeof denying) => (await find("export the report", more)).withheld.length > 0;
    expect([await denied(denying), await denied(sparing)]).toEqual([matches, !matches]);
  });

  it.each([
    ["导出", "请帮我导出采购订单", true],
    ["导出", "出发前导航", false],
    ["采购订单", "关闭逾期的采购订单", true],
    ["报告", "导出报表", false],
    ["レポート", "レポートを出力する", true],
    ["отчёт", "Экспортировать отчет", true],
    ["café", "find a CAFE nearby", true],
    ["youtube", "post it on YouTube", true],
    ["fileOperation", "a file operation", true],
    ["purchase_orders", "close the purchase order", true],
  ])("a phrase %s and %s", async (phrase, said, matches) => {
    const held = shelf(async () => [], rules(`rules: [{ name: r, when: { intent: [${phrase}] }, include: [a/b] }]`));
    held.put("a/b");
    expect(ids(await held.gate.find(asking(said), undefined)).length > 0).toBe(matches);
  });

  it("keep what is preferred and denied in order where every tool is denied but a few", async () => {
    const held = shelf(async () => [], rules(`rules: [{ name: few, deny: ["*"], allow: [s7/*] }]`));
    for (let i = 0; i < 400; i++) held.put(`s${i}/send_mail`, { briefDescription: "Send a mail" });
    const answer = await held.gate.find(asking("send a mail"), undefined);
    expect(ids(answer)).toEqual(["s7/send_mail"]);
    expect(answer.weak).toBe(false);
    expect(answer.withheld).toHaveLength(20);
  });

  it("a declared category is one of FindTools", async () => {
    const { find } = desk(`categories: { office: [tag:files, reports/*, accounts, "*/list_*"] }`);
    expect(new Set(ids(await find("list, export, move, get", { category: "office", topK: 50 })))).toEqual(
      new Set(["files/file_operation", "reports/export_report", "ledger/list_accounts"]),
    );
    await expect(find("x", { category: "offices" })).rejects.toThrow("no such module");
  });
});

describe("selectors", () => {
  const slow = (pattern: string) => new RegExp(`^${pattern.split("*").map((part) => part.replace(/[.]/g, "\\.")).join(".*")}$`);
  const letters = fc.stringMatching(/^[ab.]{0,12}$/);

  it("globs are what their stars say", () => {
    const pattern = fc.array(fc.constantFrom("a", "b", "*", "ab", "."), { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(fc.property(pattern, letters, (p, text) => glob(p)(text) === slow(p).test(text)), { numRuns: 5_000 });
  });

  it("that cover each other select no tool alone", () => {
    const selector = fc.constantFrom("a", "a*", "*", "x/a", "x/*", "x*/a*", "server:x", "server:*", "*/a", "*/*b", "y/*b");
    const tool = fc.constantFrom(["x", "a"], ["x", "ab"], ["y", "a"], ["xx", "ab"], ["y", "b"]);
    const of = (text: string) => {
      const read = readSelector(text);
      if (!read.ok) throw new Error(read.problem);
      return read.selector;
    };
    fc.assert(
      fc.property(selector, selector, tool, (a, b, [server = "", name = ""]) => {
        if (!covers(of(a), of(b))) return;
        const holds = (text: string) => rules(`categories: { c: ["${text}"] }`).category("c")?.(server, { name, tags: [] });
        if (holds(b)) expect(holds(a), `${a} covers ${b}`).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
