import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  AnthropicTools,
  type CallReading,
  GeminiTools,
  type JsonObject,
  OpenAiChatTools,
  OpenAiResponsesTools,
  ReactTools,
} from "../../../../src/client/providers/index.js";
import { EXPORTS, tool } from "./tool-sets.js";

const TOOLS = [
  tool("git/add", { type: "object", properties: { path: { type: "string" } }, required: ["path"] }),
  tool("git/add_all", { type: "object", properties: {} }),
];

function problemOf(reading: CallReading) {
  if (reading.ok) throw new Error(`it was read as a call of ${reading.call.toolId}`);
  return reading.problem;
}

describe("a call that is wrong", () => {
  const chat = new OpenAiChatTools(TOOLS);
  const call = (name: unknown, args: unknown) => chat.readCall({ id: "c1", type: "function", function: { name, arguments: args } });

  it("names the nearest tools where the name is unknown", () => {
    const problem = problemOf(call("git_add", "{}"));
    expect(problem).toMatchObject({ reason: "UNKNOWN_TOOL", name: "git_add", callId: "c1", nearest: ["git__add", "git__add_all"] });
    expect(problem.message).toContain("the nearest are git__add, git__add_all");
    expect(chat.problem(problem)).toEqual({ role: "tool", tool_call_id: "c1", content: `Error: ${problem.message}` });
    expect(problemOf(call("GIT__ADD", "{}")).reason).toBe("UNKNOWN_TOOL");
    expect(problemOf(call("__proto__", "{}")).reason).toBe("UNKNOWN_TOOL");
  });

  it.each([
    ["{", "MALFORMED_ARGUMENTS"],
    ["{'path': 1}", "MALFORMED_ARGUMENTS"],
    ['{"path":"a"} and more', "MALFORMED_ARGUMENTS"],
    ["[]", "NOT_AN_OBJECT"],
    ["null", "NOT_AN_OBJECT"],
    ['"text"', "NOT_AN_OBJECT"],
    [7, "NOT_AN_OBJECT"],
    [`{"path":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, "TOO_LARGE"],
    [`{"path":"${"x".repeat(5 * 1024 * 1024)}"}`, "TOO_LARGE"],
  ])("says what is wrong with the arguments (%.20s)", (args, reason) => {
    expect(problemOf(call("git__add", args))).toMatchObject({ reason, toolId: "git/add", name: "git__add" });
  });

  it("is no call at all", () => {
    for (const odd of [undefined, null, 1, "x", [], {}, { function: null }, { function: { name: 3 } }])
      expect(problemOf(chat.readCall(odd)).reason).toBe("NOT_A_CALL");
    expect(problemOf(new OpenAiResponsesTools(TOOLS).readCall({ type: "message" })).reason).toBe("NOT_A_CALL");
    expect(problemOf(new AnthropicTools(TOOLS).readCall({ type: "text" })).reason).toBe("NOT_A_CALL");
    expect(problemOf(new ReactTools(TOOLS).readCall("Final Answer: done")).reason).toBe("NOT_A_CALL");
  });

  it("reads no text, and nothing at all, as no arguments", () => {
    expect(call("git__add_all", "")).toMatchObject({ ok: true, call: { arguments: {} } });
    expect(new GeminiTools(TOOLS).readCall({ name: "git__add_all" })).toMatchObject({ ok: true, call: { arguments: {} } });
  });

  it("never throws, whatever it is", () => {
    const boxes = [chat, new OpenAiResponsesTools(TOOLS), new AnthropicTools(TOOLS), new GeminiTools(TOOLS), new ReactTools(TOOLS)];
    const part = fc.oneof(fc.constantFrom("git__add", "function_call", "tool_use", "Action: git__add\nAction Input: {"), fc.anything());
    const odd = fc.dictionary(fc.constantFrom("type", "name", "id", "call_id", "input", "args", "arguments", "function"), part);
    fc.assert(
      fc.property(fc.oneof(part, odd), odd, (value, inner) => {
        for (const box of boxes)
          for (const given of [value, { ...inner, function: value }, { ...inner, name: "git__add", type: "tool_use", input: value, args: value }])
            expect(typeof box.readCall(given).ok).toBe("boolean");
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("what mapping back undoes", () => {
  const schema = {
    type: "object",
    properties: {
      $filter: { type: "string" },
      note: { type: "string" },
      deep: { type: "object", properties: { a: { type: "integer" }, b: { type: "boolean" } }, required: ["a"] },
      list: { type: "array", items: { type: "object", properties: { "If-Match": { type: "string" } } } },
    },
    required: ["$filter"],
  };

  it("is the null that strict mode forced, at any depth", () => {
    const { box, read } = EXPORTS["openai-chat"]!([tool("s/t", schema)]);
    expect(box.report.tools[0]).toMatchObject({ strict: true });
    const sent = { $filter: "x", note: null, deep: { a: 1, b: null }, list: [{ "If-Match": null }, { "If-Match": "e" }] };
    const wanted: JsonObject = { $filter: "x", deep: { a: 1 }, list: [{}, { "If-Match": "e" }] };
    expect(read("s__t", sent)).toMatchObject({ ok: true, call: { arguments: wanted } });
    expect(box.argumentsFor("s/t", wanted)).toEqual(sent);
  });

  it("is not a null that the tool itself takes: strict mode cannot tell it from a key left out", () => {
    const { box, read } = EXPORTS["openai-chat"]!([
      tool("s/t", { type: "object", properties: { who: { type: ["string", "null"] } } }),
      tool("s/u", { type: "object", properties: { who: { type: ["string", "null"] } }, required: ["who"] }),
    ]);
    expect(box.report.tools.map((t) => t.outcome !== "refused" && t.strict)).toEqual([false, true]);
    expect(read("s__u", { who: null })).toMatchObject({ ok: true, call: { arguments: { who: null } } });
  });

  it("is a renamed key, at the top for Anthropic and everywhere for Gemini", () => {
    const anthropic = EXPORTS["anthropic"]!([tool("s/t", schema)]);
    const gemini = EXPORTS["gemini-json"]!([tool("s/t", schema)]);
    const args = { $filter: "x", list: [{ "If-Match": "e" }] };
    const a = anthropic.box.argumentsFor("s/t", args) as Record<string, unknown>;
    expect(Object.keys(a)[0]).toMatch(/^_filter_[0-9a-f]{8}$/);
    expect(a["list"]).toEqual(args.list);
    const g = gemini.box.argumentsFor("s/t", args) as { list: object[] };
    expect(Object.keys(g.list[0] as object)[0]).toMatch(/^If_Match_[0-9a-f]{8}$/);
    for (const { read, box } of [anthropic, gemini])
      expect(read("s__t", box.argumentsFor("s/t", args) as object)).toMatchObject({ ok: true, call: { arguments: args } });
  });

  it("is JSON text, where Gemini's subset knows no free objects; text that is none is a clear error", () => {
    const { read } = EXPORTS["gemini-subset"]!([
      tool("s/t", { type: "object", properties: { map: { type: "object" }, any: {} }, required: ["map"] }),
    ]);
    expect(read("s__t", { map: '{"a":1}', any: "[1]" })).toMatchObject({ ok: true, call: { arguments: { map: { a: 1 }, any: [1] } } });
    expect(read("s__t", { map: { a: 1 }, any: "words" })).toMatchObject({ ok: true, call: { arguments: { map: { a: 1 }, any: "words" } } });
    expect(problemOf(read("s__t", { map: "[1]" }))).toMatchObject({
      reason: "MALFORMED_ARGUMENTS",
      message: "the argument /map of s__t must be a JSON object written as text",
    });
  });
});

describe("ReAct text", () => {
  const react = new ReactTools(TOOLS);
  it.each([
    'Thought: I add it.\nAction: git__add\nAction Input: {"path": "a}b"}',
    'Action: git__add_all\nAction Input: {}\nno\nAction: `git__add`\nAction Input:\n```json\n{"path": "a}b"}\n```\nso much for that',
    'Action: git__add\nAction Input: {"path": "a}b"}\nObservation: done\nAction: git__add_all\nAction Input: {}',
  ])("is read as a model writes it (%#)", (text) => {
    expect(react.readCall(text)).toMatchObject({ ok: true, call: { toolId: "git/add", arguments: { path: "a}b" } } });
  });

  it("holds every tool and how to call it", () => {
    expect(react.prompt).toContain("Action Input: its arguments");
    expect(react.prompt).toContain('Tool: git__add\nDoes it.\nArguments: {"type":"object","properties":{"path":{"type":"string"}}');
    expect(react.result({}, { content: [{ type: "text", text: "no" }], isError: true })).toBe("Observation: Error: no");
  });
});
