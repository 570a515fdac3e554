import { describe, expect, it } from "vitest";
import type { StubFields } from "../../../src/domain/stub.js";
import type { FindOutput, FindQuery } from "../../../src/gate/api.js";
import { actOfName, actOfTitle, areOpposite } from "../../../src/gate/related/verbs.js";
import { rulesFrom } from "../../support/gate-rules.js";
import { asking, shelf } from "../../support/gate.js";

const destructive: Partial<StubFields> = { hints: { destructive: true } };
const additive: Partial<StubFields> = { hints: { destructive: false } };

function withTools(tools: Readonly<Record<string, Partial<StubFields>>>) {
  const held = shelf();
  for (const [id, label] of Object.entries(tools)) held.put(id, label);
  return { ...held, find: (intent: string, more: Partial<FindQuery> = {}) => held.gate.find(asking(intent, more), undefined) };
}

const told = ({ tools }: FindOutput) =>
  tools.map(({ toolId, reasons, sideEffect }) => {
    const sibling = reasons.find((reason) => reason.kind === "sibling" || reason.kind === "companion");
    return [toolId, sideEffect, ...(sibling && "of" in sibling ? [`${sibling.kind} of ${sibling.of}`] : [])];
  });

describe("siblings", () => {
  it("show the opposite beside what was asked for, each with what it may do", async () => {
    const { find } = withTools({
      "erp/close_purchase_order": additive,
      "erp/delete_purchase_order": destructive,
      "erp/list_invoices": {},
      "crm/delete_purchase_order": destructive,
    });
    const answer = await find("close the purchase order at erp", { topK: 1 });
    expect(told(answer)).toEqual([
      ["erp/close_purchase_order", "additive"],
      ["erp/delete_purchase_order", "destructive", "sibling of erp/close_purchase_order"],
    ]);
  });

  it("let no destructive tool stand alone: the gentlest tool for the same thing comes along", async () => {
    const { find } = withTools({
      "erp/delete_order": destructive,
      "erp/purge_order": destructive,
      "erp/get_order": { hints: { readOnly: true } },
      "erp/archive_order": additive,
      "erp/remove_stale_invoice": {},
      "erp/list_stale_invoices": {},
      "erp/delete_everything": destructive,
    });
    expect(told(await find("delete order", { topK: 1 }))).toEqual([
      ["erp/delete_order", "destructive"],
      ["erp/archive_order", "additive", "sibling of erp/delete_order"],
    ]);
    // Its annotations say nothing, its name does; there is no opposite, but something that only looks.
    expect(told(await find("remove the stale invoice", { topK: 1 }))).toEqual([
      ["erp/remove_stale_invoice", "unknown"],
      ["erp/list_stale_invoices", "unknown", "sibling of erp/remove_stale_invoice"],
    ]);
    expect(told(await find("delete everything", { topK: 1 }))).toEqual([["erp/delete_everything", "destructive"]]);
  });

  it("are few, are no strangers, and are not shown where they may not be offered", async () => {
    const tools: Record<string, Partial<StubFields>> = {};
    for (const thing of ["order", "return", "delivery", "invoice", "offer"])
      for (const verb of ["create", "delete", "close", "remove", "purge"]) tools[`erp/${verb}_${thing}`] = {};
    const { find } = withTools(tools);
    const answer = await find("create order, create return, create delivery, create invoice, create offer", { topK: 5 });
    const siblings = told(answer).filter(([, , why]) => why !== undefined);
    expect(siblings).toHaveLength(3);
    for (const [id, , of] of siblings) expect(id?.split("_")[1]).toBe(of?.split("_")[1]);
    const tagged = withTools({ "a/open_door": { tags: ["x"] }, "a/close_door": {} });
    expect(told(await tagged.find("open door", { filter: { ...asking("").filter, tagsAny: ["x"] } }))).toHaveLength(1);
    const ruled = shelf(async () => [], rulesFrom("rules: [{ name: r, deny: [close_door] }]"));
    ruled.put("a/open_door");
    ruled.put("a/close_door");
    expect(told(await ruled.gate.find(asking("open a door", { topK: 1 }), undefined))).toEqual([["a/open_door", "unknown"]]);
  });

  it("are read from Chinese titles where names say nothing", async () => {
    const { find } = withTools({
      "lark/t1": { title: "关闭采购订单", ...additive },
      "lark/t2": { title: "删除采购订单", ...destructive },
      "lark/t3": { title: "采购订单的查询" },
      "lark/t4": { title: "删除发票" },
    });
    expect(told(await find("关闭逾期的采购订单", { topK: 1 }))).toEqual([
      ["lark/t1", "additive"],
      ["lark/t2", "destructive", "sibling of lark/t1"],
    ]);
    expect(told(await find("删除采购订单", { topK: 1 }))).toEqual([
      ["lark/t2", "destructive"],
      ["lark/t1", "additive", "sibling of lark/t2"],
    ]);
  });

  it("a destructive tool and its gentler one are answered within the budget together, or neither", async () => {
    const { find } = withTools({ "erp/delete_order": destructive, "erp/archive_order": additive });
    const all = await find("please delete the order", { topK: 1 });
    expect(all.tools).toHaveLength(2);
    const short = await find("please delete the order", { topK: 1, tokenBudget: all.answerTokens - 1 });
    expect(short.tools.map(({ toolId }) => toolId)).toEqual(["erp/archive_order"]);
    expect(short.withheld).toMatchObject([{ toolId: "erp/delete_order", cause: "budget", why: expect.stringContaining("gentler") as string }]);
  });

  it.each([
    ["close_purchase_order", { verb: "close", object: "purchase order" }],
    ["ordersDelete", { verb: "delete", object: "order" }],
    ["turn_on_lights", { verb: "turnon", object: "light" }],
    ["lights.turnOff", { verb: "turnoff", object: "light" }],
    ["v2_users_enable", { verb: "enable", object: "user" }],
    ["delete", undefined],
    ["orders", undefined],
    ["", undefined],
  ])("%s is %o", (name, act) => expect(actOfName(name)).toEqual(act));

  it.each([
    ["取消订阅频道", { verb: "取消订阅", object: "频道" }],
    ["频道的删除", { verb: "删除", object: "频道" }],
    ["delete channel", undefined],
    ["删除", undefined],
  ])("%s is %o", (title, act) => expect(actOfTitle(title)).toEqual(act));

  it("opposites are each other's", () => {
    for (const [a, b] of [["close", "delete"], ["open", "close"], ["enable", "disable"], ["关闭", "删除"], ["turnon", "turnoff"]] as const)
      expect([areOpposite(a, b), areOpposite(b, a), areOpposite(a, a)], `${a} ${b}`).toEqual([true, true, false]);
  });
});

describe("declared dependencies", () => {
  const needs = (...ids: string[]): Partial<StubFields> => ({ requires: ids.map((value) => ({ kind: "tool", value })) });

  it("offer what a withheld tool needs first, and call the answer good where that leads to a tool that fits", async () => {
    const { find } = withTools({ "bank/transfer_money": needs("login"), "bank/login": {}, "bank/other": {} });
    const answer = await find("transfer money", { topK: 2 });
    expect(told(answer)).toEqual([["bank/login", "unknown", "companion of bank/transfer_money"]]);
    expect(answer.withheld).toMatchObject([{ toolId: "bank/transfer_money", cause: "precondition", why: "it needs a success of login" }]);
    expect(answer.weak).toBe(false);
    const after = await find("transfer money", { recent: [{ toolId: "bank/login", success: true, turnsAgo: 1 }] });
    expect(told(after)).toEqual([["bank/transfer_money", "unknown"]]);
  });

  it("go back to the first step that may be taken, and stop where they turn in circles or need more than a tool", async () => {
    const { find } = withTools({
      "bank/pay": needs("confirm"),
      "bank/confirm": needs("login", "bank/choose"),
      "bank/login": {},
      "bank/choose": needs("login"),
      "bank/cycle_one": needs("cycle_two"),
      "bank/cycle_two": needs("cycle_one"),
      "bank/audit": { requires: [{ kind: "tool", value: "login" }, { kind: "scope", value: "auditor" }] },
      "bank/lost": needs("nowhere"),
    });
    expect(told(await find("pay", { topK: 1 }))).toEqual([["bank/login", "unknown", "companion of bank/pay"]]);
    expect((await find("cycle two")).tools).toEqual([]);
    expect((await find("audit")).tools).toEqual([]);
    const lost = await find("lost");
    expect([lost.tools, lost.weak]).toEqual([[], true]);
  });
});

describe("whether an answer is weak", () => {
  it("is a matter of what is offered, not of what is withheld", async () => {
    const { find } = withTools({ "bank/transfer_money": { requires: [{ kind: "scope", value: "pay" }] }, "bank/money_facts_of_every_kind_and_place": {} });
    const without = await find("transfer money abroad quickly");
    expect(told(without)).toEqual([["bank/money_facts_of_every_kind_and_place", "unknown"]]);
    expect(without.weak).toBe(true);
    expect((await find("transfer money abroad quickly", { scopes: ["pay"] })).weak).toBe(false);
  });
});

describe("exactly named tools", () => {
  const names = ["alpha_one", "beta_two", "gamma_three", "delta_four", "epsilon_five", "zeta_six", "eta_seven"];
  const many = () => withTools(Object.fromEntries(names.map((name) => [`s/${name}`, { briefDescription: "x".repeat(400) }])));

  it("are all answered, seven of them with top_k 5 and with a budget for none", async () => {
    const { find } = many();
    const intent = `use ${names.join(", ")}`;
    expect((await find(intent, { topK: 5 })).tools).toHaveLength(7);
    const tight = await find(intent, { topK: 5, tokenBudget: 1 });
    expect(tight.tools).toHaveLength(7);
    expect(tight.withheld).toEqual([]);
    // The answer says that it is more than was asked for.
    expect(tight.answerTokens).toBeGreaterThan(1);
  });

  it("are paid for first, and come without a schema where only that does not fit", async () => {
    const definition = Buffer.from(JSON.stringify({ name: "x", description: "y".repeat(2_000) }));
    const held = shelf(async (_ns, ids) =>
      ids.map((toolId) => ({ kind: "schema", schema: { toolId, definition, digest: "", freshness: "cached", fetchedAtMs: 0 } })),
    );
    held.put("s/alpha_one", { briefDescription: "first" });
    held.put("s/other", { briefDescription: "send the alpha message" });
    const ask = (tokenBudget: number) => held.gate.find(asking("send the message with alpha_one", { tokenBudget, schemas: "full" }), undefined);
    const whole = await ask(0);
    expect(whole.tools.map(({ schema }) => schema?.view)).toEqual(["full", "full"]);
    const [named, other] = whole.tools;
    const short = await ask((named?.tokens ?? 0) - 1);
    expect(short.tools.map(({ toolId, schema }) => [toolId, schema])).toEqual([["s/alpha_one", undefined]]);
    expect(short.withheld).toMatchObject([{ toolId: other?.toolId, cause: "budget" }]);
  });
});
