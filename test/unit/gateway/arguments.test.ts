import { describe, expect, it } from "vitest";
import { readCall, readDescribe, readFind } from "../../../src/gateway/tools/arguments.js";
import { STABLE_LIST } from "../../../src/gateway/tools/schemas.js";

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
    expect(readFind(undefined)).toMatchObject({ ok: true, value: { intent: "", category: "", limit: 8, keep: false } });
    expect(readFind({ intent: " a ", limit: null })).toMatchObject({ ok: true, value: { intent: "a", limit: 8 } });
    expect(readDescribe({ toolset: "t", tools: "one/greet" })).toEqual({ ok: true, value: { toolset: "t", tools: ["one/greet"] } });
    expect(readDescribe({ tools: ["one/greet"] })).toMatchObject({ ok: false });
  });
});

it("the stable list has no word that could change", () => {
  expect(JSON.parse(STABLE_LIST).map((t: { name: string }) => t.name)).toEqual(["find_tools", "describe_tools", "call_tool"]);
});
