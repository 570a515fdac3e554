/** An OpenAI-compatible `/embeddings` endpoint on a real socket. It knows a few words of several languages that mean one thing. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

/** Words of one line mean one thing. */
const CONCEPTS = [
  "forecast weather rain umbrella sunny 天气 погода",
  "invoice bill payment owe money 发票 счёт",
  "order purchase procurement buy",
  "deploy release rollout ship production",
  "calendar meeting appointment schedule",
].map((line) => line.split(" "));
const DIMENSIONS = CONCEPTS.length + 3;

export interface Asked {
  readonly texts: readonly string[];
  readonly authorization: string | undefined;
  readonly model: string;
}

export interface EmbeddingsServer {
  /** The base, as `--embedder` takes it. */
  readonly url: string;
  readonly asked: readonly Asked[];
  /** How it answers from now on; undefined: well. */
  behave(answer: ((texts: readonly string[], response: ServerResponse) => void) | undefined): void;
}

/** Gone when the test ends. */
export async function startEmbeddings(): Promise<EmbeddingsServer> {
  const asked: Asked[] = [];
  let answer: Parameters<EmbeddingsServer["behave"]>[0];
  const server = createServer((request: IncomingMessage, response) => {
    void (async () => {
      const { input, model } = JSON.parse(await text(request)) as { input: string[]; model: string };
      asked.push({ texts: input, authorization: request.headers.authorization, model });
      if (request.url !== "/v1/embeddings") return send(response, 404, { error: "no such path" });
      return answer ? answer(input, response) : send(response, 200, { data: good(input) });
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, asked, behave: (next) => (answer = next) };
}

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** In reverse, as an endpoint may: the index says whose a vector is. */
export function good(texts: readonly string[]): object[] {
  return texts.map((said, index) => ({ object: "embedding", index, embedding: vectorOf(said) })).reverse();
}

export function vectorOf(said: string): number[] {
  const lower = said.toLowerCase();
  const vector = CONCEPTS.map((words) => words.filter((word) => lower.includes(word)).length);
  return [...vector, 0.1, (lower.length % 7) / 100, 0.05].map((value) => value / DIMENSIONS);
}
