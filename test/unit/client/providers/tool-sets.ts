import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { ToolInput, ToolReport } from "../../../../src/client/providers/index.js";
import {
  AnthropicTools,
  GeminiTools,
  OpenAiChatTools,
  OpenAiResponsesTools,
  ReactTools,
} from "../../../../src/client/providers/index.js";
import type { Toolbox } from "../../../../src/client/providers/toolbox.js";
import { anthropicProblems, chatProblems, geminiProblems, responsesProblems } from "./provider-rules.js";

const FIXTURES = new URL("../../../fixtures/corpus/", import.meta.url);
/** The harvested listings lie beside the repository, where there are any. */
export const CORPUS = new URL("../../../../../shared/corpus/mcp-servers/", import.meta.url);
export const hasCorpus = existsSync(CORPUS);
if (!hasCorpus) process.stderr.write(`providers: the whole corpus is skipped, there is no ${CORPUS.pathname}\n`);

export function listings(folder: URL): ToolInput[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .sort()
    .flatMap((file) => {
      const { server, tools } = JSON.parse(readFileSync(new URL(file, folder), "utf8"));
      return tools.map((tool: { name: string }) => ({
        toolId: `${server}/${tool.name}`,
        definition: Buffer.from(JSON.stringify(tool)),
      }));
    });
}

export const fixtureTools = () => listings(FIXTURES);
export const corpusTools = () => listings(CORPUS);

export function tool(toolId: string, inputSchema: object, more: object = {}): ToolInput {
  return { toolId, definition: { name: toolId.split("/")[1], description: "Does it.", inputSchema, ...more } };
}

export interface Exported {
  readonly box: Toolbox;
  /** What the provider would refuse. */
  readonly problems: string[];
  /** A call as this provider would send it, read. */
  readonly read: (name: string, args: object) => ReturnType<Toolbox["read"]>;
}

const most = Number.POSITIVE_INFINITY;

/** Every form in which tools can be exported, with its rules. */
export const EXPORTS: Record<string, (tools: readonly ToolInput[]) => Exported> = {
  "openai-chat": (tools) => chat(new OpenAiChatTools(tools, { most })),
  "openai-chat, not strict": (tools) => chat(new OpenAiChatTools(tools, { most, strict: "off" })),
  "openai-chat, exactly strict": (tools) => chat(new OpenAiChatTools(tools, { most, strict: "exact" })),
  "openai-responses": (tools) => {
    const box = new OpenAiResponsesTools(tools, { most });
    const found = box.searchOutput("s", box.exported.map((t) => t.toolId)).tools;
    return {
      box,
      problems: [...responsesProblems(box.tools), ...responsesProblems(found)],
      read: (name, args) =>
        box.readCall({ type: "function_call", name, call_id: "c", arguments: JSON.stringify(args) }),
    };
  },
  anthropic: (tools) => {
    const box = new AnthropicTools(tools, { defer: "all" });
    return {
      box,
      problems: anthropicProblems(box.tools),
      read: (name, args) => box.readCall({ type: "tool_use", id: "c", name, input: args }),
    };
  },
  "gemini-json": (tools) => gemini(new GeminiTools(tools)),
  "gemini-subset": (tools) => gemini(new GeminiTools(tools, { parameters: "subset" })),
  react: (tools) => {
    const box = new ReactTools(tools);
    return {
      box,
      problems: [],
      read: (name, args) => box.readCall(`Thought: so\nAction: ${name}\nAction Input: ${JSON.stringify(args)}\nObservation:`),
    };
  },
};

function chat(box: OpenAiChatTools): Exported {
  return {
    box,
    problems: chatProblems(box.tools),
    read: (name, args) =>
      box.readCall({ id: "c", type: "function", function: { name, arguments: JSON.stringify(args) } }),
  };
}

function gemini(box: GeminiTools): Exported {
  return {
    box,
    problems: geminiProblems(box.functionDeclarations),
    read: (name, args) => box.readCall({ id: "c", name, args }),
  };
}

export function lossesOf(report: ToolReport | undefined): string[] {
  return report?.outcome === "lossy" ? report.losses.map((loss) => `${loss.effect} ${loss.at}: ${loss.what}`) : [];
}
