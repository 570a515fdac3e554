import type { CallProblem, CallReading, ToolCall } from "./calls.js";
import { notACall } from "./calls.js";
import type { ExportedTool, Strictness } from "./export-tool.js";
import type { JsonObject } from "./json.js";
import { isObject } from "./json.js";
import type { ToolInput } from "./read-tool.js";
import type { ToolResult } from "./results.js";
import { isFailure, partsOf, textOf } from "./results.js";
import type { ExportOptions } from "./toolbox.js";
import { Toolbox } from "./toolbox.js";

/** Tools of one request: OpenAI refuses the whole request over it. */
const MOST_TOOLS = 128;
/** OpenAI has refused requests for a longer description of one tool. */
const DESCRIPTION_LENGTH = 1_024;

export interface OpenAiOptions extends ExportOptions {
  /**
   * `auto` asks for strict mode wherever the schema allows it, and closes objects that say nothing about other keys;
   * `exact` asks for it only where nothing is narrowed; `off` never does. The default is `auto`.
   */
  readonly strict?: Strictness;
}

export interface ChatTool {
  type: "function";
  function: { name: string; description: string; parameters: { [key: string]: unknown }; strict: boolean };
}

/** Tools for OpenAI's Chat Completions, and for servers that speak it. */
export class OpenAiChatTools extends Toolbox {
  /** For the request's `tools`. */
  readonly tools: ChatTool[];

  constructor(tools: readonly ToolInput[], options: OpenAiOptions = {}) {
    super(tools, takes(options), options);
    this.tools = this.exported.map(({ name, description, schema, strict }) => ({
      type: "function",
      function: { name, description, parameters: schema, strict },
    }));
  }

  /** One of a message's `tool_calls`. */
  readCall(call: unknown): CallReading {
    if (!isObject(call) || !isObject(call["function"])) return notACall("it has no function", idOf(call, "id"));
    const { name, arguments: input } = call["function"];
    return this.read({ name, callId: call["id"], input });
  }

  /** The message that answers a call. Chat Completions takes text alone: images are named in words. */
  result(call: Pick<ToolCall, "callId">, result: ToolResult): { role: "tool"; tool_call_id: string; content: string } {
    return { role: "tool", tool_call_id: call.callId, content: failureText(result, textOf(result)) };
  }

  /** The message that tells the model what was wrong with its call. */
  problem(problem: CallProblem): { role: "tool"; tool_call_id: string; content: string } {
    return { role: "tool", tool_call_id: problem.callId, content: `Error: ${problem.message}` };
  }
}

export interface ResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: { [key: string]: unknown };
  strict: boolean;
  defer_loading?: boolean;
}

export interface ResponsesSearchTool {
  type: "tool_search";
  execution: "client";
  description: string;
  parameters: { [key: string]: unknown };
}

type OutputPart = { type: "input_text"; text: string } | { type: "input_image"; image_url: string; detail: "auto" };

export interface FunctionCallOutput {
  type: "function_call_output";
  call_id: string;
  output: string | OutputPart[];
}

/** A model's question to `tool_search`. */
export type SearchReading =
  | { readonly ok: true; readonly callId: string; readonly intent: string }
  | { readonly ok: false; readonly problem: CallProblem };

/** Tools for OpenAI's Responses: as functions from the start, or found through `tool_search`. */
export class OpenAiResponsesTools extends Toolbox {
  /** For the request's `tools`. */
  readonly tools: ResponsesTool[];

  constructor(tools: readonly ToolInput[], options: OpenAiOptions = {}) {
    super(tools, takes(options), options);
    this.tools = this.exported.map((tool) => responsesTool(tool));
  }

  /** For the request's `tools`, in place of the functions: the model asks, the caller finds. */
  searchTool(description: string): ResponsesSearchTool {
    return {
      type: "tool_search",
      execution: "client",
      description,
      parameters: {
        type: "object",
        properties: { intent: { type: "string", description: "What is to be done, in a sentence or two." } },
        required: ["intent"],
        additionalProperties: false,
      },
    };
  }

  /** Reads a `tool_search_call` item that the client is to answer. */
  readSearch(item: unknown): SearchReading {
    const callId = idOf(item, "call_id");
    const refused = (message: string): SearchReading => ({
      ok: false,
      problem: { reason: "NOT_A_CALL", message, name: "tool_search", callId, nearest: [] },
    });
    if (!isObject(item) || item["type"] !== "tool_search_call") return refused("this is no tool_search_call");
    if (callId === "") return refused("the tool_search_call has no call_id: the server answered it itself");
    const args = parsed(item["arguments"]);
    const intent = isObject(args) ? args["intent"] : undefined;
    if (typeof intent !== "string" || intent.trim() === "")
      return refused('the tool_search_call needs {"intent": "what is to be done"}');
    return { ok: true, callId, intent };
  }

  /** The item that answers a `tool_search_call`: the tools named, as far as they are exported. */
  searchOutput(callId: string, toolIds: readonly string[]) {
    return {
      type: "tool_search_output" as const,
      execution: "client" as const,
      call_id: callId,
      status: "completed" as const,
      tools: this.pick(toolIds).map((tool) => responsesTool(tool, true)),
    };
  }

  /** One `function_call` item. */
  readCall(item: unknown): CallReading {
    if (!isObject(item) || item["type"] !== "function_call")
      return notACall("it is no function_call item", idOf(item, "call_id"));
    return this.read({ name: item["name"], callId: item["call_id"], input: item["arguments"] });
  }

  /** The item that answers a call. */
  result(call: Pick<ToolCall, "callId">, result: ToolResult): FunctionCallOutput {
    const parts = partsOf(result);
    const output = parts.some((part) => part.kind === "image")
      ? parts.map(
          (part): OutputPart =>
            part.kind === "text"
              ? { type: "input_text", text: part.text }
              : { type: "input_image", image_url: `data:${part.mimeType};base64,${part.data}`, detail: "auto" },
        )
      : failureText(result, textOf(result));
    return { type: "function_call_output", call_id: call.callId, output };
  }

  /** The item that tells the model what was wrong with its call. */
  problem(problem: CallProblem): FunctionCallOutput {
    return { type: "function_call_output", call_id: problem.callId, output: `Error: ${problem.message}` };
  }
}

function takes(options: OpenAiOptions) {
  return {
    form: { kind: "full" as const, strict: options.strict ?? "auto" },
    most: MOST_TOOLS,
    descriptionLength: DESCRIPTION_LENGTH,
  };
}

function responsesTool(tool: ExportedTool, deferred = false): ResponsesTool {
  const { name, description, schema, strict } = tool;
  return { type: "function", name, description, parameters: schema, strict, ...(deferred ? { defer_loading: true } : {}) };
}

/** OpenAI has no mark for a failed call, so its text says so. */
function failureText(result: ToolResult, text: string): string {
  return isFailure(result) && !/^error\b/i.test(text) ? `Error: ${text}` : text;
}

function idOf(item: unknown, key: string): string {
  const id = isObject(item) ? item[key] : undefined;
  return typeof id === "string" ? id : "";
}

function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as JsonObject;
  } catch {
    return undefined;
  }
}
