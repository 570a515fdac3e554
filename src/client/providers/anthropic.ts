import type { CallProblem, CallReading, ToolCall } from "./calls.js";
import { notACall } from "./calls.js";
import { ANTHROPIC_KEYS } from "./dialects.js";
import { isObject } from "./json.js";
import type { ToolInput } from "./read-tool.js";
import type { ResultPart, ToolResult } from "./results.js";
import { isFailure, partsOf } from "./results.js";
import type { ExportOptions } from "./toolbox.js";
import { Toolbox } from "./toolbox.js";

/** Deferred tools of one request. */
const MOST_TOOLS = 10_000;

export interface AnthropicOptions extends ExportOptions {
  /**
   * Tools that stay out of the prompt until a `tool_reference` names them. At least one tool of a request, the one that
   * finds the others, must not be deferred. The default is none.
   */
  readonly defer?: "all" | "none";
}

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: "object"; [key: string]: unknown };
  defer_loading?: boolean;
}

type ImageType = "image/jpeg" | "image/png" | "image/gif" | "image/webp";
const IMAGE_TYPES: ReadonlySet<string> = new Set<ImageType>(["image/jpeg", "image/png", "image/gif", "image/webp"]);

type ContentBlock =
  | { type: "text"; text: string }
  | { type: "image"; source: { type: "base64"; media_type: ImageType; data: string } };

export interface AnthropicResult {
  type: "tool_result";
  tool_use_id: string;
  content: ContentBlock[];
  is_error: boolean;
}

export interface AnthropicReferences {
  type: "tool_result";
  tool_use_id: string;
  content: { type: "tool_reference"; tool_name: string }[];
}

/** Tools for Anthropic's Messages: in the prompt from the start, or deferred and brought in by reference. */
export class AnthropicTools extends Toolbox {
  /** For the request's `tools`. */
  readonly tools: AnthropicTool[];

  constructor(tools: readonly ToolInput[], options: AnthropicOptions = {}) {
    const form = { kind: "full" as const, keys: ANTHROPIC_KEYS, strict: "off" as const };
    super(tools, { form, most: MOST_TOOLS, descriptionLength: Number.POSITIVE_INFINITY }, options);
    this.tools = this.exported.map(({ name, description, schema }) => ({
      name,
      description,
      input_schema: { ...schema, type: "object" },
      ...(options.defer === "all" ? { defer_loading: true } : {}),
    }));
  }

  /** One `tool_use` block. */
  readCall(block: unknown): CallReading {
    if (!isObject(block) || block["type"] !== "tool_use") return notACall("it is no tool_use block");
    return this.read({ name: block["name"], callId: block["id"], input: block["input"] });
  }

  /** The block that answers a call. */
  result(call: Pick<ToolCall, "callId">, result: ToolResult): AnthropicResult {
    return {
      type: "tool_result",
      tool_use_id: call.callId,
      content: partsOf(result).map(blockOf),
      is_error: isFailure(result),
    };
  }

  /** The block that tells the model what was wrong with its call. */
  problem(problem: CallProblem): AnthropicResult {
    const content: ContentBlock[] = [{ type: "text", text: problem.message }];
    return { type: "tool_result", tool_use_id: problem.callId, content, is_error: true };
  }

  /** The block that answers a search with deferred tools, as far as they are exported: they enter the prompt. */
  references(callId: string, toolIds: readonly string[]): AnthropicReferences {
    const content = this.pick(toolIds).map(({ name }) => ({ type: "tool_reference" as const, tool_name: name }));
    return { type: "tool_result", tool_use_id: callId, content };
  }
}

function blockOf(part: ResultPart): ContentBlock {
  if (part.kind === "text") return { type: "text", text: part.text };
  if (!IMAGE_TYPES.has(part.mimeType)) return { type: "text", text: `[image, ${part.mimeType}, not shown]` };
  return { type: "image", source: { type: "base64", media_type: part.mimeType as ImageType, data: part.data } };
}
