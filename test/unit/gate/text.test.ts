import { describe, expect, test } from "vitest";
import { intentOf } from "../../../src/gate/intent.js";
import { cut, pairsOf, tokensOf } from "../../../src/gate/text.js";

const terms = (text: string) => tokensOf(text).map(({ term }) => term);
const words = (text: string) => tokensOf(text).map(({ word }) => word);

describe("identifiers", () => {
  test.each(["purchase_order_lines", "purchase-order-lines", "purchase.order.lines", "purchaseOrderLines", "PurchaseOrderLines"])(
    "%s is found by its words",
    (name) => expect(terms(name)).toEqual(expect.arrayContaining(terms("purchase order line"))),
  );

  test("runs of capitals, plurals of them, digits", () => {
    expect(words("getHTTPServer")).toEqual(["gethttpserver", "http", "server"]);
    expect(words("APIs")).toEqual(["apis"]);
    expect(words("base64")).toEqual(["base64", "base", "64"]);
    expect(terms("YouTube")).toContain(terms("youtube")[0]);
  });
});

describe("words", () => {
  test.each([
    ["files", "file"],
    ["filing", "filed"],
    ["companies", "company"],
    ["searches", "search"],
    ["planning", "plans"],
  ])("%s and %s are one", (a, b) => expect(terms(a)).toEqual(terms(b)));

  test("what is derived is another word", () => expect(terms("player")).not.toEqual(terms("play")));

  test("accents, width and case make no difference", () => {
    expect(terms("CAFÉ naïve Straße Œuvre")).toEqual(terms("cafe naive strasse oeuvre"));
    expect(terms("ｆｉｌｅ ﬁle")).toEqual(["fil", "fil"]);
    expect(terms("Ёлка")).toEqual(terms("елка"));
  });

  test("a mark that makes another letter stays", () => {
    expect(terms("мой")).not.toEqual(terms("мои"));
    expect(terms("が")).not.toEqual(terms("か"));
  });

  test("stop words and shortened ones go", () => expect(terms("what's the weather, I don't know")).toEqual(["weather"]));
});

test("scripts without spaces give signs and pairs", () => {
  expect(terms("关闭订单")).toEqual(["关", "关闭", "闭", "闭订", "订", "订单", "单"]);
  expect(terms("請求書")).toContain("求書");
  expect(terms("주문 취소")).toEqual(["주", "주문", "문", "취", "취소", "소"]);
  expect(terms("オーダー")).toContain("オー");
  expect(terms("请帮我")).toEqual([]);
  expect(words("用python画图")).toEqual(expect.arrayContaining(["python", "画图"]));
});

test("words side by side make a term that meets the word written as one", () => {
  expect(pairsOf(tokensOf("roll the dice rollers")).map(({ term }) => term)).toContain(terms("diceroller")[0]);
});

test.each([
  ["nothing", ""],
  ["stop words", "the of and to a in is it"],
  ["emoji", "🙂🙃👩‍👩‍👧"],
  ["control characters", "\0\u0001\u0002"],
  ["half a surrogate pair", "\ud800 \udc00"],
  ["marks alone", "\u0301\u0301"],
])("%s says nothing and breaks nothing", (_, text) => {
  expect(terms(text).filter((term) => /[\p{L}\p{N}]/u.test(term))).toEqual([]);
});

test("a cut never ends inside a surrogate pair", () => {
  expect(cut("a🙂", 2)).toBe("a");
  expect(cut("a🙂", 3)).toBe("a🙂");
});

test("numbers and dates of an intent name no tool", () => {
  expect(intentOf({ text: "pay 2.5 of invoice_7 by 2026-11-30 and run get.status" }).names.slice(1)).toEqual(["invoice_7", "get.status"]);
});
