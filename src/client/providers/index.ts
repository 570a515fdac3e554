/** `toolcrib/providers`: tools in the terms of model providers, and their calls back in the registry's. */
export type { AnthropicOptions, AnthropicReferences, AnthropicResult, AnthropicTool } from "./anthropic.js";
export { AnthropicTools } from "./anthropic.js";
export type { CallProblem, CallProblemReason, CallReading, ToolCall } from "./calls.js";
export type { ExportedTool, Strictness } from "./export-tool.js";
export type { GeminiFunction, GeminiOptions, GeminiResult } from "./gemini.js";
export { GeminiTools } from "./gemini.js";
export type { Json, JsonObject } from "./json.js";
export { NAME_LENGTH, NAME_PATTERN, nameTools } from "./names.js";
export type {
  ChatTool,
  FunctionCallOutput,
  OpenAiOptions,
  ResponsesSearchTool,
  ResponsesTool,
  SearchReading,
} from "./openai.js";
export { OpenAiChatTools, OpenAiResponsesTools } from "./openai.js";
export { ReactTools } from "./react.js";
export type { ToolInput } from "./read-tool.js";
export type { Effect, ExportReport, Loss, ToolReport } from "./report.js";
export type { ToolResult } from "./results.js";
export type { ExportOptions } from "./toolbox.js";
