/**
 * An MCP server over Streamable HTTP that registers itself: the official SDK, and the three lines of toolcrib/registrar.
 *
 *   PORT         where it listens (3001)
 *   ENDPOINT     the URL at which others reach it (http://127.0.0.1:$PORT/mcp)
 *   TOOLCRIB_URL, TOOLCRIB_TOKEN_FILE   the registry, and the right to register there
 */
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { registerServer } from "toolcrib/registrar";
import { z } from "zod";

const port = Number(process.env.PORT ?? 3001);
const endpoint = process.env.ENDPOINT ?? `http://127.0.0.1:${port}/mcp`;

function build() {
  const server = new McpServer({ name: "clock", version: "1.0.0" }, { capabilities: { tools: { listChanged: true } } });
  server.registerTool(
    "time_now",
    {
      title: "Current time",
      description: "Tells the current date and time in a time zone. Use it when an answer depends on today.",
      inputSchema: z.object({ time_zone: z.string().default("UTC").describe("An IANA name, such as Europe/Berlin") }),
      annotations: { readOnlyHint: true },
    },
    ({ time_zone }) => text(inZone(new Date(), time_zone)),
  );
  server.registerTool(
    "time_convert",
    {
      title: "Convert a time",
      description: "Converts a moment, given in ISO 8601 with its offset, to another time zone.",
      inputSchema: z.object({
        moment: z.iso.datetime({ offset: true }).describe("Such as 2027-03-01T09:30:00+01:00"),
        time_zone: z.string().describe("An IANA name, such as Asia/Tokyo"),
      }),
      annotations: { readOnlyHint: true },
    },
    ({ moment, time_zone }) => text(inZone(new Date(moment), time_zone)),
  );
  return server;
}

function inZone(moment, timeZone) {
  return new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long", timeZone }).format(moment);
}

const text = (line) => ({ content: [{ type: "text", text: line }] });

// A handler makes a server for each session or call; the one that is registered only says what all of them offer.
const serve = toNodeHandler(createMcpHandler(build));
createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/mcp") return serve(request, response);
  response.writeHead(pathname === "/healthz" ? 200 : 404, { "content-type": "text/plain" });
  response.end(pathname === "/healthz" ? "ok\n" : "The endpoint is /mcp.\n");
}).listen(port, () => process.stdout.write(`clock is served at ${endpoint}\n`));

registerServer(build(), {
  serverId: "clock",
  endpoint,
  title: "Clock",
  tags: ["time"],
  onEvent: (event) => process.stdout.write(`${describe(event)}\n`),
});

function describe(event) {
  if (event.type === "registered") return `${event.listed} tools are registered`;
  return event.error ? `${event.type}: ${event.error.message}` : event.type;
}
