/** What an MCP server really sends, asked without any of our code. */

const MODERN = "2026-07-28";
const META = { "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {} };

interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: number;
  readonly method: string;
  readonly params?: object;
}

/**
 * name → the tool's text, for servers that serialise with JSON.stringify (each SDK server does): parsing and writing such
 * a text again gives the same bytes as long as no key looks like a number.
 */
export async function listedTexts(url: string, era: "legacy" | "modern"): Promise<Map<string, string>> {
  const session = era === "legacy" ? await initialize(url) : {};
  const params = era === "modern" ? { _meta: META } : {};
  const { result } = await post(url, { jsonrpc: "2.0", id: 2, method: "tools/list", params }, session, era);
  const { tools } = result as { tools: { name: string }[] };
  return new Map(tools.map((t) => [t.name, JSON.stringify(t)]));
}

async function initialize(url: string): Promise<Record<string, string>> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const answer = await send(url, { jsonrpc: "2.0", id: 1, method: "initialize", params }, {}, "legacy");
  await answer.text();
  const session = {
    "mcp-session-id": answer.headers.get("mcp-session-id") ?? "",
    "mcp-protocol-version": "2025-11-25",
  };
  await send(url, { jsonrpc: "2.0", method: "notifications/initialized" }, session, "legacy");
  return session;
}

async function post(
  url: string,
  body: Message,
  headers: Record<string, string>,
  era: "legacy" | "modern",
): Promise<{ result: unknown }> {
  const text = await (await send(url, body, headers, era)).text();
  const data = text.startsWith("{")
    ? text
    : text
        .split("\n")
        .find((line) => line.startsWith("data: {"))
        ?.slice(6);
  return JSON.parse(data ?? "") as { result: unknown };
}

function send(
  url: string,
  body: Message,
  headers: Record<string, string>,
  era: "legacy" | "modern",
): Promise<Response> {
  const modern: Record<string, string> =
    era === "modern" ? { "mcp-protocol-version": MODERN, "mcp-method": body.method } : {};
  const all = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    ...modern,
    ...headers,
  };
  return fetch(url, { method: "POST", headers: all, body: JSON.stringify(body) });
}
