/** The scripted agent: an official MCP client, and somebody who counts what a model would read of it. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { ListedTool } from "./listings.js";
import { tokensOf, toolTokens } from "./tokens.js";

export interface Answer {
  readonly text: string;
  readonly isError: boolean;
  /** Of the call and its answer, which stay in the conversation. */
  readonly tokens: number;
}

export class ScriptedAgent {
  /** `tools/list_changed` so far. */
  changes = 0;
  readonly #client: Client;

  /** `sessions` speaks 2025-11-25, in which lists may change; `2026-07-28` the newest revision. */
  private constructor(era: "sessions" | "2026-07-28") {
    this.#client = new Client(
      { name: "scripted-agent", version: "1.0.0" },
      {
        ...(era === "2026-07-28" && { versionNegotiation: { mode: "auto" as const } }),
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void this.changes++ } },
      },
    );
  }

  static async connect(url: string, era: "sessions" | "2026-07-28"): Promise<ScriptedAgent> {
    const agent = new ScriptedAgent(era);
    await agent.#client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return agent;
  }

  async list(): Promise<{ readonly tools: readonly ListedTool[]; readonly tokens: number }> {
    const { tools } = await this.#client.listTools();
    return { tools, tokens: toolTokens(tools) };
  }

  async call(name: string, args: Record<string, unknown>): Promise<Answer> {
    const { content, isError } = await this.#client.callTool({ name, arguments: args });
    const text = (content as { text?: string }[]).map((part) => part.text ?? "").join("\n");
    return { text, isError: isError === true, tokens: tokensOf(JSON.stringify({ name, arguments: args })) + tokensOf(text) };
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}
