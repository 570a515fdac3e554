import type { Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";
import { SAMPLE_TOOLS } from "./tools.js";

/**
 * A small MCP server on stdio, for trying things out without a network. It speaks the session eras and 2026-07-28 on one
 * connection, which is possible because it keeps no state at all.
 */

const MODERN = "2026-07-28";
const SESSION_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const SERVER_INFO = { name: "toolcrib-sample", title: "Toolcrib sample", version: "1.0.0" };
const CAPABILITIES = { tools: {} };
const INSTRUCTIONS = "Small, exact helpers for units, dates and text.";

class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** Serves until the input ends or `ending` is aborted. */
export async function serveSample(input: Readable, output: Writable, ending: AbortSignal): Promise<void> {
  const lines = createInterface({ input, signal: ending });
  for await (const text of lines) {
    const answer = answerTo(text);
    if (answer) output.write(`${JSON.stringify(answer)}\n`);
  }
}

function answerTo(text: string): Fields | undefined {
  if (text.trim() === "") return undefined;
  let request: Fields;
  try {
    request = fieldsOf(JSON.parse(text));
  } catch {
    return { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } };
  }
  const { id, method } = request;
  if (id === undefined || typeof method !== "string") return undefined;
  try {
    return { jsonrpc: "2.0", id, result: handle(method, fieldsOf(request["params"])) };
  } catch (error) {
    const { code, message, data } = error instanceof RpcError ? error : new RpcError(-32603, "Internal error");
    return { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } };
  }
}

function handle(method: string, params: Fields): Fields {
  const revision = fieldsOf(params["_meta"])["io.modelcontextprotocol/protocolVersion"];
  const modern = revision !== undefined || method === "server/discover";
  if (revision !== undefined && revision !== MODERN) {
    throw new RpcError(-32022, "Unsupported protocol version", { supported: [MODERN], requested: revision });
  }
  switch (method) {
    case "initialize":
      return initialize(params);
    case "ping":
      return {};
    case "server/discover":
      return cached({ supportedVersions: [MODERN], capabilities: CAPABILITIES, instructions: INSTRUCTIONS });
    case "tools/list": {
      const tools = SAMPLE_TOOLS.map((tool) => tool.definition);
      return modern ? cached({ tools }) : { tools };
    }
    case "tools/call":
      return modern ? complete(call(params)) : call(params);
    default:
      throw new RpcError(-32601, "Method not found");
  }
}

function initialize(params: Fields): Fields {
  const wanted = params["protocolVersion"];
  const protocolVersion = SESSION_VERSIONS.find((version) => version === wanted) ?? SESSION_VERSIONS[0];
  return { protocolVersion, capabilities: CAPABILITIES, serverInfo: SERVER_INFO, instructions: INSTRUCTIONS };
}

function call(params: Fields): Fields {
  const tool = SAMPLE_TOOLS.find((candidate) => candidate.definition.name === params["name"]);
  if (!tool) throw new RpcError(-32602, `Unknown tool: ${String(params["name"])}`);
  try {
    return { content: [{ type: "text", text: tool.run(fieldsOf(params["arguments"])) }] };
  } catch (error) {
    return { content: [{ type: "text", text: error instanceof Error ? error.message : String(error) }], isError: true };
  }
}

function complete(result: Fields): Fields {
  return { resultType: "complete", ...result, _meta: { "io.modelcontextprotocol/serverInfo": SERVER_INFO } };
}

/** Nothing here ever changes, and it is the same for everybody. */
function cached(result: Fields): Fields {
  return { ...complete(result), ttlMs: 3_600_000, cacheScope: "public" };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
