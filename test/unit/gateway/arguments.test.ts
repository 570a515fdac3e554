import { describe, expect, it } from "vitest";
import { readCall, readDescribe, readFind } from "../../../src/gateway/tools/arguments.js";
import { stableList } from "../../../src/gateway/tools/schemas.js";

const meant = { toolset: "t", tool: "one/greet", arguments: { text: "hi" } };
const again = (given: unknown): unknown => {
  const read = readCall(given);
  if (read.ok) throw new Error("was read");
  const [, call = ""] = /Call it again with (\{.*\})\.$/.exec(read.text) ?? [];
  return JSON.parse(call);
};

describe("call_tool", () => {
  it("takes what it describes", () => {
    expect(readCall(meant)).toEqual({ ok: true, value: { toolset: "t", tool: "one/greet", args: { text: "hi" } } });
    expect(readCall({ toolset: "t", tool: "one/greet" })).toMatchObject({ ok: true, value: { args: undefined } });
  });

  it.each([
    ["wrapped once more", { arguments: { toolset: "t", name: "one/greet", arguments: { text: "hi" } } }],
    ["the tool inside", { toolset: "t", arguments: { tool: "one/greet", text: "hi" } }],
    ["name for tool", { toolset: "t", name: "one/greet", arguments: { text: "hi" } }],
    ["arguments beside", { toolset: "t", tool: "one/greet", text: "hi" }],
    ["arguments as text", { toolset: "t", tool: "one/greet", arguments: '{"text":"hi"}' }],
  ])("answers with the call that was meant: %s", (_how, given) => {
    expect(again(given)).toEqual(meant);
  });

  it("says what is missing", () => {
    expect(again({ tool: "one/greet", arguments: { text: "hi" } })).toEqual({ ...meant, toolset: "the name that find_tools answered" });
    for (const given of [undefined, {}, [], "x", 3, { toolset: "t", arguments: 3 }]) expect(readCall(given)).toMatchObject({ ok: false, text: expect.stringContaining("call_tool") });
    expect(readCall({ toolset: "t", tool: "x", arguments: [1] })).toMatchObject({ ok: false, text: expect.stringContaining("must be an object, not a list") });
  });
});

describe("find_tools and describe_tools", () => {
  it("say everything that is wrong at once", () => {
    expect(readFind({ intent: 3, limit: 0, keep: "yes", color: "red" })).toMatchObject({
      ok: false,
      text: expect.stringMatching(/intent must be a text; keep must be true or false; limit must be .* not 0; color is not among/),
    });
    expect(readFind([])).toMatchObject({ ok: false });
  });

  it("take what is meant alike", () => {
    expect(readFind(undefined)).toMatchObject({ ok: true, value: { intent: "", category: "", limit: 5, keep: false } });
    expect(readFind({ intent: " a ", limit: null })).toMatchObject({ ok: true, value: { intent: "a", limit: 5 } });
    expect(readDescribe({ toolset: "t", tools: "one/greet" })).toEqual({ ok: true, value: { toolset: "t", tools: ["one/greet"] } });
    expect(readDescribe({ tools: ["one/greet"] })).toMatchObject({ ok: false });
  });
});

it("facts of the state come as a list or as an object, and what is neither is refused", () => {
  const facts = (state: unknown) => readFind({ intent: "a", state });
  expect(facts(["logged_in", "branch=main"])).toMatchObject({ ok: true, value: { state: ["logged_in", "branch=main"] } });
  expect(facts({ logged_in: true, branch: "main", tries: 3, gone: false })).toMatchObject({ ok: true, value: { state: ["logged_in", "branch=main", "tries=3"] } });
  expect(facts(null)).toMatchObject({ ok: true, value: { state: [] } });
  for (const wrong of ["logged_in", 3, [1], [["a"]], { a: {} }, [""], ["x".repeat(201)], Array.from({ length: 101 }, String)])
    expect(facts(wrong)).toMatchObject({ ok: false, text: expect.stringMatching(/find_tools: state /) });
  expect(readFind({ intent: "a", by: "model" })).toMatchObject({ ok: true, value: { by: "model" } });
  expect(readFind({ intent: "a", by: "magic" })).toMatchObject({ ok: false, text: expect.stringContaining('by must be "search" or "model", not "magic"') });
});

it("the stable list has no word that could change", () => {
  expect(JSON.parse(stableList(false)).map((t: { name: string }) => t.name)).toEqual(["find_tools", "describe_tools", "call_tool"]);
});
