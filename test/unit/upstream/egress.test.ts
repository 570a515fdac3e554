/** Real sockets and a real DNS server: what is checked is what is dialled. */
import { createServer as createHttpServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { type EgressPolicy, readAllowList } from "../../../src/domain/admission/egress.js";
import { LIMITS } from "../../../src/domain/limits.js";
import { createEgress, type Egress, type Resolve } from "../../../src/upstream/egress.js";
import { startDns } from "../../support/dns.js";
import { failureOf, localPolicy, soon } from "../../support/upstream.js";

const POST = { method: "POST", headers: {}, body: "{}", purpose: "a test" } as const;

interface HttpServer {
  readonly port: number;
  readonly seen: readonly IncomingHttpHeaders[];
  connections: number;
}

async function serve(answer: RequestListener = (_request, response) => response.end("here"), host = "127.0.0.1"): Promise<HttpServer> {
  const seen: IncomingHttpHeaders[] = [];
  const server = createHttpServer({ maxHeaderSize: 1 << 20 }, (request, response) => {
    seen.push(request.headers);
    request.resume();
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => void server.close());
  const found = { port: (server.address() as AddressInfo).port, seen, connections: 0 };
  server.on("connection", () => found.connections++);
  return found;
}

function start(policy: Partial<EgressPolicy> = {}, resolve?: Resolve): Egress {
  const egress = createEgress({ ...localPolicy, ...policy }, resolve);
  onTestFinished(() => egress.close());
  return egress;
}

function allowing(text: string): Partial<EgressPolicy> {
  const allow = readAllowList(text);
  if ("problems" in allow) throw new Error(allow.problems.join());
  return { inside: "closed", allow };
}

describe("a name", () => {
  it("is asked for once, dialled at the address that was judged, and kept in Host", async () => {
    const server = await serve();
    const dns = await startDns({ "mcp.test": ["127.0.0.1"] });
    const egress = start({}, dns.resolve);
    const url = `http://mcp.test:${server.port}/mcp`;
    for (let i = 0; i < 2; i++) expect(String(await (await egress.request(url, POST, soon())).read(100))).toBe("here");
    expect(server.seen.map(({ host }) => host)).toEqual([`mcp.test:${server.port}`, `mcp.test:${server.port}`]);
    expect([dns.asked, server.connections]).toEqual([["mcp.test"], 1]);
  });

  it("is kept for SNI", async () => {
    let told = "";
    const server = createTlsServer({
      SNICallback: (name, done) => {
        told = name;
        done(new Error("no certificate for it"));
      },
    });
    server.on("tlsClientError", () => undefined);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const dns = await startDns({ "mcp.test": ["127.0.0.1"] });
    const url = `https://mcp.test:${(server.address() as AddressInfo).port}/mcp`;
    expect(await failureOf(start({}, dns.resolve).request(url, POST, soon()))).toMatchObject({ kind: "connect" });
    expect(told).toBe("mcp.test");
  });

  it.each([
    [["169.254.169.254"], "cloud metadata"],
    [["fd00:ec2::254"], "cloud metadata"],
    [["64:ff9b::a9fe:a9fe"], "cloud metadata"],
    [["2002:a9fe:a9fe::1"], "cloud metadata"],
    [["0.0.0.0"], "unspecified"],
    [["::ffff:0.0.0.0"], "unspecified"],
    [["100.64.0.1"], "carrier-grade NAT"],
    [["192.0.2.1"], "documentation"],
    // One good address does not carry a bad one along, in whichever order and family.
    [["127.0.0.1", "169.254.169.254"], "cloud metadata"],
    [["169.254.169.254", "127.0.0.1"], "cloud metadata"],
    [["127.0.0.1", "fe80::1"], "link-local"],
  ])("that resolves to %j is refused, and nothing is sent", async (addresses, is) => {
    const server = await serve();
    const dns = await startDns({ "evil.test": addresses });
    const error = await failureOf(start({}, dns.resolve).request(`http://evil.test:${server.port}/s3cret?k=s3cret`, POST, soon()));
    expect(error.kind).toBe("egress");
    expect(error.message).toMatch(new RegExp(`^evil\\.test resolves to an? ${is} address`));
    for (const hidden of ["s3cret", ...addresses]) expect(error.message).not.toContain(hidden);
    expect(server.connections).toBe(0);
  });

  it("that turns bad after it was judged changes nothing: the judged address is dialled, and the next dial is judged anew", async () => {
    const server = await serve((_request, response) => response.setHeader("connection", "close").end("here"));
    const answers = [["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1", "10.0.0.1"]];
    const dns = await startDns({ "rebind.test": () => answers.shift() ?? ["169.254.169.254"] });
    const egress = start(allowing("127.0.0.0/8"), dns.resolve);
    const url = `http://rebind.test:${server.port}/mcp`;
    expect(egress.refusal(url)).toBeUndefined();
    expect(String(await (await egress.request(url, POST, soon())).read(100))).toBe("here");
    expect(dns.asked).toHaveLength(1);
    expect((await failureOf(egress.request(url, POST, soon()))).message).toContain("cloud metadata");
    expect((await failureOf(egress.request(url, POST, soon()))).message).toContain("resolves to a private address");
    expect([server.connections, dns.asked.length]).toEqual([1, 3]);
  });

  it("that does not exist, or has no address, is a failure to connect", async () => {
    const dns = await startDns({ "empty.test": [] });
    for (const name of ["nowhere.test", "empty.test"]) {
      expect(await failureOf(start({}, dns.resolve).request(`http://${name}:3001/`, POST, soon()))).toMatchObject({ kind: "connect" });
    }
  });

  it.each([
    ["127.0.0.0/8", undefined],
    ["mcp.test", undefined],
    ["*.test", undefined],
    ["10.0.0.0/8, *.example", "resolves to a loopback address"],
  ])("of a registry that others can reach is dialled where a list allows it: %s", async (list, says) => {
    const server = await serve();
    const dns = await startDns({ "mcp.test": ["127.0.0.1"] });
    const work = start(allowing(list), dns.resolve).request(`http://mcp.test:${server.port}/`, POST, soon());
    if (says !== undefined) return expect((await failureOf(work)).message).toContain(says);
    expect(String(await (await work).read(100))).toBe("here");
  });
});

describe("the registry's own", () => {
  it("listener is refused by address, by name, and behind a wildcard", async () => {
    const server = await serve();
    const dns = await startDns({ "mine.test": ["127.0.0.1"] });
    for (const host of ["127.0.0.1", "0.0.0.0", "::"]) {
      const own = () => [{ what: "the registry's own gRPC listener", host, port: server.port }];
      const egress = start({ own }, dns.resolve);
      for (const name of ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "mine.test"]) {
        const error = await failureOf(egress.request(`http://${name}:${server.port}/`, POST, soon()));
        expect(error).toMatchObject({ kind: "egress", message: expect.stringContaining("the registry's own gRPC listener") });
      }
    }
    expect(server.connections).toBe(0);
  });

  it("store, known by name, is refused by name, by address and by another name of the same address", async () => {
    const server = await serve();
    const dns = await startDns({ "redis.test": ["127.0.0.1"], "alias.test": ["127.0.0.1"], "other.test": ["127.0.0.2"] });
    const egress = start({ own: () => [{ what: "the registry's own store", host: "redis.test", port: server.port }] }, dns.resolve);
    for (const name of ["redis.test", "alias.test", "127.0.0.1"]) {
      const error = await failureOf(egress.request(`http://${name}:${server.port}/`, POST, soon()));
      expect(error).toMatchObject({ kind: "egress", message: expect.stringContaining("the registry's own store") });
    }
    expect(server.connections).toBe(0);
    // Another machine's port of the same number is not the store.
    expect(await failureOf(egress.request(`http://other.test:${server.port}/`, POST, soon()))).toMatchObject({ kind: "connect" });
    // Without an answer it cannot be told, so nothing is sent.
    dns.records.delete("redis.test");
    const error = await failureOf(egress.request(`http://127.0.0.1:${server.port}/`, POST, soon()));
    expect(error.message).toContain("redis.test is not known now");
    expect(server.connections).toBe(0);
  });

  it("store of a resolver that never answers does not hold a caller beyond its deadline", async () => {
    const own = () => [{ what: "the registry's own store", host: "redis.test", port: 3001 }];
    const error = await failureOf(start({ own }, () => undefined).request("http://127.0.0.1:3001/", POST, AbortSignal.timeout(50)));
    expect(error.kind).toBe("timeout");
  });
});

describe("what comes back", () => {
  it("a redirect to metadata is handed on as it is, and not followed", async () => {
    const server = await serve((_request, response) => response.writeHead(307, { location: "http://169.254.169.254/latest/meta-data" }).end());
    const response = await start().request(`http://127.0.0.1:${server.port}/`, POST, soon());
    expect(response.status).toBe(307);
    response.discard();
    expect(server.seen).toHaveLength(1);
  });

  it("a gzip bomb is refused without being unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, 0x20));
    expect(bomb.length).toBeLessThan(128 << 10);
    const server = await serve((_request, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb));
    const response = await start().request(`http://127.0.0.1:${server.port}/`, POST, soon());
    const before = process.memoryUsage().arrayBuffers;
    expect(await failureOf(response.read(LIMITS.upstreamBytes))).toMatchObject({ kind: "protocol", message: expect.stringContaining("sent gzip") });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 << 20);
    expect(server.seen[0]?.["accept-encoding"]).toBe("identity");
  });

  it.each([
    ["one header of 64 KiB", { "x-big": "a".repeat(64 << 10) }],
    ["64 KiB in many headers", Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`x-${i}`, "a".repeat(1 << 10)]))],
  ])("%s is refused", async (_what, headers) => {
    const server = await serve((_request, response) => response.writeHead(200, headers).end("here"));
    const error = await failureOf(start().request(`http://127.0.0.1:${server.port}/p?k=s3cret`, POST, soon()));
    expect(error.kind).toBe("too-large");
    expect(error.message).toBe(`http://127.0.0.1:${server.port} answered a test with more than 16384 bytes of headers`);
  });

  it("a body over the caller's limit is cut", async () => {
    const server = await serve((_request, response) => response.end("a".repeat(101)));
    const response = await start().request(`http://127.0.0.1:${server.port}/`, POST, soon());
    expect(await failureOf(response.read(100))).toMatchObject({ kind: "too-large" });
  });
});

it("proxy variables of the environment are not looked at", async () => {
  const server = await serve();
  const proxy = await serve();
  for (const name of ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"]) {
    const before = process.env[name];
    process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : `http://127.0.0.1:${proxy.port}`;
    onTestFinished(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
  expect(String(await (await start().request(`http://127.0.0.1:${server.port}/`, POST, soon())).read(100))).toBe("here");
  expect(proxy.connections).toBe(0);
});
