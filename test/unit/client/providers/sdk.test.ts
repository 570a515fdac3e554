import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic from "@anthropic-ai/sdk";
import { type FunctionCall, type FunctionDeclaration, GoogleGenAI, type Part } from "@google/genai";
import OpenAI from "openai";
import { toStrictJsonSchema } from "openai/lib/transform";
import type { JSONSchema } from "openai/lib/jsonschema";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AnthropicTools,
  GeminiTools,
  OpenAiChatTools,
  OpenAiResponsesTools,
  type ToolResult,
} from "../../../../src/client/providers/index.js";
import { anthropicProblems, chatProblems, geminiProblems, responsesProblems } from "./provider-rules.js";
import { fixtureTools } from "./tool-sets.js";

const TOOLS = fixtureTools();
const ANSWER: ToolResult = {
  content: [{ type: "text", text: "done" }, { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }],
};

/** Answers every request with what a test gave it, and keeps what was asked. */
let server: Server;
let answer: unknown;
let asked: Record<string, unknown> = {};
let base = "";

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      asked = JSON.parse(Buffer.concat(chunks).toString());
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

describe("the official clients", () => {
  it("OpenAI Chat Completions: types, request, answer, result", async () => {
    const box = new OpenAiChatTools(TOOLS);
    const tools = box.tools satisfies OpenAI.Chat.Completions.ChatCompletionTool[];
    const toolCall = { id: "c1", type: "function", function: { name: box.nameOf("git/git_add"), arguments: '{"path":null}' } };
    answer = { choices: [{ message: { role: "assistant", tool_calls: [toolCall] } }] };
    const client = new OpenAI({ apiKey: "k", baseURL: base });
    const completion = await client.chat.completions.create({ model: "m", messages: [], tools });
    expect(chatProblems((asked as { tools: typeof tools }).tools)).toEqual([]);
    expect(asked["tools"]).toEqual(plain(box.tools));
    const reading = box.readCall(completion.choices[0]?.message.tool_calls?.[0]);
    expect(reading).toMatchObject({ ok: true, call: { toolId: "git/git_add", callId: "c1", arguments: {} } });
    if (!reading.ok) return;
    const message = box.result(reading.call, ANSWER) satisfies OpenAI.Chat.Completions.ChatCompletionToolMessageParam;
    expect(message).toEqual({ role: "tool", tool_call_id: "c1", content: "done\n[image, image/png, 9 bytes]" });
  });

  it("OpenAI's own strict conversion changes nothing in a strict export", () => {
    const strict = new OpenAiChatTools(TOOLS).tools.filter((tool) => tool.function.strict);
    expect(strict.length).toBeGreaterThan(20);
    for (const { function: f } of strict)
      expect(plain(toStrictJsonSchema(f.parameters as JSONSchema)), f.name).toEqual(plain(f.parameters));
  });

  it("OpenAI Responses: functions, and tools found through tool_search", async () => {
    const box = new OpenAiResponsesTools(TOOLS);
    const tools = box.tools satisfies OpenAI.Responses.FunctionTool[];
    const search = box.searchTool("Finds tools.") satisfies OpenAI.Responses.ToolSearchTool;
    const call = { type: "tool_search_call", id: "i", call_id: "c1", execution: "client", status: "completed", arguments: { intent: "stage a file" } };
    answer = { output: [call, { type: "function_call", call_id: "c2", name: box.nameOf("git/git_add"), arguments: "{}" }] };
    const client = new OpenAI({ apiKey: "k", baseURL: base });
    const response = await client.responses.create({ model: "m", input: "x", tools: [search, ...tools] });
    expect(responsesProblems((asked as { tools: typeof tools }).tools.slice(1))).toEqual([]);
    expect(box.readSearch(response.output[0])).toEqual({ ok: true, callId: "c1", intent: "stage a file" });
    expect(box.readSearch(response.output[1])).toMatchObject({ ok: false, problem: { reason: "NOT_A_CALL" } });
    expect(box.readCall(response.output[1])).toMatchObject({ ok: true, call: { toolId: "git/git_add", callId: "c2" } });
    const found = box.searchOutput("c1", ["git/git_add", "git/none"]) satisfies OpenAI.Responses.ResponseInputItem;
    expect(found.tools).toEqual([{ ...tools.find((t) => t.name === "git__git_add"), defer_loading: true }]);
    const result = box.result({ callId: "c2" }, ANSWER) satisfies OpenAI.Responses.ResponseInputItem.FunctionCallOutput;
    expect(result.output).toEqual([
      { type: "input_text", text: "done" },
      { type: "input_image", image_url: "data:image/png;base64,iVBORw0KGgo=", detail: "auto" },
    ]);
    await client.responses.create({ model: "m", input: [found, result], tools: [search] });
    expect(asked["input"]).toEqual(plain([found, result]));
  });

  it("Anthropic Messages: tools in the prompt, and by reference", async () => {
    const box = new AnthropicTools(TOOLS, { defer: "all" });
    const tools = box.tools satisfies Anthropic.Tool[];
    answer = { content: [{ type: "tool_use", id: "u1", name: box.nameOf("git/git_add"), input: { files: ["a"] } }] };
    const client = new Anthropic({ apiKey: "k", baseURL: base });
    const finder: Anthropic.Tool = { name: "find_tools", input_schema: { type: "object" } };
    const message = await client.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }], tools: [finder, ...tools] });
    expect(anthropicProblems((asked as { tools: typeof tools }).tools)).toEqual([]);
    expect((asked["tools"] as object[]).slice(1)).toEqual(plain(box.tools));
    const reading = box.readCall(message.content[0]);
    expect(reading).toMatchObject({ ok: true, call: { toolId: "git/git_add", callId: "u1", arguments: { files: ["a"] } } });
    const references = box.references("u0", ["git/git_add"]) satisfies Anthropic.ToolResultBlockParam;
    expect(references.content).toEqual([{ type: "tool_reference", tool_name: "git__git_add" }]);
    const result = box.result({ callId: "u1" }, ANSWER) satisfies Anthropic.ToolResultBlockParam;
    expect(result).toMatchObject({ tool_use_id: "u1", is_error: false, content: [{ type: "text" }, { type: "image" }] });
  });

  it.each(["json", "subset"] as const)("Gemini, %s: what the SDK sends is what was exported", async (parameters) => {
    const box = new GeminiTools(TOOLS, { parameters });
    const declarations = box.functionDeclarations satisfies FunctionDeclaration[];
    answer = { candidates: [{ content: { parts: [{ functionCall: { id: "f1", name: box.nameOf("git/git_add"), args: { files: ["a"] } } }] } }] };
    const client = new GoogleGenAI({ apiKey: "k", httpOptions: { baseUrl: base } });
    const response = await client.models.generateContent({ model: "m", contents: "x", config: { tools: [{ functionDeclarations: plain(declarations) }] } });
    const sent = (asked["tools"] as { functionDeclarations: typeof declarations }[])[0]?.functionDeclarations ?? [];
    expect(geminiProblems(sent)).toEqual([]);
    expect(sent).toEqual(plain(declarations));
    const call: FunctionCall | undefined = response.functionCalls?.[0];
    expect(box.readCall(call)).toMatchObject({ ok: true, call: { toolId: "git/git_add", callId: "f1", arguments: { files: ["a"] } } });
    const result = box.result({ callId: "f1", name: "git__git_add" }, { ...(ANSWER as object), structuredContent: { ok: 1 } });
    expect(result satisfies Part).toEqual({ functionResponse: { id: "f1", name: "git__git_add", response: { output: { ok: 1 } } } });
  });
});
