import { once } from "node:events";
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request as httpRequest } from "node:http";
import { connect } from "node:net";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { LIMITS } from "../../src/domain/limits.js";
import { createWatchCodec } from "../../src/rpc/watch-codec.js";
import { stubCodec } from "../../src/store/codec/stub.js";
import { SERVICE, until } from "./grpc-support.js";
import { ALL_WAYS, type HttpRig, failingHttp, startHttpRig } from "./http-support.js";

let rig: HttpRig | undefined;
afterEach(async () => {
  await rig?.server.close();
  rig = undefined;
});

async function start(...args: Parameters<typeof startHttpRig>): Promise<HttpRig> {
  rig = await startHttpRig(...args);
  return rig;
}

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Exactly these bytes and headers; fetch would not send some of them. */
function send(path: string, body: Buffer | string, headers: OutgoingHttpHeaders = {}, method = "POST"): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${rig?.url}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

const JSON_TYPE = { "content-type": "application/json" };
const GET_STUBS = `/${SERVICE}/GetStubs`;

function reasonOf({ body }: RawAnswer): string {
  return JSON.parse(body.toString()).details[0].debug.reason;
}

function envelope(message: Buffer, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

describe("what is no message", () => {
  it.each([
    ["nothing", ""],
    ["no JSON", '{"namespace": secret}'],
    ["a JSON that is no object", "[1]"],
    ["invalid UTF-8", Buffer.from('{"namespace":"\xc3\x28"}', "latin1")],
    ["half of a surrogate pair", '{"namespace":"\\ud800"}'],
    ["a field of another type", '{"pageSize":"secret"}'],
    ["a field that is not there", '{"pagesize":1}'],
  ])("%s in JSON is MALFORMED_MESSAGE, and no value of it is told", async (_what, body) => {
    const r = await start();
    const answer = await send(GET_STUBS, body, JSON_TYPE);
    expect(answer.status).toBe(400);
    expect(reasonOf(answer)).toBe("MALFORMED_MESSAGE");
    expect(r.log).toHaveLength(1);
    expect(JSON.stringify(r.log) + answer.body.toString()).not.toContain("secret");
  });

  it("a field that is not there is named", async () => {
    await start();
    const answer = await send(GET_STUBS, '{"pagesize":1}', JSON_TYPE);
    expect(JSON.parse(answer.body.toString()).message).toContain('GetStubsRequest has no field "pagesize"');
  });

  it.each([
    ["noise", "ff00ff00deadbeef"],
    ["a truncated message", "0a7f61"],
    ["invalid UTF-8", "0a02c328"],
  ])("%s in binary is MALFORMED_MESSAGE, in Connect and in gRPC-Web", async (_what, hex) => {
    const r = await start();
    const bytes = Buffer.from(hex, "hex");
    const connectAnswer = await send(GET_STUBS, bytes, { "content-type": "application/proto" });
    expect(reasonOf(connectAnswer)).toBe("MALFORMED_MESSAGE");
    for (const path of [GET_STUBS, `/${SERVICE}/Watch`]) {
      const web = await send(path, envelope(bytes), { "content-type": "application/grpc-web+proto" });
      expect(web.body.toString()).toMatch(/grpc-status: ?3\r\n/);
    }
    expect(r.log.map((l) => l.fields["reason"])).toEqual(Array(3).fill("MALFORMED_MESSAGE"));
  });

  it.each([
    ["no envelope", Buffer.from("0000", "hex")],
    ["two messages", Buffer.concat([envelope(Buffer.alloc(0)), envelope(Buffer.alloc(0))])],
    ["a message that ends early", envelope(Buffer.alloc(9)).subarray(0, 10)],
    ["flags that mean nothing", envelope(Buffer.alloc(0), 2)],
  ])("%s is MALFORMED_MESSAGE", async (_what, body) => {
    const r = await start();
    const web = await send(GET_STUBS, body, { "content-type": "application/grpc-web+proto" });
    expect(web.body.toString()).toMatch(/grpc-status: ?3\r\n/);
    expect(r.log).toHaveLength(1);
  });

  it("a timeout that is none is MALFORMED_MESSAGE", async () => {
    await start();
    expect(reasonOf(await send(GET_STUBS, "{}", { ...JSON_TYPE, "connect-timeout-ms": "soon" }))).toBe("MALFORMED_MESSAGE");
    const web = await send(GET_STUBS, envelope(Buffer.alloc(0)), { "content-type": "application/grpc-web", "grpc-timeout": "1x" });
    expect(web.body.toString()).toMatch(/grpc-status: ?3\r\n/);
  });
});

describe("size", () => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));

  it("a gzip bomb is MESSAGE_TOO_LARGE, in every framing", async () => {
    await start();
    expect(bomb.byteLength).toBeLessThan(128 * 1024);
    const unary = await send(GET_STUBS, bomb, { ...JSON_TYPE, "content-encoding": "gzip" });
    expect(unary.status).toBe(429);
    expect(reasonOf(unary)).toBe("MESSAGE_TOO_LARGE");
    const web = { "content-type": "application/grpc-web+proto", "grpc-encoding": "gzip" };
    expect((await send(GET_STUBS, envelope(bomb, 1), web)).body.toString()).toMatch(/grpc-status: ?8\r\n/);
    const stream = { "content-type": "application/connect+json", "connect-content-encoding": "gzip" };
    expect((await send(`/${SERVICE}/Watch`, envelope(bomb, 1), stream)).body.toString()).toContain("resource_exhausted");
  });

  it("an honest gzip is read; another compression and a broken one are refused", async () => {
    const r = await start();
    const gzip = { ...JSON_TYPE, "content-encoding": "gzip" };
    expect((await send(GET_STUBS, gzipSync("{}"), gzip)).status).toBe(200);
    expect(reasonOf(await send(GET_STUBS, "{}", gzip))).toBe("MALFORMED_MESSAGE");
    expect(reasonOf(await send(GET_STUBS, "{}", { ...JSON_TYPE, "content-encoding": "br" }))).toBe("MALFORMED_MESSAGE");
    expect(r.log).toHaveLength(2);
  });

  it("8 MiB are MESSAGE_TOO_LARGE, announced or not, and the caller hears it", async () => {
    await start();
    const body = Buffer.alloc(8 * 1024 * 1024, " ");
    const announced = await send(GET_STUBS, body, { ...JSON_TYPE, "content-length": body.byteLength });
    expect(JSON.parse(announced.body.toString()).details[0].debug).toMatchObject({
      reason: "MESSAGE_TOO_LARGE",
      metadata: { limit: String(LIMITS.messageBytes), actual: String(body.byteLength), part: "message" },
    });
    const chunked = await send(GET_STUBS, body, { ...JSON_TYPE, "transfer-encoding": "chunked" });
    expect(reasonOf(chunked)).toBe("MESSAGE_TOO_LARGE");
    const framed = { "content-type": "application/grpc-web+proto" };
    expect((await send(GET_STUBS, envelope(body), framed)).body.toString()).toMatch(/grpc-status: ?8\r\n/);
  });

  it("200 KiB of headers are HTTP 431, with one log line", async () => {
    const r = await start();
    const answer = await send(GET_STUBS, "{}", { ...JSON_TYPE, "x-noise": "n".repeat(200 * 1024) });
    expect(answer.status).toBe(431);
    expect(r.log).toHaveLength(1);
  });

  it("answers are compressed only for who asks, and only where it pays", async () => {
    const definition = Buffer.from(JSON.stringify({ name: "t", description: "x".repeat(20_000) }));
    const schema = { toolId: "s/t", definition, digest: "sha256:1", freshness: "cached", fetchedAtMs: 1 } as const;
    await start({ schema: async () => ({ schema, position: { partition: 0, revision: 1, chain: "1" }, stale: false }) });
    const path = `/${SERVICE}/GetFullSchema`;
    const plain = await send(path, '{"toolId":"s/t"}', JSON_TYPE);
    expect(plain.headers["content-encoding"]).toBeUndefined();
    const packed = await send(path, '{"toolId":"s/t"}', { ...JSON_TYPE, "accept-encoding": "br, gzip" });
    expect(packed.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(packed.body)).toEqual(plain.body);
    const small = await send(GET_STUBS, "{}", { ...JSON_TYPE, "accept-encoding": "gzip" });
    expect(small.headers["content-encoding"]).toBeUndefined();
  });
});

describe("requests that are no call", () => {
  it("another content type is 415, another method 405, an unknown path 404; each with a sentence and a log line", async () => {
    const r = await start();
    for (const type of ["text/plain", "application/grpc", "application/grpc-web-text", "", "application/json; charset=latin1"]) {
      expect((await send(GET_STUBS, "{}", { "content-type": type })).status, type).toBe(415);
    }
    expect((await send(`/${SERVICE}/Watch`, "{}", JSON_TYPE)).body.toString()).toContain("application/connect+json");
    expect((await send(GET_STUBS, envelope(Buffer.from("{}")), { "content-type": "application/connect+json" })).status).toBe(415);
    const got = await send(GET_STUBS, "", {}, "GET");
    expect([got.status, got.headers["allow"]]).toEqual([405, "POST"]);
    expect((await send("/favicon.ico", "", {}, "GET")).status).toBe(404);
    expect(r.log).toHaveLength(9);
  });

  it("an unknown method is UNIMPLEMENTED in the caller's protocol, and counted as unknown", async () => {
    const r = await start();
    for (const path of [`/${SERVICE}/Nope`, "/x/y", "/__proto__", `/${SERVICE}/constructor`]) {
      const answer = await send(path, "{}", JSON_TYPE);
      expect(reasonOf(answer)).toBe("UNKNOWN_METHOD");
      expect(JSON.parse(answer.body.toString()).code).toBe("unimplemented");
    }
    const web = await send("/x/y", envelope(Buffer.alloc(0)), { "content-type": "application/grpc-web" });
    expect(web.body.toString()).toMatch(/grpc-status: ?12\r\n/);
    const stream = await send("/x/y", envelope(Buffer.from("{}")), { "content-type": "application/connect+json" });
    expect(stream.body.toString()).toContain("UNKNOWN_METHOD");
    await expect
      .poll(() => r.metrics.registry.metrics())
      .toContain('toolcrib_rpc_requests_total{method="unknown",code="UNIMPLEMENTED"} 6');
  });

  it("noise on the socket is refused with one log line", async () => {
    const r = await start();
    const socket = connect(r.server.address.port, "127.0.0.1");
    socket.end("\x16\x03\x01 not http\r\n\r\n");
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 /);
    expect(r.log).toHaveLength(1);
  });

  it("/ says what this is, for people and for programs", async () => {
    const r = await start();
    const json = await send("/", "", {}, "GET");
    expect(JSON.parse(json.body.toString())).toMatchObject({ name: "toolcrib", example: expect.stringContaining(r.url) });
    const html = await send("/", "", { accept: "text/html" }, "GET");
    expect(html.headers["content-type"]).toContain("text/html");
    expect(html.body.toString()).toContain("curl");
    expect((await send("/", "", {}, "HEAD")).body.byteLength).toBe(0);
    expect(r.log).toEqual([]);
  });
});

describe("web pages", () => {
  const origin = "https://app.example";
  const preflight = { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" };

  it("of origins that are not named get nothing", async () => {
    const r = await start();
    for (const answer of [await send(GET_STUBS, "", preflight, "OPTIONS"), await send(GET_STUBS, "{}", { ...JSON_TYPE, origin })]) {
      expect(answer.status).toBe(403);
      expect(reasonOf(answer)).toBe("FORBIDDEN");
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
    expect(r.log).toHaveLength(2);
  });

  it("of named origins may call, with credentials", async () => {
    await start({}, { corsOrigins: [origin] });
    const before = await send(GET_STUBS, "", preflight, "OPTIONS");
    expect(before.status).toBe(204);
    expect(before.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-credentials": "true",
      "access-control-allow-methods": "POST",
      "access-control-allow-headers": expect.stringContaining("authorization"),
      vary: "origin",
    });
    for (const body of ["{}", "{"]) {
      const answer = await send(GET_STUBS, body, { ...JSON_TYPE, origin });
      expect(answer.headers["access-control-allow-origin"]).toBe(origin);
      expect(answer.headers["access-control-expose-headers"]).toContain("grpc-status");
    }
    expect((await send(GET_STUBS, "{}", { ...JSON_TYPE, origin: "https://app.example.evil" })).status).toBe(403);
    expect((await send(GET_STUBS, "{}", { ...JSON_TYPE, origin: "null" })).status).toBe(403);
  });

  it("of any origin may call where * says so, without credentials", async () => {
    await start({}, { corsOrigins: ["*"] });
    const answer = await send(GET_STUBS, "{}", { ...JSON_TYPE, origin });
    expect(answer.headers["access-control-allow-origin"]).toBe("*");
    expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
    const before = await send(GET_STUBS, "", preflight, "OPTIONS");
    expect(before.headers["access-control-allow-headers"]).not.toContain("authorization");
    for (const credential of [{ authorization: "Bearer t" }, { cookie: "a=b" }]) {
      expect(reasonOf(await send(GET_STUBS, "{}", { ...JSON_TYPE, origin, ...credential }))).toBe("FORBIDDEN");
    }
  });

  it("that call this machine by a name of their own get nothing, unless callers are identified", async () => {
    const r = await start();
    const port = r.server.address.port;
    for (const host of [`evil.example:${port}`, "evil.example", "127.0.0.1.evil.example", "[::2]:1", "localhost.evil"]) {
      const answer = await send(GET_STUBS, "{}", { ...JSON_TYPE, host });
      expect([answer.status, reasonOf(answer)], host).toEqual([403, "FORBIDDEN"]);
    }
    for (const host of [`localhost:${port}`, "127.0.0.1", `[::1]:${port}`, "app.localhost:1"]) {
      expect((await send(GET_STUBS, "{}", { ...JSON_TYPE, host })).status, host).toBe(200);
    }
    await r.server.close();
    await start({}, { identified: true });
    expect((await send(GET_STUBS, "{}", { ...JSON_TYPE, host: "registry.example" })).status).toBe(200);
  });
});

describe("a watch", () => {
  const codec = createWatchCodec(stubCodec);

  it.each(ALL_WAYS)("over %s gets what the hub writes, and a hub whose watcher leaves hears it", async (way) => {
    const r = await start();
    const over = new AbortController();
    const messages = r.client(way).watch({ filter: { serverIds: ["s"] } }, { signal: over.signal })[Symbol.asyncIterator]();
    const first = messages.next();
    await until(() => r.watches.length === 1, "open");
    const [watch] = r.watches;
    watch?.sink.write(codec.snapshot([], { token: "t1" }, "r1"));
    expect((await first).value?.message).toMatchObject({ case: "snapshot", value: { last: true, resumeToken: "t1" } });
    watch?.sink.write(codec.bookmark("t2", "r2"));
    expect((await messages.next()).value?.message).toMatchObject({ case: "bookmark", value: { resumeToken: "t2" } });
    over.abort();
    await messages.next().catch(() => undefined);
    await until(() => watch?.closedTimes === 1, "closed");
    await expect.poll(() => r.metrics.registry.metrics()).toContain('toolcrib_watch_ended_total{reason="client"} 1');
  });

  it("stops a hub whose watcher does not read, and goes on when it reads again, losing nothing", async () => {
    const r = await start();
    const socket = connect(r.server.address.port, "127.0.0.1");
    const body = envelope(Buffer.from("{}"));
    socket.write(
      `POST /${SERVICE}/Watch HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/connect+json\r\ncontent-length: ${body.byteLength}\r\n\r\n`,
    );
    socket.write(body);
    await until(() => r.watches.length === 1, "open");
    const [watch] = r.watches;
    const token = "t".repeat(500);
    let written = 0;
    const fill = () => {
      while (watch?.sink.write(codec.bookmark(token, String(++written)))) {}
    };
    socket.pause();
    // The kernel takes some megabytes first.
    await until(async () => {
      const before = written;
      if (watch && (written === 0 || watch.drainedTimes > 0)) {
        watch.drainedTimes = 0;
        fill();
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
      return written === before;
    }, "full");
    const held = written;
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.resume();
    await until(() => (watch?.drainedTimes ?? 0) > 0, "drained");
    await until(() => text.includes(`"revision":"${held}"`), "all read");
    const revisions = [...text.matchAll(/"revision":"(\d+)"/g)].map((m) => Number(m[1]));
    expect(revisions).toEqual(Array.from({ length: held }, (_, i) => i + 1));
    socket.destroy();
  });

  it("ends at the caller's deadline with a reason", async () => {
    const r = await start();
    const ended = failingHttp(
      (async () => {
        for await (const _ of r.client("gRPC-Web").watch({}, { headers: { "grpc-timeout": "100m" } }));
      })(),
    );
    expect(await ended).toMatchObject({ code: "DEADLINE_EXCEEDED", reason: "DEADLINE" });
    await until(() => r.watches[0]?.closedTimes === 1, "closed");
  });
});

describe("a deadline", () => {
  it("reaches the use-case and ends the call", async () => {
    let told: number | undefined;
    const r = await start({
      schema: ({ deadlineMs }) => {
        told = deadlineMs;
        return new Promise(() => {});
      },
    });
    const answer = await send(`/${SERVICE}/GetFullSchema`, '{"toolId":"s/t"}', { ...JSON_TYPE, "connect-timeout-ms": "200" });
    expect(JSON.parse(answer.body.toString()).code).toBe("deadline_exceeded");
    expect(told).toBeGreaterThan(0);
    expect(told).toBeLessThanOrEqual(200);
    expect(r.log).toHaveLength(1);
  });

  it("a caller that leaves is counted as CANCELLED and not logged", async () => {
    const r = await start({ stubs: () => new Promise(() => {}) });
    const over = new AbortController();
    const call = r.client("Connect JSON").getStubs({}, { signal: over.signal }).catch(() => undefined);
    await expect.poll(() => r.metrics.registry.metrics()).toContain(`in_flight{method="${SERVICE}/GetStubs"} 1`);
    over.abort();
    await call;
    await expect
      .poll(() => r.metrics.registry.metrics())
      .toContain(`toolcrib_rpc_requests_total{method="${SERVICE}/GetStubs",code="CANCELLED"} 1`);
    await expect.poll(() => r.metrics.registry.metrics()).toContain(`in_flight{method="${SERVICE}/GetStubs"} 0`);
    expect(r.log).toEqual([]);
  });
});

/** A grace far longer than the test may take: what ends within the test ended by itself. */
const LONG_GRACE = { graceMs: 600_000 };

describe("shutdown", () => {
  it("ends at once although clients idle, a raw connection is silent and watches are open", async () => {
    const r = await start({}, LONG_GRACE);
    for (const way of ALL_WAYS) await r.client(way).getStubs({});
    const silent = connect(r.server.address.port, "127.0.0.1");
    silent.on("error", () => {});
    await once(silent, "connect");
    const ended = ALL_WAYS.map((way) =>
      failingHttp(
        (async () => {
          for await (const _ of r.client(way).watch({}));
        })(),
      ),
    );
    await until(() => r.watches.length === ALL_WAYS.length, "watches open");
    await r.server.close();
    for (const end of await Promise.all(ended)) {
      expect(end).toMatchObject({ code: "UNAVAILABLE", reason: "DRAINING" });
      expect(end.retryMs).toBeGreaterThanOrEqual(100);
    }
    expect(r.watches.map((w) => w.closedTimes)).toEqual(ALL_WAYS.map(() => 1));
  });

  it("lets calls under way finish", async () => {
    let answer = (): void => {};
    const gate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const position = { partition: 0, revision: 1, chain: "1" };
    const page = { frames: [], nextPageToken: "", position, notModified: false, stale: true };
    const r = await start({ stubs: () => gate.then(() => page) }, LONG_GRACE);
    const underWay = send(GET_STUBS, "{}", JSON_TYPE);
    await expect.poll(() => r.metrics.registry.metrics()).toContain(`in_flight{method="${SERVICE}/GetStubs"} 1`);
    const closing = r.server.close();
    answer();
    const { status, headers } = await underWay;
    expect([status, headers["toolcrib-stale"]]).toEqual([200, "true"]);
    await closing;
  });

  it("ends when the grace is over although a call never does", async () => {
    const r = await start({ stubs: () => new Promise(() => {}) }, { graceMs: 30 });
    const stuck = send(GET_STUBS, "{}", JSON_TYPE).catch((e: Error) => e);
    await expect.poll(() => r.metrics.registry.metrics()).toContain(`in_flight{method="${SERVICE}/GetStubs"} 1`);
    await r.server.close();
    expect(await stuck).toBeInstanceOf(Error);
  });

  it("says in one sentence that a port is taken", async () => {
    const r = await start();
    await expect(startHttpRig({}, { address: { host: "127.0.0.1", port: r.server.address.port } })).rejects.toThrow(
      /^The HTTP address 127\.0\.0\.1:\d+ is taken.*--http-address.*\.$/,
    );
  });
});
