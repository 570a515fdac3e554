/** Registering addresses that must not be dialled: refused with the class of the address, changing nothing, with one log line. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { type Replica, startReplica } from "../../src/compose.js";
import { loadConfig } from "../../src/config/config.js";
import { createLogger } from "../../src/ops/logging.js";
import { systemClock, systemRandom } from "../../src/ops/system.js";
import { failing, type ReadError } from "../integration/grpc-support.js";
import { type DnsServer, startDns } from "../support/dns.js";
import { startRedis } from "../support/redis.js";
import { RemoteRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

const SECRET = "s3cret";
const introspect = (endpoint: string): object => ({ serverId: "s", instanceId: "instance-1", endpoint, introspect: {} });
const lazily = (endpoint: string): object => ({ serverId: "s", instanceId: "instance-1", endpoint, declared: { tools: [{ stub: { name: "t" } }] } });

interface Rig {
  readonly replica: Replica;
  readonly remote: RemoteRegistry;
  readonly dns: DnsServer;
  /** Holds a Register, at both listeners, against what every refusal must be. */
  refuses(request: object, says: string): Promise<ReadError>;
}

/** A replica whose names are looked up in the test's own DNS server alone; stopped when the test ends. */
async function start(args: readonly string[] = [], names: Parameters<typeof startDns>[0] = {}): Promise<Rig> {
  const loopback = "127.0.0.1:0";
  const env = { TOOLCRIB_GRPC_ADDRESS: loopback, TOOLCRIB_HTTP_ADDRESS: loopback, TOOLCRIB_OPS_ADDRESS: loopback, TOOLCRIB_STORE: "memory" };
  const loaded = loadConfig({ argv: ["--grace", "0", ...args], env });
  if (!loaded.ok) throw new Error(loaded.errors.join("\n"));
  const lines: Record<string, unknown>[] = [];
  const destination = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      done();
    },
  });
  const dns = await startDns(names);
  const log = createLogger({ level: "info", destination });
  const replica = await startReplica(loaded.config, { clock: systemClock, random: systemRandom, log, version: "0.0.0", resolve: dns.resolve });
  onTestFinished(() => replica.stop());
  const remote = new RemoteRegistry(`127.0.0.1:${replica.grpcAddress.port}`);
  const state = async (): Promise<unknown> => [await remote.call("getStubs"), await remote.call("listServers")];
  await eventually(() => remote.call("getStubs").then(() => true, () => false), (ready) => ready);

  const refusal = async <T>(call: () => Promise<T>): Promise<T> => {
    const before = await state();
    const from = lines.length;
    const error = await call();
    await eventually(() => lines.length, (count) => count > from);
    expect(await state()).toEqual(before);
    const told = lines.slice(from);
    expect(told).toHaveLength(1);
    expect(told[0]).toMatchObject({ level: "info", reason: "EGRESS_DENIED" });
    expect(`${JSON.stringify(error)}${JSON.stringify(told)}`).not.toContain(SECRET);
    return error;
  };
  const refuses = async (request: object, says: string): Promise<ReadError> => {
    const error = await refusal(() => failing(remote.call("register", request)));
    expect(error).toMatchObject({ code: "PERMISSION_DENIED", reason: "EGRESS_DENIED", domain: "toolcrib", metadata: { server_id: "s" } });
    expect(error.message).toContain(says);
    const { status, body } = await refusal(() => postRegister(replica.httpAddress?.port ?? 0, request));
    expect([status, body.code, body.message]).toEqual([403, "permission_denied", error.message]);
    return error;
  };
  return { replica, remote, dns, refuses };
}

/** The same Register at the HTTP listener, as curl would send it. */
async function postRegister(port: number, request: object): Promise<{ status: number; body: { code: string; message: string } }> {
  const headers = { "content-type": "application/json" };
  const url = `http://127.0.0.1:${port}/toolcrib.v1.RegistryService/Register`;
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(request) });
  return { status: answer.status, body: (await answer.json()) as { code: string; message: string } };
}

const LITERALS: readonly (readonly [host: string, says: string])[] = [
  ["169.254.169.254", "is a cloud metadata address, which is never dialled"],
  ["2852039166", "is a cloud metadata address"],
  ["0xA9FEA9FE", "is a cloud metadata address"],
  ["0251.0376.0251.0376", "is a cloud metadata address"],
  ["169.254.43518", "is a cloud metadata address"],
  ["１６９.２５４.１６９.２５４", "is a cloud metadata address"],
  ["[::ffff:169.254.169.254]", "is a cloud metadata address"],
  ["[64:ff9b::169.254.169.254]", "carries a cloud metadata address"],
  ["[2002:a9fe:a9fe::]", "carries a cloud metadata address"],
  ["[fd00:ec2::254]", "is a cloud metadata address"],
  ["100.100.100.200", "is a cloud metadata address"],
  ["168.63.129.16", "is a cloud metadata address"],
  ["metadata.google.internal", "is a cloud metadata address"],
  ["0.0.0.0:3001", "is an unspecified address"],
  ["0:3001", "is an unspecified address"],
  ["[::]:3001", "is an unspecified address"],
  ["169.254.1.1", "is a link-local address"],
  ["[fe80::1]", "is a link-local address"],
  ["100.64.0.1", "is a carrier-grade NAT address"],
  ["192.0.2.1", "is a documentation address"],
  ["[::ffff:192.0.2.1]", "is a documentation address"],
  ["240.0.0.1", "is a reserved address"],
  ["224.0.0.1", "is a multicast address"],
  ["255.255.255.255", "is a broadcast address"],
  ["127.0.0.1:22", "port 22 (SSH) is never dialled"],
  ["127.0.0.1:25", "port 25 (mail) is never dialled"],
  ["127.0.0.1:53", "port 53 (DNS) is never dialled"],
  ["127.0.0.1:6379", "port 6379 (Redis) is never dialled"],
  ["example.com:5432", "port 5432 (a database) is never dialled"],
];

const INSIDE: readonly (readonly [host: string, says: string])[] = [
  ["127.0.0.1:3001", "is a loopback address"],
  ["0177.1:3001", "is a loopback address"],
  ["2130706433:3001", "is a loopback address"],
  ["[::1]:3001", "is a loopback address"],
  ["[::ffff:127.0.0.1]:3001", "is a loopback address"],
  ["localhost:3001", "resolves to a loopback address"],
  ["10.0.0.1", "is a private address"],
  ["172.16.0.1", "is a private address"],
  ["192.168.0.1", "is a private address"],
  ["[fd12::1]", "is a private address"],
  ["[64:ff9b::10.0.0.1]", "carries a private address"],
];

describe("a registry on loopback", () => {
  it("refuses every spelling of what may not be dialled, introspected or lazily loaded", async () => {
    const { refuses } = await start();
    for (const [host, says] of LITERALS)
      for (const register of [introspect, lazily]) await refuses(register(`http://${host}/${SECRET}?profile=${SECRET}`), says);
  });

  it("refuses names by what they resolve to, whichever address comes first", async () => {
    const names = {
      "metadata.test": ["169.254.169.254"],
      "six.test": ["fd00:ec2::254"],
      "nat64.test": ["64:ff9b::a9fe:a9fe"],
      "mixed.test": ["127.0.0.1", "169.254.169.254"],
      "turned.test": ["169.254.169.254", "127.0.0.1"],
    };
    const { refuses, dns } = await start([], names);
    for (const name of Object.keys(names)) {
      const error = await refuses(introspect(`http://${name}:3001/${SECRET}`), `${name} resolves to a cloud metadata address`);
      expect(error.message).not.toMatch(/169\.254|ec2|64:ff9b/);
    }
    expect(dns.asked).toEqual(Object.keys(names).flatMap((name) => [name, name]));
  });

  it("does not dial a name that turned bad after it was registered", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "none"]);
    const { remote, dns } = await start([], { "rebind.test": ["127.0.0.1"] });
    const endpoint = server.url.replace("127.0.0.1", "rebind.test");
    const registered = await remote.call("register", introspect(endpoint));
    expect(registered.tools).toHaveLength(3);
    expect((await server.requests())[0]?.headers["host"]).toMatch(/^rebind\.test:\d+$/);

    dns.records.set("rebind.test", ["169.254.169.254"]);
    await remote.call("register", { ...lazily(endpoint), serverId: "late" });
    // Kept connections lead to what was judged when they were made; these end with the server.
    await server.stop();
    const error = await failing(remote.call("getFullSchema", { toolId: "late/t" }));
    expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "LOAD_FAILED", metadata: { kind: "egress" } });
    expect(error.message).toContain("rebind.test resolves to a cloud metadata address");
  });

  const BOMB = gzipSync(Buffer.alloc(64 << 20, 0x20));
  it.each<readonly [string, RequestListener, string]>([
    ["a redirect to metadata", (_, response) => response.writeHead(307, { location: "http://169.254.169.254/latest/meta-data" }).end(), "redirects are not followed"],
    ["a gzip bomb", (_, response) => response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(BOMB), "sent gzip although identity was asked for"],
    ["64 KiB of headers", (_, response) => response.writeHead(200, { "content-type": "application/json", "x-noise": "n".repeat(64 << 10) }).end("{}"), "more than 16384 bytes of headers"],
  ])("does not take %s", async (_what, listener, says) => {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { remote } = await start();
    const registered = await remote.call("register", introspect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`));
    expect(registered.pending).toBe(true);
    const { server: shown } = await remote.call("getServer", { serverId: "s" });
    expect(JSON.stringify(shown.conditions)).toContain(says);
  });

  it("is no MCP server of its own, by any name", async () => {
    const { replica, refuses } = await start([], { "mine.test": ["127.0.0.1"] });
    for (const [address, what] of [[replica.grpcAddress, "gRPC"], [replica.httpAddress, "HTTP"], [replica.opsAddress, "ops"]] as const)
      for (const host of ["127.0.0.1", "0x7f000001", "[::ffff:7f00:1]", "localhost", "mine.test"])
        await refuses(introspect(`http://${host}:${address?.port}/`), `is the registry's own ${what} listener`);
  });

  it.skipIf(inject("redisServer") === "")("does not speak to its own store", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const { refuses } = await start(["--store", redis.url], { "redis.test": ["127.0.0.1"] });
    for (const host of ["127.0.0.1", "localhost", "redis.test"])
      await refuses(introspect(`http://${host}:${new URL(redis.url).port}/`), "is the registry's own store");
  });
});

describe("a registry that others can reach", () => {
  const exposed = ["--grpc-address", "0.0.0.0:0", "--insecure"];

  it("refuses inside addresses as well, and says what to set", async () => {
    const { refuses } = await start(exposed, { "inside.test": ["10.0.0.1"] });
    for (const [host, says] of [...LITERALS, ...INSIDE])
      for (const register of [introspect, lazily]) await refuses(register(`http://${host}/${SECRET}?profile=${SECRET}`), says);
    const { message } = await refuses(introspect("http://inside.test/"), "inside.test resolves to a private address");
    expect(message).toContain("add inside.test or its network to --egress-allow (TOOLCRIB_EGRESS_ALLOW)");
  });

  it("dials inside addresses that its operator lists, and metadata not even then", async () => {
    const server = await startFixture("faulty-server.mjs", ["--fault", "none"]);
    const names = { "mcp.example.internal": ["127.0.0.1"], "evil.example.internal": ["169.254.169.254"] };
    const { remote, refuses, replica } = await start([...exposed, "--egress-allow", "127.0.0.1, *.example.internal, 169.254.0.0/16"], names);
    await refuses(introspect("http://169.254.169.254/"), "is a cloud metadata address");
    await refuses(introspect("http://evil.example.internal/"), "resolves to a cloud metadata address");
    await refuses(introspect("http://10.0.0.1/"), "is a private address");
    // Bound to every address of the machine, it is found at each of them.
    for (const host of ["127.0.0.1", "127.0.0.7", "mcp.example.internal"])
      await refuses(introspect(`http://${host}:${replica.grpcAddress.port}/`), "is the registry's own gRPC listener");
    for (const [serverId, url] of [["a", server.url], ["b", server.url.replace("127.0.0.1", "mcp.example.internal")]] as const)
      expect((await remote.call("register", { ...introspect(url), serverId })).tools).toHaveLength(3);
  });
});
