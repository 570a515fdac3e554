/**
 * An MCP server of the official SDK (v2, both eras) that offers a harvested listing. Behind a tool stands nothing of the real service: a call is
 * answered with what was called.
 *
 *   node listing-server.mjs FILE            over HTTP; prints {"url": …} on one line
 *   node listing-server.mjs FILE --stdio
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { announce } from "./announce.mjs";

const [file, how] = process.argv.slice(2);
const { serverInfo, instructions, tools } = JSON.parse(readFileSync(file, "utf8"));

function build() {
  const server = new Server(serverInfo, { capabilities: { tools: {} }, ...(instructions && { instructions }) });
  server.setRequestHandler("tools/list", async () => ({ tools }));
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: args = {} } }) => {
    const text = tools.some((tool) => tool.name === name) ? `${name} was called with ${JSON.stringify(args)}` : `there is no tool ${name}`;
    return { content: [{ type: "text", text }] };
  });
  return server;
}

if (how === "--stdio") serveStdio(build);
else announce(createServer(toNodeHandler(createMcpHandler(build))));
