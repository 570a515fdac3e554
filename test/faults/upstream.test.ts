import { createServer as createHttpServer } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { UpstreamError, UpstreamErrorKind } from "../../src/catalogue/upstream-port.js";
import { LIMITS } from "../../src/domain/limits.js";
import { createEgress } from "../../src/upstream/egress.js";
import { FakeClock } from "../support/fake-clock.js";
import { startFixture } from "../support/servers.js";
import { eventually, failureOf, localPolicy, soon, startUpstream } from "../support/upstream.js";

const eras = ["legacy", "modern"] as const;
const fault = (name: string, ...more: string[]) => startFixture("faulty-server.mjs", ["--fault", name, ...more]);

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

/** Sentences are for operators: they name the server and nothing that could be a secret. */
const refused: [string, UpstreamErrorKind, RegExp][] = [
  ["html", "protocol", /content type "text\/html"; that is no MCP server, or not its path/],
  ["status-500", "http", /answered initialize with HTTP 500/],
  ["unauthorized-401", "auth", /HTTP 401.*asks for credentials/],
  ["redirect", "http", /HTTP 307.*redirects are not followed/],
  ["bad-json", "protocol", /invalid JSON/],
  ["bad-utf8", "protocol", /not UTF-8/],
  ["rpc-error", "rpc", /JSON-RPC error -32603: "database is locked"/],
  ["wrong-id", "protocol", /ended its answer to tools\/list without a result/],
  ["stream-cut", "protocol", /ended its answer to tools\/list without a result/],
  ["not-a-list", "protocol", /page without a list of tools/],
  ["gzip", "protocol", /sent gzip although identity was asked for/],
  ["endless-body", "too-large", new RegExp(`tools/list with more than ${LIMITS.upstreamBytes} bytes`)],
  ["endless-event", "too-large", new RegExp(`more than ${LIMITS.upstreamBytes} bytes`)],
  ["many-tools", "too-large", /lists 10001 tools, the limit is 10000/],
  ["reset", "connect", /closed the connection before it had answered tools\/list/],
  ["cursor-stuck", "protocol", /goes in circles: cursor "again" came back after page 2/],
  ["cursor-alternating", "protocol", /goes in circles: cursor "a" came back after page 3/],
  ["cursor-endless", "protocol", /does not end: 500 pages, the limit, and cursor "500" wants more/],
  ["cursor-always-refused", "protocol", /refuses cursor "p2", which it had given itself/],
  ["cursor-not-text", "protocol", /names a next page by number/],
];

describe.each(eras)("a server of the %s era that goes wrong is refused with a sentence", (era) => {
  it.each(refused)("%s: %s", async (name, kind, sentence) => {
    const server = await fault(name, "--era", era);
    const error = await failureOf(startUpstream().list(`${server.url}?api_key=s3cret`, soon()));
    expect(error.message).toMatch(sentence);
    expect(error.kind).toBe(kind);
    expect(error.message).toContain(new URL(server.url).origin);
    expect(error.message).not.toContain("s3cret");
  });
});

describe("a server that keeps us waiting", () => {
  it.each(["silent-list", "drip"])("%s: the caller's deadline ends it", async (name) => {
    const server = await fault(name, "--era", "legacy");
    const upstream = startUpstream();
    const error = await failureOf(upstream.list(server.url, AbortSignal.timeout(3_000)));
    expect(error).toMatchObject({ kind: "timeout" });
    expect(error.message).toMatch(/did not answer tools\/list in time/);
  });

  it("accepts connections and never answers: 200 callers give up at their own deadlines", async () => {
    const server = await fault("silent");
    const upstream = startUpstream();
    const callers = Array.from({ length: 200 }, (_, i) =>
      failureOf(upstream.list(server.url, AbortSignal.timeout(200 + i))),
    );
    for (const error of await Promise.all(callers)) expect(error).toMatchObject({ kind: "timeout" });
  });

  it("does not delay another server (P9)", async () => {
    const [silent, good] = await Promise.all([fault("silent"), fault("none")]);
    const upstream = startUpstream();
    const patience = new AbortController();
    const stuck = failureOf(upstream.list(silent.url, patience.signal));
    expect((await upstream.list(good.url, soon())).tools).toHaveLength(3);
    patience.abort();
    expect(await stuck).toMatchObject({ kind: "timeout" });
  });

  it("an aborted caller takes nobody with it", async () => {
    const server = await fault("none", "--era", "legacy");
    const upstream = startUpstream();
    const patience = new AbortController();
    const impatient = failureOf(upstream.list(server.url, patience.signal));
    const patient = upstream.list(server.url, soon());
    patience.abort();
    expect(await impatient).toMatchObject({ kind: "timeout" });
    expect((await patient).tools).toHaveLength(3);
  });
});

describe("a server that is not there", () => {
  it("refuses connections", async () => {
    const server = await fault("none");
    await server.stop();
    const error = await failureOf(startUpstream().list(server.url, soon()));
    expect(error).toMatchObject({ kind: "connect" });
    expect(error.message).toMatch(/refuses connections; is the server up\?/);
  });

  it("speaks something else", async () => {
    const other = createTcpServer((socket) => socket.end("SSH-2.0-OpenSSH\r\n"));
    const error = await failureOf(startUpstream().list(await listening(other), soon()));
    expect(error).toMatchObject({ kind: "protocol" });
    expect(error.message).toMatch(/does not answer in HTTP/);
  });

  it("a kept connection that the server closes when it is used again is replaced without an error", async () => {
    const used = new WeakSet<Socket>();
    let cut = 0;
    const server = createHttpServer((request, response) => {
      if (used.has(request.socket)) {
        cut++;
        request.socket.resetAndDestroy();
        return;
      }
      used.add(request.socket);
      response.end("here");
    });
    const url = await listening(server);
    const egress = createEgress(localPolicy);
    onTestFinished(() => egress.close());
    for (let i = 0; i < 2; i++) {
      const request = { method: "POST", headers: {}, body: "{}", purpose: "a test" } as const;
      const response = await egress.request(url, request, soon());
      expect((await response.read(100)).toString()).toBe("here");
    }
    expect(cut).toBe(1);
  });
});

describe("egress", () => {
  const upstream = () => startUpstream();

  it.each(["http://169.254.169.254/latest/meta-data", "http://0.0.0.0:3001/mcp", "http://127.0.0.1:22/mcp"])(
    "refuses %s before anything is dialled, naming the host",
    async (endpoint) => {
      const sentence = upstream().refusal(endpoint);
      expect(sentence).toMatch(/never dialled/);
      expect(sentence).toContain(new URL(endpoint).hostname);
      expect(await failureOf(upstream().list(endpoint, soon()))).toMatchObject({ kind: "egress", message: sentence });
    },
  );

  it.each(["file:///etc/passwd", "ftp://localhost/", "not a url", "http://user:pass@localhost/mcp"])(
    "refuses %s",
    async (endpoint) => {
      expect(await failureOf(upstream().list(endpoint, soon()))).toMatchObject({ kind: "egress" });
    },
  );

  it("dials localhost, whichever of its addresses the server holds", async () => {
    const server = await fault("none");
    const url = server.url.replace("127.0.0.1", "localhost");
    expect((await upstream().list(url, soon())).tools).toHaveLength(3);
    await server.stop();
    expect(await failureOf(upstream().list(url, soon()))).toMatchObject({ kind: "connect" });
  });
});

describe.each(eras)("a listing of the %s era that is odd but usable", (era) => {
  it("an empty cursor is a cursor", async () => {
    const server = await fault("cursor-empty-valid", "--era", era);
    const { tools } = await startUpstream().list(server.url, soon());
    expect(tools.map(({ name }) => name)).toEqual(["first_001", "first_002", "second_001", "second_002"]);
  });

  it("101 tools over 3 pages are all there", async () => {
    const server = await fault("paged-101", "--era", era);
    const { tools, rejected } = await startUpstream().list(server.url, soon());
    expect(tools).toHaveLength(101);
    expect(tools.at(-1)?.name).toBe("tool_101");
    expect(rejected).toEqual([]);
  });

  it("a cursor that expired makes the walk start over, once", async () => {
    const server = await fault("cursor-expires", "--era", era);
    const { tools } = await startUpstream().list(server.url, soon());
    expect(tools.map(({ name }) => name)).toEqual(["first_001", "first_002", "second_001", "second_002"]);
  });

  it.each([
    ["int", /\/inputSchema\/type is "int"/],
    ["missing", /\/inputSchema is missing/],
    ["null", /\/inputSchema must be a JSON object, but is null/],
    ["boolean", /\/inputSchema must be a JSON object/],
  ])("one bad tool (%s) is rejected by name and the hundred others stay (P9)", async (variant, reason) => {
    const server = await fault("one-bad-tool", "--era", era, "--variant", variant);
    const { tools, rejected } = await startUpstream().list(server.url, soon());
    expect(tools).toHaveLength(100);
    expect(rejected).toMatchObject([{ name: "bad_tool" }]);
    expect(rejected[0]?.reasons.join("\n")).toMatch(reason);
  });

  it("of two tools with one name the first one stays and the second one is rejected", async () => {
    const server = await fault("same-name-twice", "--era", era);
    const { tools, rejected } = await startUpstream().list(server.url, soon());
    expect(tools.map(({ name, label }) => [name, label.briefDescription])).toEqual([
      ["other", "Does other"],
      ["twin", "first"],
    ]);
    expect(rejected).toEqual([
      { name: "twin", reasons: ["is listed a second time, as number 3: the first one stays"] },
    ]);
  });

  it("an empty list is an empty list", async () => {
    const server = await fault("empty-first-10s", "--era", era, "--empty-ms", "600000");
    const upstream = startUpstream();
    expect((await upstream.list(server.url, soon())).tools).toEqual([]);
    await server.control({ op: "fill" });
    expect((await upstream.list(server.url, soon())).tools).toHaveLength(3);
  });

  it("a notice inside tools/list costs one more walk, even when every walk holds one", async () => {
    const server = await fault("notice-storm", "--era", era);
    const { tools } = await startUpstream().list(server.url, soon());
    expect(tools).toHaveLength(3);
    const walks = (await server.requests()).filter(({ method }) => method === "tools/list");
    expect(walks).toHaveLength(2);
  });

  it("a storm of notices is heard without harm to listings", async () => {
    const server = await fault("notice-storm", "--era", era);
    const upstream = startUpstream();
    const leaving = new AbortController();
    let heard = 0;
    const ended = upstream.subscribe(server.url, () => heard++, leaving.signal);
    await eventually(
      () => heard,
      (count) => count > 50,
    );
    expect((await upstream.list(server.url, soon())).tools).toHaveLength(3);
    leaving.abort();
    await ended;
  });
});

describe("a lost session", () => {
  it("HTTP 404 makes one new handshake and the listing goes on", async () => {
    const server = await fault("session-404", "--era", "legacy");
    expect((await startUpstream().list(server.url, soon())).tools).toHaveLength(3);
    const seen = (await server.requests()).map(({ method }) => method);
    expect(seen.filter((method) => method === "initialize")).toHaveLength(2);
    expect(seen.filter((method) => method === "tools/list")).toHaveLength(2);
  });

  it("is replaced once for all callers whom it failed", async () => {
    const server = await fault("none", "--era", "legacy");
    const upstream = startUpstream();
    await upstream.list(server.url, soon());
    await server.control({ op: "forget-sessions" });
    await Promise.all(Array.from({ length: 10 }, () => upstream.list(server.url, soon())));
    const seen = (await server.requests()).map(({ method }) => method);
    expect(seen.filter((method) => method === "initialize")).toHaveLength(2);
  });
});

it("a silent server's stream of notices is given up after a while, without a deadline of the caller", async () => {
  const server = await fault("silent");
  const clock = new FakeClock();
  let error: UpstreamError | undefined;
  void failureOf(startUpstream(clock).subscribe(server.url, () => undefined, new AbortController().signal)).then(
    (found) => {
      error = found;
    },
  );
  await eventually(
    async () => {
      await clock.advance(1_000);
      return error;
    },
    (found) => found !== undefined,
  );
  expect(error).toMatchObject({ kind: "timeout" });
  expect(clock.monotonic()).toBeGreaterThanOrEqual(LIMITS.loadMs);
});

it("a server of the older eras that is silent at server/discover is asked in its own way", async () => {
  const server = await fault("silent-discover", "--era", "legacy");
  const clock = new FakeClock();
  let found: number | undefined;
  void startUpstream(clock)
    .list(server.url, soon())
    .then(({ tools }) => {
      found = tools.length;
    });
  await eventually(
    async () => {
      if (clock.monotonic() < 10_000) await clock.advance(500);
      return found;
    },
    (count) => count === 3,
  );
});

it("a server that sends batches is understood", async () => {
  const server = await fault("batch", "--era", "legacy");
  expect((await startUpstream().list(server.url, soon())).tools).toHaveLength(3);
});

it("a server that pings is answered, and what it asks beyond that is not offered", async () => {
  const server = await fault("pinging", "--era", "legacy");
  expect((await startUpstream().list(server.url, soon())).tools).toHaveLength(3);
  // Its questions are answered beside the listing, and need not be before it ends.
  const replies = await eventually(
    async () => (await (await fetch(new URL("/replies", server.url))).json()) as { id: string }[],
    (all) => all.length >= 2,
  );
  expect(replies.sort((a, b) => (a.id < b.id ? -1 : 1))).toMatchObject([
    { id: "ping-1", result: {} },
    { id: "roots-1", error: { code: -32601 } },
  ]);
});
