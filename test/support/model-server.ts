/** An OpenAI-compatible endpoint on loopback whose answers a test chooses. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface ModelRequest {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: { readonly model: string; readonly messages: readonly { readonly role: string; readonly content: string }[]; readonly response_format?: object };
}

export interface ModelServer {
  /** The base, with `/v1`. */
  readonly url: string;
  readonly requests: ModelRequest[];
  /** What it does from now on. */
  behave(behaviour: Behaviour): void;
}

/** A text is the content of a choice; a function answers by itself. */
export type Behaviour = (request: ModelRequest, response: ServerResponse) => string | undefined;

/** Closed when the test ends, with every connection. */
export async function startModel(first: Behaviour): Promise<ModelServer> {
  let behaviour = first;
  const requests: ModelRequest[] = [];
  const server = createServer((incoming, response) => void answer(incoming, response));
  const answer = async (incoming: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    const request = { path: incoming.url ?? "", authorization: incoming.headers.authorization, body: JSON.parse(Buffer.concat(parts).toString()) as ModelRequest["body"] };
    requests.push(request);
    const content = behaviour(request, response);
    if (content === undefined) return;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content } }] }));
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, requests, behave: (next) => void (behaviour = next) };
}

export function status(code: number, headers: Record<string, string> = {}): Behaviour {
  return (_request, response) => {
    response.writeHead(code, headers);
    response.end("{}");
    return undefined;
  };
}
