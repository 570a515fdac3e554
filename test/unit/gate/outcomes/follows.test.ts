import { describe, expect, it } from "vitest";
import { Follows } from "../../../../src/gate/outcomes/follows.js";
import type { Outcome } from "../../../../src/gate/outcomes/outcome.js";
import { describeSequence } from "../../../../src/gate/related/sequence-words.js";

/** Each text is one task: tools in the order of use, by one caller. Times go on through all tasks. */
function followsOf(...tasks: readonly { readonly caller?: number; readonly times: number; readonly tools: string }[]): Follows {
  const outcomes = new Map<string, Outcome[]>();
  let atMs = 0;
  for (const { caller = 1, times, tools } of tasks)
    for (let n = 0; n < times; n++)
      for (const [i, tool] of [...tools].entries()) {
        const after = [...tools].slice(0, i).reverse().slice(0, 3);
        const made = { atMs: atMs++, caller, nonce: 0, success: true, latencyMs: undefined, after };
        outcomes.set(tool, [made, ...(outcomes.get(tool) ?? [])]);
      }
  const follows = new Follows();
  for (const [tool, list] of outcomes) follows.set(tool, list);
  return follows;
}

const chains = (all: readonly { readonly toolIds: readonly string[] }[]) => all.map(({ toolIds }) => toolIds.join(""));

describe("what often comes next", () => {
  it("is what was seen often enough, and as a share of all uses of the first", () => {
    const follows = followsOf({ times: 6, tools: "ab" }, { times: 4, tools: "ac" }, { times: 2, tools: "a" });
    expect(follows.after("a")).toEqual([
      { toolIds: ["a", "b"], share: 0.5 },
      { toolIds: ["a", "c"], share: 4 / 12 },
    ]);
    expect(chains(followsOf({ times: 2, tools: "ab" }).after("a"))).toEqual([]);
    expect(chains(followsOf({ times: 3, tools: "ab" }, { times: 20, tools: "a" }).after("a"))).toEqual([]);
  });

  it("is not what one caller of several alone does", () => {
    expect(chains(followsOf({ caller: 1, times: 9, tools: "ab" }, { caller: 2, times: 2, tools: "a" }).after("a"))).toEqual([]);
    const both = followsOf({ caller: 1, times: 4, tools: "ab" }, { caller: 2, times: 2, tools: "ab" });
    expect(chains(both.after("a"))).toEqual(["ab"]);
  });

  it("is forgotten with the outcomes that said so", () => {
    const follows = followsOf({ times: 5, tools: "ab" });
    follows.set("b", []);
    expect([follows.after("a"), follows.holding("b")]).toEqual([[], []]);
  });
});

describe("whole sequences", () => {
  it("begin before a tool and go on after it, as they were used and not as pairs could be put together", () => {
    const follows = followsOf({ times: 5, tools: "abcd" }, { times: 5, tools: "xbce" });
    expect(chains(follows.holding("c"))).toEqual(["abcd", "xbce"]);
    expect(chains(follows.holding("a"))).toEqual(["abcd"]);
    expect(follows.holding("d")[0]?.share).toBe(1);
  });

  it("end where they turn back, and are no longer than four", () => {
    expect(chains(followsOf({ times: 5, tools: "abab" }).holding("a"))).toEqual(["ab", "ba"]);
    expect(chains(followsOf({ times: 5, tools: "abcdef" }).holding("c"))).toEqual(["abcd", "bcde", "cdef"]);
  });
});

describe("a sequence in words", () => {
  it.each([
    [["create_purchase_order", "approve_purchase_order"], "create the purchase order, then approve it"],
    [["listInvoices", "payInvoice", "sendMessage"], "list the invoices, then pay them, then send the message"],
    [["order.create", "order-cancel"], "create the order, then cancel it"],
    [["weather", "send_mail"], "weather, then send the mail"],
    [["创建订单", "审批订单"], "创建订单, then 审批订单"],
  ])("%j", (names, text) => expect(describeSequence(names.map((name) => ({ name, title: "" })))).toBe(text));

  it("takes the title where the name says nothing", () => {
    expect(describeSequence([{ name: "op17", title: "Reconcile accounts" }, { name: "close_books", title: "Books" }])).toBe(
      "Reconcile accounts, then close the books",
    );
  });
});
