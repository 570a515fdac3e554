/** A real HTTP endpoint that speaks as OpenAI-compatible ones do, and answers as a test says. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Asked {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: { readonly model: string; readonly messages: readonly { readonly role: string; readonly content: string }[]; readonly [more: string]: unknown };
  readonly system: string;
  readonly user: string;
}

/** A text is the model's message; a function writes the response itself. */
export type Reply = string | ((response: ServerResponse, asked: Asked) => void);

export interface ChatEndpoint {
  /** `http://127.0.0.1:port/v1` */
  readonly url: string;
  readonly asked: Asked[];
  /** What comes next; by default what was said last. */
  reply: (asked: Asked, turn: number) => Reply;
  /** Requests whose connection the client has ended before they were answered. */
  readonly left: { count: number };
}

/** Closed when the test ends. */
export async function startChat(reply: ChatEndpoint["reply"]): Promise<ChatEndpoint> {
  const asked: Asked[] = [];
  const left = { count: 0 };
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    response.on("close", () => void (response.writableFinished || left.count++));
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(parts).toString()) as Asked["body"];
      const of = (role: string) => body.messages.find((m) => m.role === role)?.content ?? "";
      const one: Asked = { path: request.url ?? "", headers: request.headers, body, system: of("system"), user: of("user") };
      asked.push(one);
      const said = endpoint.reply(one, asked.length - 1);
      if (typeof said === "function") return said(response, one);
      send(response, said);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint: ChatEndpoint = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked, reply, left };
  return endpoint;
}

export function send(response: ServerResponse, content: unknown, usage?: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content } }], ...(usage && { usage }) }));
}

export function raw(status: number, body: string, headers: Record<string, string> = {}): (response: ServerResponse) => void {
  return (response) => response.writeHead(status, headers).end(body);
}
