/** What is wrong before anybody can read it: size, encoding, framing, method, content type. */
import { once } from "node:events";
import { connect as connectHttp2, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { connect as connectTcp } from "node:net";
import { Metadata, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callRaw, failing, SERVICE } from "../integration/grpc-support.js";
import { type Expected, Target } from "./support.js";

let target: Target;
beforeAll(async () => void (target = await Target.start()));
afterAll(() => target.stop());

const ADMIN = "toolcrib.v1.AdminService";
const GATE = "toolcrib.v1.GateService";
/** Paths. */
const METHODS = [
  ...["Register", "Renew", "Deregister", "GetStubs", "GetFullSchema", "BatchGetFullSchemas", "ListServers", "GetServer", "Watch"].map((m) => `/${SERVICE}/${m}`),
  `/${GATE}/FindTools`,
  `/${GATE}/GetModuleMap`,
  ...["CreateToolset", "GetToolset", "UpdateToolset", "DeleteToolset"].map((m) => `/toolcrib.v1.ToolsetService/${m}`),
  ...["IsolateServer", "ResumeServer", "RefreshServer"].map((m) => `/${ADMIN}/${m}`),
];
const UNARY = METHODS.filter((path) => !path.endsWith("/Watch"));
const MIB = 1024 * 1024;

describe("size", () => {
  it.each(METHODS)("an 8 MiB message to %s", async (path) => {
    const expected: Expected = {
      code: "RESOURCE_EXHAUSTED",
      reason: "MESSAGE_TOO_LARGE",
      says: ["4194304", "8388608"],
      metadata: { limit: "4194304", actual: "8388608", part: "message" },
    };
    await target.refusesBytes(path, Buffer.alloc(8 * MIB), expected);
  });

  it.each([17, 40, 64])("%i KiB of metadata", async (kib) => {
    const metadata = new Metadata();
    for (let i = 0; i < kib; i++) metadata.add(`x-noise-${i}`, "n".repeat(1_024));
    const expected: Expected = { code: "RESOURCE_EXHAUSTED", reason: "MESSAGE_TOO_LARGE", says: ["16384"], metadata: { limit: "16384", part: "metadata" } };
    const error = await target.refuses("getStubs", {}, expected, metadata);
    expect(Number(error.metadata["actual"])).toBeGreaterThan(kib * 1_024);
    expect(error.message).toContain(error.metadata["actual"] as string);
    await target.refuses("register", {}, expected, metadata);
  });
});

describe("encoding", () => {
  const MALFORMED: Expected = { code: "INVALID_ARGUMENT", reason: "MALFORMED_MESSAGE", says: ["toolcrib.v1.", "UTF-8"] };
  it.each([
    ["noise", Buffer.from("ff00ff00deadbeef", "hex")],
    ["the beginning of a message", Buffer.from("0a7f61", "hex")],
    ["invalid UTF-8 in a string", Buffer.from("0a02c328", "hex")],
    ["an overlong NUL in a string", Buffer.from("0a02c080", "hex")],
    ["a surrogate in a string", Buffer.from("0a03eda080", "hex")],
    ["a length beyond the message", Buffer.from("0affffffff0f", "hex")],
    ["a varint that does not end", Buffer.from("ff".repeat(12), "hex")],
    ["JSON", Buffer.from('{"serverId":"s"}')],
  ])("%s, to every method", async (_what, bytes) => {
    for (const path of METHODS) await target.refusesBytes(path, bytes, MALFORMED);
  });

  it("100,000 nested groups", async () => {
    await target.refusesBytes(`/${SERVICE}/GetStubs`, Buffer.alloc(100_000, 0x53), MALFORMED);
  });

  it("fields that this version does not know are no fault", async () => {
    for (const method of ["GetStubs", "ListServers", "Renew"]) await callRaw(target.remote.client, `/${SERVICE}/${method}`, Buffer.from("ca3e03616263", "hex"));
  });
});

describe("method", () => {
  it.each([`/${SERVICE}/Nothing`, `/${SERVICE}/getStubs`, "/toolcrib.v2.RegistryService/GetStubs", `/${SERVICE}/__proto__`, "/constructor", "/", `/${SERVICE}/GetStubs/`, `/${ADMIN}/GetStubs`, `/${SERVICE}/IsolateServer`])(
    "%s does not exist",
    async (path) => {
      const expected: Expected = { code: "UNIMPLEMENTED", reason: "UNKNOWN_METHOD", says: [path], loggedAs: "unknown" };
      await target.refusesBytes(path, Buffer.alloc(0), expected);
    },
  );

  it("a path of 5,000 characters is not repeated whole", async () => {
    const error = await target.refusesBytes(`/x/${"y".repeat(5_000)}`, Buffer.alloc(0), { code: "UNIMPLEMENTED", reason: "UNKNOWN_METHOD", loggedAs: "unknown" });
    expect(error.message.length).toBeLessThan(300);
  });

  it("names no metric of its own", async () => {
    const text = await (await fetch(`${target.registry.ops}/metrics`)).text();
    expect(text).toContain('method="unknown"');
    expect(text).not.toMatch(/Nothing|constructor|__proto__|yyyy/);
  });
});

describe("framing", () => {
  const frame = (length: number, body = Buffer.alloc(0), flag = 0): Buffer => {
    const head = Buffer.from([flag, 0, 0, 0, 0]);
    head.writeUInt32BE(length, 1);
    return Buffer.concat([head, body]);
  };

  async function ask(headers: OutgoingHttpHeaders, body: Buffer): Promise<{ head: IncomingHttpHeaders; trailers: IncomingHttpHeaders }> {
    const session = connectHttp2(`http://${target.registry.grpc}`);
    try {
      const request = session.request({ ":method": "POST", ":path": `/${SERVICE}/GetStubs`, "content-type": "application/grpc", te: "trailers", ...headers });
      let head: IncomingHttpHeaders = {};
      let trailers: IncomingHttpHeaders = {};
      request.on("response", (h) => void (head = h));
      request.on("trailers", (t) => void (trailers = t));
      request.resume();
      request.end(body);
      await once(request, "close");
      return { head, trailers };
    } finally {
      session.destroy();
    }
  }

  it.each(["application/json", "text/html", "application/x-protobuf", undefined])("content type %s is HTTP 415", async (type) => {
    const before = await target.state();
    const { result, lines } = await target.logged(() => ask({ "content-type": type }, frame(0)));
    expect(result.head[":status"]).toBe(415);
    expect(lines).toMatchObject([{ level: "info", http_status: 415, content_type: type ?? "" }]);
    expect(lines[0]?.["peer"]).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(await target.state()).toEqual(before);
  });

  it.each([
    ["gzip that is none", { "grpc-encoding": "gzip" }, frame(3, Buffer.from("abc"), 1), status.INVALID_ARGUMENT],
    ["an encoding that nobody knows", { "grpc-encoding": "noise" }, frame(3, Buffer.from("abc"), 1), status.INVALID_ARGUMENT],
    ["a time-out that is none", { "grpc-timeout": "soon" }, frame(0), status.INVALID_ARGUMENT],
    ["4 GiB announced, nothing sent", {}, frame(0xffffffff), status.RESOURCE_EXHAUSTED],
  ])("%s", async (_what, headers, body, code) => {
    const before = await target.state();
    const { result, lines } = await target.logged(() => ask(headers, body));
    expect(Number(result.trailers["grpc-status"] ?? result.head["grpc-status"])).toBe(code);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "info", code: status[code] });
    expect(await target.state()).toEqual(before);
  });

  it("gzip of 64 MiB in 64 KiB is not unpacked", async () => {
    const { gzipSync } = await import("node:zlib");
    const bomb = gzipSync(Buffer.alloc(64 * MIB));
    const { result, lines } = await target.logged(() => ask({ "grpc-encoding": "gzip" }, frame(bomb.length, bomb, 1)));
    expect(Number(result.trailers["grpc-status"] ?? result.head["grpc-status"])).toBe(status.RESOURCE_EXHAUSTED);
    expect(lines).toMatchObject([{ level: "info", reason: "MESSAGE_TOO_LARGE" }]);
  });

  it.each([
    ["HTTP/1.1", "GET / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["noise", Buffer.from("16030100ff00deadbeef".repeat(20), "hex")],
    ["the HTTP/2 greeting and then noise", Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.alloc(200, 0xff)])],
  ])("%s on the gRPC port ends that connection alone", async (_what, bytes) => {
    const [host, port] = target.registry.grpc.split(":");
    const socket = connectTcp({ host: host ?? "", port: Number(port) });
    socket.on("error", () => {});
    socket.resume();
    socket.write(bytes);
    await once(socket, "close");
    expect((await target.remote.call("getStubs")).stubs).toHaveLength(2);
  });

  it("a call reset in the middle of its message leaves nothing behind", async () => {
    const before = await target.state();
    const session = connectHttp2(`http://${target.registry.grpc}`);
    for (const path of UNARY) {
      const request = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
      request.on("error", () => {});
      request.write(frame(1_000, Buffer.alloc(10)));
      request.close(constants.NGHTTP2_CANCEL);
      await once(request, "close");
    }
    session.destroy();
    expect(await target.state()).toEqual(before);
    expect(target.registry.logs().filter((l) => l["level"] === "error")).toEqual([]);
    expect(await failing(target.remote.call("register"))).toMatchObject({ reason: "INVALID_REQUEST" });
  });
});
