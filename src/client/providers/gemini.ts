import type { CallProblem, CallReading, ToolCall } from "./calls.js";
import { notACall } from "./calls.js";
import { GEMINI_JSON, GEMINI_SUBSET } from "./dialects.js";
import type { ExportedTool } from "./export-tool.js";
import type { JsonObject } from "./json.js";
import { isObject } from "./json.js";
import type { ToolInput } from "./read-tool.js";
import type { ToolResult } from "./results.js";
import { isFailure, textOf } from "./results.js";
import type { ExportOptions } from "./toolbox.js";
import { Toolbox } from "./toolbox.js";

export interface GeminiOptions extends ExportOptions {
  /** `json` writes `parametersJsonSchema`, the default; `subset` writes `parameters`, for APIs that know only that. */
  readonly parameters?: "json" | "subset";
}

export interface GeminiFunction {
  name: string;
  description: string;
  parametersJsonSchema?: unknown;
  /** A `Schema` of the SDK. */
  parameters?: { [key: string]: unknown };
}

export interface GeminiResult {
  functionResponse: { id?: string; name: string; response: { output: unknown } | { error: string } };
}

/** Function declarations for Gemini. */
export class GeminiTools extends Toolbox {
  /** For `config.tools[0].functionDeclarations`. */
  readonly functionDeclarations: GeminiFunction[];

  constructor(tools: readonly ToolInput[], options: GeminiOptions = {}) {
    const subset = options.parameters === "subset";
    const dialect = subset ? GEMINI_SUBSET : GEMINI_JSON;
    const form = { kind: "reduced" as const, dialect, message: subset };
    super(tools, { form, most: Number.POSITIVE_INFINITY, descriptionLength: Number.POSITIVE_INFINITY }, options);
    this.functionDeclarations = this.exported.map((tool) => declaration(tool, subset));
  }

  /** One `functionCall` of a response. */
  readCall(call: unknown): CallReading {
    if (!isObject(call)) return notACall("it is no functionCall");
    return this.read({ name: call["name"], callId: call["id"], input: call["args"] });
  }

  /** The part that answers a call. Images are named in words. */
  result(call: Pick<ToolCall, "callId" | "name">, result: ToolResult): GeminiResult {
    const text = textOf(result);
    if (isFailure(result)) return response(call, { error: text });
    const structured = typeof result === "string" ? undefined : result.structuredContent;
    return response(call, { output: structured ?? text });
  }

  /** The part that tells the model what was wrong with its call. */
  problem(problem: CallProblem): GeminiResult {
    return response(problem, { error: problem.message });
  }
}

/** A function without parameters has none: Gemini refuses an object without properties. */
function declaration(tool: ExportedTool, subset: boolean): GeminiFunction {
  const { name, description, schema } = tool;
  if (!subset) return { name, description, parametersJsonSchema: schema };
  const properties = schema["properties"];
  const empty = !isObject(properties) || Object.keys(properties).length === 0;
  return { name, description, ...(empty ? {} : { parameters: schema as JsonObject }) };
}

function response(call: { callId: string; name: string }, body: { output: unknown } | { error: string }): GeminiResult {
  return { functionResponse: { ...(call.callId === "" ? {} : { id: call.callId }), name: call.name, response: body } };
}
