/** An MCP server of 2026-07-28 that wants a credential. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface GuardedServer {
  readonly url: string;
  readonly port: number;
  /** Headers of every request, by its method. */
  readonly seen: { readonly method: string; readonly headers: IncomingHttpHeaders }[];
  /** What it wants to see in `authorization`; empty = nothing. */
  wants: string;
  cacheScope: string | undefined;
  /** How it behaves towards whom it knows. */
  manner: "well" | "repeats the credential" | "redirects";
  /** Where it redirects to. */
  elsewhere: string;
  /** Status for whom it does not know. */
  refuses: number;
  /** Sends a notice on every open stream. */
  notify(): void;
}

/** Closed when the test ends. */
export async function startGuarded(wants: string): Promise<GuardedServer> {
  const streams = new Set<(message: object) => void>();
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const call = JSON.parse(Buffer.concat(chunks).toString() || "{}") as { id?: number; method?: string };
      const { id, method = "" } = call;
      guarded.seen.push({ method, headers: request.headers });
      const json = (status: number, body: object) =>
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
      const shown = request.headers.authorization ?? "";
      if (guarded.wants !== "" && shown !== guarded.wants) {
        return json(guarded.refuses, { error: { code: -32_000, message: `who are you? ${shown}` } });
      }
      if (guarded.manner === "redirects") return response.writeHead(307, { location: guarded.elsewhere }).end();
      if (guarded.manner === "repeats the credential") return json(200, { error: { code: -32_000, message: `hello ${shown}` } });
      if (method === "server/discover") {
        const capabilities = { tools: { listChanged: true } };
        return json(200, { result: { supportedVersions: ["2026-07-28"], capabilities, resultType: "complete" } });
      }
      if (method === "subscriptions/listen") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const say = (message: object) => response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
        say({ method: "notifications/subscriptions/acknowledged", params: { notifications: { toolsListChanged: true } } });
        streams.add(say);
        return response.on("close", () => streams.delete(say));
      }
      const tools = [{ name: "guarded_tool", description: "Behind the door", inputSchema: { type: "object" } }];
      return json(200, { result: { resultType: "complete", tools, ...(guarded.cacheScope && { cacheScope: guarded.cacheScope }) } });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const guarded: GuardedServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    seen: [],
    wants,
    cacheScope: undefined,
    manner: "well",
    elsewhere: "",
    refuses: 401,
    notify() {
      for (const say of streams) say({ method: "notifications/tools/list_changed" });
    },
  };
  return guarded;
}
