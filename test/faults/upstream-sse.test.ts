/** Servers of HTTP+SSE that go wrong, or want too much. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { UpstreamError } from "../../src/catalogue/upstream-port.js";
import type { Transport } from "../../src/domain/server.js";
import { LIMITS } from "../../src/domain/limits.js";
import { startDns } from "../support/dns.js";
import { FakeClock } from "../support/fake-clock.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually, failureOf, soon, startUpstream } from "../support/upstream.js";

const start = (...args: string[]) => startFixture("sse-server.mjs", args);
const posts = async (server: Fixture, path = "") =>
  (await server.requests()).filter(({ http, method }) => http === "POST" && (method ?? "").includes(path));

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly result?: unknown;
}

interface RawServer {
  readonly url: string;
  /** Messages that were posted. */
  readonly posted: Message[];
}

/** A server written onto node:http, for what the official SDK never does. `answer` gives the text for a posted message. */
async function startRaw(
  answer: (message: Message, say: (text: string) => void, response: ServerResponse) => void,
  opening = "event: endpoint\ndata: /post?session=1\n\n",
): Promise<RawServer> {
  const posted: Message[] = [];
  let stream: ServerResponse | undefined;
  const say = (text: string) => void stream?.write(`data: ${text.replaceAll("\n", "\ndata: ")}\n\n`);
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.method === "GET") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(opening.replaceAll("HOST", request.headers.host ?? ""));
      return;
    }
    if (request.url !== "/post?session=1") return void response.writeHead(404).end();
    const message = JSON.parse(Buffer.concat(parts).toString()) as Message;
    posted.push(message);
    answer(message, say, response);
    if (!response.writableEnded) response.writeHead(202).end();
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`, posted };
}

const INITIALIZED = { protocolVersion: "2024-11-05", capabilities: { tools: { listChanged: true } }, serverInfo: { name: "raw", version: "1" } };
const resultOf = (id: unknown, result: unknown) => JSON.stringify({ jsonrpc: "2.0", id, result });
const ODD = '{ "name" : "odd",\n  "inputSchema": {"type":"object"}, "big": 9007199254740993,  "2": 1, "1": 2 }';
const oddList = (id: unknown) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[${ODD}]}}`;

/** Answers `initialize` well, and the rest as told. */
const then =
  (rest: (message: Message, say: (text: string) => void, response: ServerResponse) => void) =>
  (message: Message, say: (text: string) => void, response: ServerResponse): void => {
    if (message.method === "initialize") say(resultOf(message.id, INITIALIZED));
    else rest(message, say, response);
  };
const listing = then(({ id, method }, say) => {
  if (method === "tools/list") say(oddList(id));
});

const list = (url: string, signal = soon(), transport: Transport = "http-sse") =>
  startUpstream().list(url, signal, undefined, transport);

it("a definition keeps its bytes, over lines of data and beyond what a double holds", async () => {
  const server = await startRaw(listing);
  const { tools, protocolVersion } = await list(server.url);
  expect(protocolVersion).toBe("2024-11-05");
  expect(tools.map(({ definition }) => Buffer.from(definition).toString())).toEqual([ODD]);
});

it("an answer that comes before its 202 counts, and a request that gets none is let go", async () => {
  let closed = false;
  const server = await startRaw((message, say, response) => {
    listing(message, say, response);
    if (message.method !== "tools/list") return;
    response.on("close", () => (closed = true));
    // Nothing of the 202 is sent.
    response.writeHead = (() => ({ end: () => undefined })) as never;
  });
  const upstream = startUpstream();
  expect((await upstream.list(server.url, soon(), undefined, "http-sse")).tools).toHaveLength(1);
  await eventually(() => closed, (is) => is);
});

describe("an endpoint event that names another origin is refused, and nothing is posted", () => {
  const foreign: [string, string][] = [
    ["another host", "http://127.0.0.2:3999/messages"],
    ["another host, without a scheme", "//metadata.google.internal/computeMetadata"],
    ["another port", "http://127.0.0.1:3998/messages"],
    ["another scheme", "https://HOST/messages"],
    ["no HTTP at all", "file:///etc/passwd"],
    ["a disguise", "blob:http://HOST/messages"],
  ];
  it.each(foreign)("%s", async (_what, named) => {
    const server = await startRaw(listing, `event: endpoint\ndata: ${named}\n\n`);
    const error = await failureOf(list(server.url));
    expect(error).toMatchObject({ kind: "protocol", message: expect.stringContaining("posted to its own origin alone") });
    expect(server.posted).toEqual([]);
  });

  it("also where the transport was found out", async () => {
    const other = await start();
    const server = await start("--endpoint", new URL("/messages", other.url).href);
    const error = await failureOf(list(server.url, soon(), "streamable-http"));
    expect(error.message).toContain(`wants messages to be posted to ${new URL(other.url).origin}`);
    expect(await other.requests()).toEqual([]);
    expect((await posts(server)).map(({ method }) => method)).toEqual(["server/discover", "initialize"]);
  });

  it.each(["http://HOST/post?session=1", "/post?session=1", "post?session=1"])("%s is its own", async (named) => {
    const server = await startRaw(listing, `event: endpoint\ndata: ${named}\n\n`);
    expect((await list(server.url)).tools).toHaveLength(1);
  });

  it("what is no URL, or one with a name and a password, is not told on", async () => {
    const broken = await startRaw(listing, `event: endpoint\ndata: http://[s3cret\n\n`);
    expect(await failureOf(list(broken.url))).toMatchObject({ kind: "protocol", message: expect.not.stringContaining("s3cret") });
    const named = await startRaw(listing, `event: endpoint\ndata: http://me:s3cret@HOST/post?session=1\n\n`);
    expect(await failureOf(list(named.url))).toMatchObject({ kind: "egress", message: expect.not.stringContaining("s3cret") });
    expect(named.posted).toEqual([]);
  });
});

describe("a server that keeps us waiting", () => {
  it("with the place to post to: the caller's deadline ends it", async () => {
    const error = await failureOf(list((await start("--mute")).url, AbortSignal.timeout(500)));
    expect(error.kind).toBe("timeout");
  });

  it("with the place to post to: our own deadline ends it, and the stream is closed", async () => {
    const server = await start("--mute");
    const clock = new FakeClock();
    let error: UpstreamError | undefined;
    const asked = startUpstream(clock).list(server.url, soon(), undefined, "http-sse");
    void failureOf(asked).then((found) => (error = found));
    await eventually(
      async () => (await clock.advance(1_000), error),
      (found) => found !== undefined,
    );
    expect(error?.message).toMatch(/opened an event stream and did not say in time where messages are to be posted/);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(LIMITS.loadMs);
    await eventually(() => server.control({ op: "streams" }), ({ streams }) => streams === 0);
  });

  it("with the place to post to, and was not known to be one of HTTP+SSE: what it refused first is told", async () => {
    const error = await failureOf(list((await start("--mute")).url, soon(), "streamable-http"));
    expect(error).toMatchObject({ kind: "http", message: expect.stringContaining("answered initialize with HTTP 404") });
  });

  it("with its list: the stream is given up, and the next listing opens another", async () => {
    const server = await start("--silent-list");
    const upstream = startUpstream();
    for (let i = 0; i < 2; i++) {
      const error = await failureOf(upstream.list(server.url, AbortSignal.timeout(3_000), undefined, "http-sse"));
      expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("tools/list in time") });
      await eventually(() => server.control({ op: "streams" }), ({ streams }) => streams === 0);
    }
    expect((await server.requests()).filter(({ http }) => http === "GET")).toHaveLength(2);
  });
});

describe("a stream that floods", () => {
  it.each(["initialize", "tools/list"])("instead of answering %s is cut off", { timeout: 60_000 }, async (method) => {
    const server = await start("--flood", method);
    const error = await failureOf(list(server.url));
    expect(error).toMatchObject({ kind: "too-large", message: expect.stringContaining(`more than ${LIMITS.upstreamBytes} bytes`) });
    await eventually(() => server.control({ op: "streams" }), ({ streams }) => streams === 0);
  });

  it("by a line without end, before it says anything, is cut off", { timeout: 60_000 }, async () => {
    const server = await startRaw(listing, `data: ${"x".repeat(LIMITS.upstreamBytes + 1)}`);
    expect(await failureOf(list(server.url))).toMatchObject({ kind: "too-large" });
  });
});

describe("a server that answers wrongly is refused with a sentence", () => {
  const wrong: [string, Parameters<typeof then>[0], string, RegExp][] = [
    ["an error", ({ id }, say) => say(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32603, message: "locked" } })), "", /JSON-RPC error -32603: "locked"/],
    ["an error for nobody", (_, say) => say('{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"locked"}}'), "", /tools\/list with JSON-RPC error -32603/],
    ["neither result nor error", ({ id }, say) => say(`{"jsonrpc":"2.0","id":${id}}`), "protocol", /neither result nor error/],
    ["what is no JSON", (_, say) => say("{"), "protocol", /invalid JSON/],
    ["a refused post", (_, __, response) => void response.writeHead(500).end(), "http", /answered tools\/list with HTTP 500/],
    ["a lost session, each time", (_, __, response) => void response.writeHead(404).end(), "http", /answered tools\/list with HTTP 404/],
  ];
  it.each(wrong)("%s", async (_what, answer, kind, sentence) => {
    const server = await startRaw(
      then((message, say, response) => {
        if (message.method === "tools/list") answer(message, say, response);
      }),
    );
    const error = await failureOf(list(`${server.url}?api_key=s3cret`));
    expect(error.message).toMatch(sentence);
    if (kind !== "") expect(error.kind).toBe(kind);
    expect(error.message).not.toContain("s3cret");
  });

  it("and one that is none keeps the sentence of what it was registered as", async () => {
    const server = await start();
    const elsewhere = new URL("/nowhere", server.url).href;
    expect((await failureOf(list(elsewhere, soon(), "streamable-http"))).message).toMatch(/answered initialize with HTTP 404/);
    expect((await failureOf(list(elsewhere))).message).toMatch(/answered the stream of messages with HTTP 404/);
  });
});

it("a server that pings is answered once, whoever hears it, and answers for nobody are passed over", async () => {
  const server = await startRaw(
    then(({ id, method }, say) => {
      if (method !== "tools/list") return;
      say('{"jsonrpc":"2.0","id":"ping-1","method":"ping"}');
      say(resultOf(999, {}));
      say(oddList(id));
    }),
  );
  const upstream = startUpstream();
  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  await upstream.list(server.url, soon(), undefined, "http-sse");
  const pongs = () => server.posted.filter(({ id, result }) => id === "ping-1" && result !== undefined).length;
  await eventually(pongs, (count) => count === 1);
  void upstream.subscribe(server.url, () => undefined, leaving.signal, undefined, "http-sse");
  await upstream.list(server.url, soon(), undefined, "http-sse");
  await eventually(pongs, (count) => count === 2);
  await upstream.list(server.url, soon(), undefined, "http-sse");
  await eventually(pongs, (count) => count === 3);
});

describe("egress", () => {
  it("judges the stream like any request", async () => {
    const error = await failureOf(list("http://169.254.169.254/sse"));
    expect(error).toMatchObject({ kind: "egress", message: expect.stringMatching(/never dialled/) });
  });

  it("judges the post by itself: a name that leads elsewhere by then is not followed", async () => {
    const server = await start();
    let lookups = 0;
    const dns = await startDns({ "old.test": () => (++lookups === 1 ? ["127.0.0.1"] : ["169.254.169.254"]) });
    const upstream = startUpstream(undefined, { resolve: dns.resolve });
    const url = server.url.replace("127.0.0.1", "old.test");
    const error = await failureOf(upstream.list(url, soon(), undefined, "http-sse"));
    expect(error).toMatchObject({ kind: "egress" });
    expect(lookups).toBe(2);
    expect(await posts(server)).toEqual([]);
  });
});
