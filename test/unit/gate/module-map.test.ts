import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CatalogueMaps } from "../../../src/gate/catalogue-maps.js";
import { mapOfAll, mapOfModule } from "../../../src/gate/module-map.js";
import { moduleNamed, takeApart } from "../../../src/gate/modules.js";
import { rulesFrom } from "../../support/gate-rules.js";
import { asking, shelf } from "../../support/gate.js";

const named = (...names: string[]) => names.map((name) => ({ name }));
const ORDERS = ["order", "return", "delivery"].flatMap((thing) => ["create", "update", "list", "approve"].map((verb) => `${verb}_${thing}`));

describe("names taken apart", () => {
  it.each([
    ["corehr.v2.employee.create", ["corehr", "employee"], "create"],
    ["listMergeRequests", ["request"], "list"],
    ["get_companies", ["company"], "get"],
    ["HTTPServer-restart", ["http", "server"], "restart"],
    ["search", ["search"], "search"],
    ["v1", ["v1"], ""],
    ["关", ["关"], ""],
  ])("%s", (name, nouns, verb) => {
    expect(takeApart(named(name))).toEqual([{ name, nouns, verb }]);
  });

  it("a noun that all tools of a server share is left out", () => {
    expect(takeApart(named("erp_get_order", "erp_list_orders", "erp_get_invoice")).map(({ nouns }) => nouns)).toEqual([["invoice"], ["order"], ["order"]]);
  });
});

describe("the map", () => {
  const servers = [
    { serverId: "erp", names: named(...ORDERS) },
    { serverId: "mail", names: named("send_mail") },
  ];

  it("folds what is alike, and names what can be looked into", () => {
    const map = mapOfAll(servers, [], 100);
    expect(map.text).toBe("13 tools on 2 servers.\nerp 12: delivery, order, return (approve, create, list, update)\nmail 1: mail (send)");
    expect(map).toMatchObject({ leftOut: 0, tools: 13, modules: [{ name: "erp", tools: 12 }, { name: "mail", tools: 1 }] });
    expect(map.tokens).toBe(Math.ceil(map.text.length / 4));
  });

  it("says how many it left out where not even the names fit, the largest stay", () => {
    const many = Array.from({ length: 100 }, (_, i) => ({ serverId: `server-${i}`, names: named(...Array.from({ length: i + 1 }, (_x, n) => `tool_${n}`)) }));
    const { text, modules, leftOut, tokens } = mapOfAll(many, [], 40);
    expect(tokens).toBeLessThanOrEqual(40);
    expect(modules.map(({ name }) => name)).toContain("server-99");
    expect(modules.length + leftOut).toBe(100);
    expect(text.split("\n").at(-1)).toBe(`and ${leftOut} more servers`);
  });

  it("looks into a server and into one of its modules", () => {
    const cut = { server: (id: string) => servers.find(({ serverId }) => serverId === id)?.names };
    expect(mapOfModule(moduleNamed(cut, "erp"), 100).modules).toEqual(["delivery", "order", "return"].map((m) => ({ name: `erp/${m}`, tools: 4 })));
    const { text } = mapOfModule(moduleNamed(cut, "erp/order"), 100);
    expect(text.split("\n")).toEqual(["4 tools of erp/order.", ...["approve", "create", "list", "update"].map((verb) => `erp/${verb}_order`)]);
    for (const none of ["nobody", "erp/nothing", "erp/", "/order", "__proto__"]) expect(() => moduleNamed(cut, none), none).toThrow("no such module");
  });

  it("is the same in every order of arrival, and never over its budget (P12)", () => {
    const server = fc.record({
      serverId: fc.stringMatching(/^[a-z][a-z0-9._-]{0,20}$/),
      names: fc.array(fc.stringMatching(/^[A-Za-z0-9_.-]{1,40}$/), { maxLength: 40 }).map((all) => named(...new Set(all))),
    });
    const all = fc.uniqueArray(server, { selector: (s) => s.serverId, maxLength: 30 });
    fc.assert(
      fc.property(all, fc.integer({ min: 20, max: 600 }), (some, budget) => {
        const map = mapOfAll(some, [], budget);
        expect(map.tokens).toBeLessThanOrEqual(budget);
        expect(map.modules.length + map.leftOut).toBe(some.length);
        const turned = [...some].reverse().map(({ serverId, names }) => ({ serverId, names: [...names].reverse() }));
        expect(mapOfAll(turned, [], budget).text).toBe(map.text);
      }),
    );
  });

  it("covers every server of the corpus in 500 tokens", () => {
    const folder = new URL("../../fixtures/corpus/", import.meta.url);
    const files = readdirSync(folder).filter((file) => file.endsWith(".json"));
    const corpus = files.map((file) => {
      const read = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as { tools: { name: string }[] } | { name: string }[];
      return { serverId: file.replace(".json", ""), names: Array.isArray(read) ? read : read.tools };
    });
    const map = mapOfAll(corpus, [], 500);
    expect([map.leftOut, map.modules.length]).toEqual([0, files.length]);
    expect(map.tokens).toBeLessThanOrEqual(500);
  });

  it("its names are categories of FindTools", async () => {
    const s = shelf();
    for (const name of ORDERS) s.put(`erp/${name}`);
    s.put("crm/create_order");
    const find = async (category: string) =>
      (await s.gate.find(asking("create", { category, topK: 20 }), undefined)).tools.map(({ toolId }) => toolId);
    expect(await find("erp/order")).toEqual(["erp/create_order"]);
    expect((await find("erp")).sort()).toEqual(["erp/create_delivery", "erp/create_order", "erp/create_return"]);
    await expect(find("erp/nothing")).rejects.toMatchObject({ reason: "NOT_FOUND" });
    expect((await s.gate.map({ namespace: "default", tokenBudget: 0, module: "", minRevision: "" })).text).toContain("13 tools on 2 servers.");
  });
});

describe("declared categories", () => {
  const rules = rulesFrom(`categories:
  office: [tag:files, report]
  none: [tag:nowhere]
`);
  const made = () => {
    const held = shelf(async () => [], rules);
    held.put("a/read_file", { tags: ["files"] });
    held.put("a/write_file", { tags: ["files"] });
    held.put("a/send_mail");
    held.put("b/report");
    return held;
  };
  const map = (held: ReturnType<typeof made>, module = "", tokenBudget = 500) =>
    held.gate.map({ namespace: "default", module, tokenBudget, minRevision: "" });

  it("stand on the map before the servers, and are looked into", async () => {
    const held = made();
    const whole = await map(held);
    expect(whole.text.split("\n")).toEqual([
      "4 tools on 2 servers.",
      "category none 0",
      "category office 3: file (read, write); report",
      "a 3: file (read, write); mail (send)",
      "b 1: report",
    ]);
    expect(whole).toMatchObject({ tools: 4, leftOut: 0 });
    expect(whole.modules.map(({ name, tools }) => [name, tools])).toEqual([["none", 0], ["office", 3], ["a", 3], ["b", 1]]);
    const inside = await map(held, "office");
    expect(inside.modules.map(({ name }) => name)).toEqual(["a/read_file", "a/write_file", "b/report"]);
    expect(inside.text.split("\n")[0]).toBe("3 tools of office.");
    expect((await map(held, "none")).text).toBe("0 tools of none.");
    await expect(map(held, "offices")).rejects.toThrow("no such module");
  });

  it("of many tools are told by what these are about, within the budget", async () => {
    const held = made();
    for (let i = 0; i < 200; i++) held.put(`c/read_thing${i % 5}_number${i}`, { tags: ["files"] });
    const { text, tokens, modules } = await map(held, "office", 60);
    expect(tokens).toBeLessThanOrEqual(60);
    expect(modules.map(({ name }) => name)).toContain("c/number");
    expect(text).toContain("203 tools of office.");
  });
});

describe("a map that is asked for again", () => {
  it("is the same object for an equal catalogue, and another one after a change", () => {
    const rules = rulesFrom("categories: { c: [x] }");
    const tool = (name: string) => ({ name, stub: new Uint8Array(), tags: [], digest: "", digestDeclared: false });
    const [a, b, c] = [[tool("x"), tool("y")], [tool("z")], [tool("x")]];
    const maps = new CatalogueMaps();
    const of = (names: (typeof a)[], budget = 500, by = rules) =>
      maps.of("n", names.map((one, i) => ({ serverId: `s${i}`, names: one ?? [] })), by, budget);
    const first = of([a, b]);
    expect(of([a, b])).toBe(first);
    expect(of([a, b], 400)).not.toBe(first);
    expect(of([a, b])).toBe(first);
    const changed = of([a, c]);
    expect(changed.text).toContain("category c 2");
    expect(of([a, b])).toEqual(first);
    expect(of([a, b], 500, rulesFrom("rules: []")).text).not.toContain("category");
  });
});
