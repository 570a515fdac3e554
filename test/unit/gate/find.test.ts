import { describe, expect, it } from "vitest";
import { Fault } from "../../../src/domain/fault.js";
import { everything } from "../../../src/domain/filter.js";
import type { FindQuery } from "../../../src/gate/api.js";
import type { LoadSchemas } from "../../../src/gate/ports.js";
import { asking, type Shelf, shelf } from "../../support/gate.js";

async function ids(s: Shelf, intent: string, more: Partial<FindQuery> = {}): Promise<string[]> {
  return (await s.gate.find(asking(intent, more), undefined)).tools.map(({ toolId }) => toolId);
}

/** Purchase orders and what else a company does. */
function company(load?: LoadSchemas): Shelf {
  const s = shelf(load);
  s.put("erp/close_purchase_order", { briefDescription: "Close a purchase order that is done", sizeBytes: 4_000, digest: "d1" });
  s.put("erp/delete_purchase_order", { briefDescription: "Delete a purchase order for good", sizeBytes: 400, digest: "d2" });
  s.put("erp/list_invoices", { briefDescription: "List invoices by date", tags: ["finance"] });
  s.put("mail/send_message", { briefDescription: "Send a message to a person", tags: ["mail"] });
  return s;
}

describe("what is answered", () => {
  it("the best first, with score, margin, reasons and what it costs", async () => {
    const s = company();
    const { tools, weak, withheld, answerTokens, catalogueTokens, catalogueTools } = await s.gate.find(asking("close the purchase order"), undefined);
    expect(tools.map(({ toolId }) => toolId)).toEqual(["erp/close_purchase_order", "erp/delete_purchase_order"]);
    const [first, second] = tools;
    expect(first?.score).toBeGreaterThan(second?.score ?? 1);
    expect([first?.margin, second?.margin].every((margin) => margin !== undefined && margin > 0 && margin < 1)).toBe(true);
    expect(first?.reasons).toEqual([{ kind: "matched-words", words: expect.arrayContaining(["close", "purchase", "order"]) as string[] }]);
    expect([weak, withheld]).toEqual([false, []]);
    expect(answerTokens).toBe(tools.reduce((sum, { tokens }) => sum + tokens, 0));
    const label = (id: string) => Math.ceil((s.tools.get(id)?.tool.stub.byteLength ?? 0) / 4);
    expect([catalogueTools, catalogueTokens]).toEqual([4, 1_000 + 100 + label("erp/list_invoices") + label("mail/send_message")]);
    expect(s.told).toEqual(["good"]);
  });

  it("nothing, and so it says, for what no tool has anything of", async () => {
    const s = company();
    for (const intent of ["xyzzy plugh", "the of and", "🎉🎉🎉", "\u0000", "???"]) {
      const answer = await s.gate.find(asking(intent), undefined);
      expect(answer, intent).toMatchObject({ tools: [], withheld: [], weak: true, catalogueTools: 4 });
    }
    expect(await shelf().gate.find(asking("anything"), undefined)).toMatchObject({ tools: [], weak: true, catalogueTools: 0 });
  });

  it("little is weak: one common word of many rare ones", async () => {
    const s = shelf();
    for (let i = 0; i < 30; i++) s.put(`s/tool_${i}`, { briefDescription: `Message number ${i}` });
    const answer = await s.gate.find(asking("philosophers disagree whether any message has meaning among moles"), undefined);
    expect(answer.weak).toBe(true);
    expect(answer.tools.length).toBeGreaterThan(0);
  });

  it("every tool that is named, even seven with top_k 5, and not a hundred of one name", async () => {
    const s = shelf();
    const names = Array.from({ length: 7 }, (_, i) => `do_thing_${"abcdefg"[i]}`);
    for (const name of names) s.put(`s/${name}`);
    for (let i = 0; i < 30; i++) s.put(`other-${i}/file_operation`);
    expect((await ids(s, `use ${names.join(", ")}`)).sort()).toEqual(names.map((name) => `s/${name}`));
    expect(await ids(s, "file_operation")).toHaveLength(5);
    expect(await ids(s, "other-7/file_operation or other-8/file_operation", { topK: 1 })).toEqual(["other-7/file_operation", "other-8/file_operation"]);
    const { tools } = await s.gate.find(asking("run file_operation"), undefined);
    expect(tools[0]?.reasons[0]).toEqual({ kind: "exact-name" });
  });

  it("only what the filter selects; an unknown tag selects nothing", async () => {
    const s = company();
    const only = (more: object) => ({ filter: { ...everything("default"), ...more } });
    expect(await ids(s, "list or send", only({ tagsAll: ["mail"] }))).toEqual(["mail/send_message"]);
    expect(await ids(s, "list or send", only({ serverIds: ["erp"] }))).toEqual(["erp/list_invoices"]);
    expect(await ids(s, "list or send", only({ tagsAny: ["nobody-has-this"] }))).toEqual([]);
  });

  it("one namespace never answers from another (P9)", async () => {
    const s = company();
    expect(await ids(s, "close purchase order", { filter: everything("other") })).toEqual([]);
  });
});

describe("what is withheld", () => {
  it("names who would have ranked, why, and who can stand in", async () => {
    const s = company();
    s.put("erp/close_purchase_order", { briefDescription: "Close a purchase order", substitutes: ["archive_order", "old-erp/close"] }, "unavailable");
    const { tools, withheld } = await s.gate.find(asking("close the purchase order"), undefined);
    expect(tools.map(({ toolId }) => toolId)).toEqual(["erp/delete_purchase_order"]);
    expect(withheld).toMatchObject([
      { toolId: "erp/close_purchase_order", cause: "unhealthy", why: "its server erp is unavailable", substitutes: ["erp/archive_order", "old-erp/close"] },
    ]);
    expect(s.told).toEqual(["good", "unhealthy"]);
    expect((await s.gate.find(asking("send a message"), undefined)).withheld).toEqual([]);
  });

  it("a named tool is not offered either when it may not be", async () => {
    const s = company();
    s.put("erp/close_purchase_order", {}, "unavailable");
    const { tools, withheld } = await s.gate.find(asking("erp/close_purchase_order"), undefined);
    expect(tools.map(({ toolId }) => toolId)).not.toContain("erp/close_purchase_order");
    expect(withheld[0]?.toolId).toBe("erp/close_purchase_order");
  });

  it("more than fit beside the wanted ones do not hide those behind them", async () => {
    const s = shelf();
    for (let i = 0; i < 200; i++) s.put(`down/order_${i}`, { briefDescription: "purchase order" }, "unavailable");
    s.put("up/anything", { briefDescription: "a long text that says order only once among very many other words that do not matter here" });
    const { tools, withheld } = await s.gate.find(asking("purchase order"), undefined);
    expect(tools.map(({ toolId }) => toolId)).toEqual(["up/anything"]);
    expect(withheld).toHaveLength(20);
  });

  it.each<[string, object, Partial<FindQuery>, string, string | undefined]>([
    ["a scope", { kind: "scope", value: "po:write" }, {}, "scope", "it needs the scope po:write"],
    ["a granted scope", { kind: "scope", value: "po:write" }, { scopes: ["po:write"] }, "", undefined],
    ["a fact", { kind: "state", value: "cart" }, { state: ["card=1"] }, "precondition", "it needs the state cart"],
    ["a fact with any value", { kind: "state", value: "cart" }, { state: ["cart=full"] }, "", undefined],
    ["a fact with another value", { kind: "state", value: "cart=full" }, { state: ["cart=empty"] }, "precondition", "it needs the state cart=full"],
    ["a tool never used", { kind: "tool", value: "open" }, {}, "precondition", "it needs a success of open"],
    ["a tool that failed", { kind: "tool", value: "open" }, { recent: [{ toolId: "s/open", success: false, turnsAgo: 1 }] }, "precondition", "it needs a success of open"],
    ["a namesake elsewhere", { kind: "tool", value: "open" }, { recent: [{ toolId: "x/open", success: true, turnsAgo: 1 }] }, "precondition", "it needs a success of open"],
    ["a tool that succeeded", { kind: "tool", value: "open" }, { recent: [{ toolId: "s/open", success: true, turnsAgo: 1 }] }, "", undefined],
    ["a tool of another server", { kind: "tool", value: "x/open" }, { recent: [{ toolId: "x/open", success: true, turnsAgo: 9 }] }, "", undefined],
  ])("%s", async (_what, required, more, cause, why) => {
    const s = shelf();
    s.put("s/checkout", { requires: [required as never] });
    const { tools, withheld } = await s.gate.find(asking("checkout", more), undefined);
    expect(tools).toHaveLength(cause === "" ? 1 : 0);
    expect(withheld.map((w) => [w.cause, w.why])).toEqual(cause === "" ? [] : [[cause, why]]);
  });

  it("all that is missing is named at once", async () => {
    const s = shelf();
    s.put("s/checkout", { requires: [{ kind: "state", value: "cart" }, { kind: "scope", value: "a" }, { kind: "scope", value: "b" }] });
    const { withheld } = await s.gate.find(asking("checkout"), undefined);
    expect(withheld).toMatchObject([{ cause: "scope", why: "it needs the scopes a, b and the state cart" }]);
  });

  it("what does not fit into the budget, while a smaller one after it does", async () => {
    const s = shelf();
    s.put("s/big_order", { briefDescription: `order order ${"x".repeat(400)}`, keywords: ["order"] });
    s.put("s/small_order", { briefDescription: "order" });
    const whole = await s.gate.find(asking("a big order"), undefined);
    expect(whole.tools).toHaveLength(2);
    const { tools, withheld, answerTokens } = await s.gate.find(asking("a big order", { tokenBudget: 40 }), undefined);
    expect(tools.map(({ toolId }) => toolId)).toEqual(["s/small_order"]);
    expect(withheld).toMatchObject([{ toolId: "s/big_order", cause: "budget", why: expect.stringContaining("of the budget of 40") as string }]);
    expect(answerTokens).toBeLessThanOrEqual(40);
  });
});

describe("schemas", () => {
  const loads: { ids: readonly string[]; view: string; deadlineMs: number | undefined }[] = [];
  const load: LoadSchemas = async (_namespace, toolIds, view, deadlineMs) => {
    loads.push({ ids: toolIds, view, deadlineMs });
    return toolIds.map((toolId) =>
      toolId === "erp/delete_purchase_order"
        ? { kind: "fault", fault: new Fault("LOAD_PENDING", "not yet", { substitutes: ["erp/archive"] }) }
        : { kind: "schema", schema: { toolId, definition: Buffer.alloc(80), digest: "d", freshness: "cached", fetchedAtMs: 1 } },
    );
  };

  it("are loaded only when asked for, and a late one is named", async () => {
    const s = company(load);
    await s.gate.find(asking("purchase order"), 50);
    expect(loads).toEqual([]);
    const { tools } = await s.gate.find(asking("purchase order", { schemas: "input-only" }), 50);
    expect(loads.splice(0)).toEqual([{ ids: tools.map((t) => t.toolId), view: "input-only", deadlineMs: 50 }]);
    const byId = new Map(tools.map((t) => [t.toolId, t]));
    expect(byId.get("erp/close_purchase_order")?.schema?.loaded.kind).toBe("schema");
    expect(byId.get("erp/delete_purchase_order")?.schema).toMatchObject({ loaded: { fault: { substitutes: ["erp/archive"] } } });
    const label = Math.ceil((s.tools.get("erp/close_purchase_order")?.tool.stub.byteLength ?? 0) / 4);
    expect(byId.get("erp/close_purchase_order")?.tokens).toBe(label + 20);
  });

  it("AUTO: whole where small, compact where large, side by side", async () => {
    await company(load).gate.find(asking("purchase order", { schemas: "auto" }), undefined);
    expect(loads.splice(0).map(({ ids: of, view }) => [view, of]).sort()).toEqual([
      ["compact", ["erp/close_purchase_order"]],
      ["full", ["erp/delete_purchase_order"]],
    ]);
  });
});

describe("the index follows the catalogue", () => {
  it("a tool is findable by the next question, and never after it is gone", async () => {
    const s = company();
    expect(await ids(s, "translate subtitles")).toEqual([]);
    s.put("film/translate_subtitles");
    expect(await ids(s, "translate subtitles")).toEqual(["film/translate_subtitles"]);
    s.put("film/translate_subtitles", { briefDescription: "now about karaoke" });
    expect(await ids(s, "karaoke")).toEqual(["film/translate_subtitles"]);
    s.remove("film/translate_subtitles");
    expect(await ids(s, "translate subtitles karaoke film/translate_subtitles")).toEqual([]);
    // Even one that the index still holds: the catalogue has the last word.
    s.tools.delete("erp/list_invoices");
    expect(await ids(s, "list invoices")).toEqual([]);
  });

  it("ten thousand at once are taken in beside everything else", async () => {
    const s = shelf();
    for (let i = 0; i < 10_000; i++) s.put(`s/tool_${i}`, { briefDescription: `does the thing number ${i}` });
    expect(s.gate.tools).toBe(0);
    const answer = await s.gate.find(asking("thing number 7777"), undefined);
    expect(answer.tools[0]?.toolId).toBe("s/tool_7777");
    expect(answer.catalogueTools).toBe(10_000);
    expect(s.gate.tools).toBe(10_000);
  });

  it("another catalogue replaces it: what is not in it is gone, what is in it is found", async () => {
    const s = company();
    await ids(s, "x");
    const kept = s.tools.get("mail/send_message");
    s.tools.clear();
    if (kept) s.tools.set("mail/send_message", kept);
    s.gate.reset(["default"], () => true);
    expect(await ids(s, "send a message")).toEqual(["mail/send_message"]);
    expect(await ids(s, "close purchase order")).toEqual([]);
    await expect.poll(() => s.gate.tools).toBe(1);
    expect((await s.gate.find(asking("send a message"), undefined)).catalogueTools).toBe(1);
    s.gate.reset([], () => true);
    expect(s.gate.tools).toBe(0);
  });

  it("finds by parameters once the definition can be read", async () => {
    const s = shelf();
    const definition = { name: "do_it", description: "Does it", inputSchema: { type: "object", properties: { latitude: { type: "number" } } } };
    s.definitions.set("sha256:d", Buffer.from(JSON.stringify(definition)));
    s.put("s/do_it", { digest: "sha256:d" });
    await expect.poll(() => ids(s, "latitude")).toEqual(["s/do_it"]);
    await s.gate.stop();
  });

  it("equal catalogues give equal answers in every order of arrival (P12)", async () => {
    const names = ["alpha", "beta", "gamma", "delta"].flatMap((a) => ["open", "close"].map((b) => `${a}/${b}_door`));
    const answers = await Promise.all(
      [names, [...names].reverse()].map(async (order) => {
        const s = shelf();
        for (const id of order) s.put(id);
        const { tools } = await s.gate.find(asking("open the door", { topK: 8 }), undefined);
        return tools.map(({ toolId, score }) => [toolId, score]);
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
  });

  it("a label that cannot be read keeps no other out", async () => {
    const s = company();
    const broken = { ...s.tools.get("erp/list_invoices")!, tool: { ...s.tools.get("erp/list_invoices")!.tool, stub: Buffer.from("ff", "hex") } };
    s.tools.set("erp/list_invoices", broken);
    s.gate.reset(["default"], () => true);
    expect(await ids(s, "send a message")).toEqual(["mail/send_message"]);
    await expect.poll(() => s.errors.length).toBeGreaterThan(0);
  });
});
