import http2 from "node:http2";
import { Metadata, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { Fault, invalidRequest } from "../../src/domain/fault.js";
import { type ErrorReasonName, STATUS_OF } from "../../src/domain/reasons.js";
import { type Rig, SERVICE, call, callRaw, failing, startRig, until } from "./grpc-support.js";

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.stop();
  rig = undefined;
});

async function start(...args: Parameters<typeof startRig>): Promise<Rig> {
  rig = await startRig(...args);
  return rig;
}

const METHODS = [
  "Register",
  "Renew",
  "Deregister",
  "GetStubs",
  "GetFullSchema",
  "BatchGetFullSchemas",
  "ListServers",
  "GetServer",
  "Watch",
];

describe("faults on the wire", () => {
  it.each(Object.keys(STATUS_OF).filter((r) => r !== "INTERNAL"))("%s has its code and details", async (name) => {
    const reason = name as ErrorReasonName;
    const r = await start({
      renew: async () => {
        throw new Fault(reason, `because of ${name} – ünïcode, \ud800 and\nlines`, {
          metadata: { fact: "value" },
          violations: [{ field: "a.b", description: "is wrong" }],
          retryAfterMs: 1_500,
          substitutes: ["s/t"],
          cause: new Error("secret cause"),
        });
      },
    });
    const error = await failing(call(r.client(), "Renew", {}));
    expect(error).toMatchObject({
      code: STATUS_OF[reason],
      reason,
      domain: "toolcrib",
      metadata: { fact: "value" },
      violations: [{ field: "a.b", description: "is wrong" }],
      retryMs: 1_500,
      substitutes: ["s/t"],
      message: `because of ${name} – ünïcode, \ufffd and\nlines`,
    });
    expect(JSON.stringify(error)).not.toContain("secret");
    expect(r.log.filter((l) => l.fields["reason"] === reason)).toHaveLength(1);
    expect(r.log[0]?.level).toBe("info");
  });

  it("a plain Error becomes INTERNAL with an incident id, and is logged with its cause", async () => {
    const bug = new Error("secret detail", { cause: new Error("root") });
    const r = await start({ stubs: () => Promise.reject(bug) });
    const error = await failing(call(r.client(), "GetStubs", {}));
    expect(error).toMatchObject({ code: "INTERNAL", reason: "INTERNAL" });
    expect(error.message).not.toContain("secret");
    const incident = error.metadata["incident"] ?? "";
    expect(incident).toMatch(/^[0-9a-f]{16}$/);
    expect(r.log).toHaveLength(1);
    expect(r.log[0]).toMatchObject({ level: "error", fields: { incident, err: bug, method: `${SERVICE}/GetStubs` } });
  });

  it("so does one thrown by a watch, and a thing that is no Error at all", async () => {
    const r = await start({ watch: () => Promise.reject("oops") });
    const stream = r.client()["Watch"]({});
    const error = await failing(
      new Promise((_, reject) => {
        stream.on("data", () => {});
        stream.on("error", reject);
      }),
    );
    expect(error.code).toBe("INTERNAL");
    expect(r.log[0]).toMatchObject({ level: "error", fields: { err: "oops" } });
  });

  it("stays readable for clients with small header limits, however much is wrong", async () => {
    const violations = Array.from({ length: 10_000 }, (_, i) => ({ field: `f[${i}]`, description: "ü".repeat(200) }));
    const r = await start({ register: () => Promise.reject(invalidRequest(violations)) });
    const error = await failing(call(r.client(), "Register", { server_id: "s" }));
    expect(error.detailBytes).toBeLessThan(5_000);
    expect(error.violations.length).toBeGreaterThan(5);
    expect(error.violations.at(-1)?.description).toMatch(/^and \d+ more violations/);
  });
});

describe("bad calls", () => {
  it("an unknown method is UNIMPLEMENTED, with details, one log line and a metric", async () => {
    const r = await start();
    for (const path of [`/${SERVICE}/Nope`, "/x/y", "/%00/ü"]) {
      expect(await failing(callRaw(r.raw(), path, Buffer.alloc(0)))).toMatchObject({
        code: "UNIMPLEMENTED",
        reason: "UNKNOWN_METHOD",
      });
    }
    expect(r.log).toHaveLength(3);
    await expect.poll(() => r.metrics.registry.metrics()).toContain(
      'toolcrib_rpc_requests_total{method="unknown",code="UNIMPLEMENTED"} 3',
    );
  });

  it("an 8 MiB message is RESOURCE_EXHAUSTED, and the connection lives on", async () => {
    const r = await start();
    const raw = r.raw();
    const big = callRaw(raw, `/${SERVICE}/Register`, Buffer.alloc(8 * 1024 * 1024));
    expect(await failing(big)).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "MESSAGE_TOO_LARGE",
      metadata: { limit: "4194304" },
    });
    await callRaw(raw, `/${SERVICE}/GetStubs`, Buffer.alloc(0));
  });

  it("so is an answer that would be too large", async () => {
    const position = { partition: 0, revision: 1, chain: "1" };
    const frames = [Buffer.alloc(5 * 1024 * 1024)];
    const r = await start({
      stubs: async () => ({ frames, nextPageToken: "", position, notModified: false, stale: false }),
    });
    expect(await failing(call(r.client(), "GetStubs", {}))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "MESSAGE_TOO_LARGE",
    });
  });

  it.each([
    ["noise", Buffer.from("ff00ff00deadbeef", "hex")],
    ["a truncated message", Buffer.from("0a7f61", "hex")],
    ["invalid UTF-8", Buffer.from("0a02c328", "hex")],
    ["a field of another type", Buffer.from("0801", "hex").subarray(0, 1)],
  ])("%s is INVALID_ARGUMENT MALFORMED_MESSAGE at every method", async (_what, bytes) => {
    const r = await start();
    const raw = r.raw();
    for (const method of METHODS) {
      expect(await failing(callRaw(raw, `/${SERVICE}/${method}`, bytes)), method).toMatchObject({
        code: "INVALID_ARGUMENT",
        reason: "MALFORMED_MESSAGE",
      });
    }
    expect(r.log.map((l) => l.level)).toEqual(METHODS.map(() => "info"));
  });

  it.each([20 * 1024, 64 * 1024])("%i bytes of metadata are RESOURCE_EXHAUSTED", async (size) => {
    const r = await start();
    const metadata = new Metadata();
    for (let i = 0; i < size / 1024; i++) metadata.add(`x-noise-${i}`, "n".repeat(1024));
    const raw = r.raw();
    expect(await failing(callRaw(raw, `/${SERVICE}/GetStubs`, Buffer.alloc(0), metadata))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      reason: "MESSAGE_TOO_LARGE",
      metadata: { limit: "16384", part: "metadata" },
    });
    await callRaw(raw, `/${SERVICE}/GetStubs`, Buffer.alloc(0));
  });

  it("a wrong content type is HTTP 415", async () => {
    const r = await start();
    const session = http2.connect(`http://${r.target}`);
    const request = session.request({
      ":method": "POST",
      ":path": `/${SERVICE}/GetStubs`,
      "content-type": "application/json",
    });
    const code = await new Promise((resolve) => request.on("response", (headers) => resolve(headers[":status"])));
    request.end();
    expect(code).toBe(415);
    session.destroy();
  });

  it("a broken gzip frame and a nonsense timeout are the caller's mistakes, not ours", async () => {
    const r = await start();
    const session = http2.connect(`http://${r.target}`);
    const trailersOf = (headers: http2.OutgoingHttpHeaders, body: Buffer) =>
      new Promise<http2.IncomingHttpHeaders>((resolve) => {
        const path = `/${SERVICE}/GetStubs`;
        const request = session.request({
          ":method": "POST",
          ":path": path,
          "content-type": "application/grpc",
          ...headers,
        });
        request.on("response", (h) => h["grpc-status"] !== undefined && resolve(h));
        request.on("trailers", resolve);
        request.resume();
        request.end(body);
      });
    const frame = Buffer.from("0100000003616263", "hex");
    const gzip = await trailersOf({ "grpc-encoding": "gzip" }, frame);
    expect(Number(gzip["grpc-status"])).toBe(status.INVALID_ARGUMENT);
    const timeout = await trailersOf({ "grpc-timeout": "soon" }, Buffer.from("0000000000", "hex"));
    expect(Number(timeout["grpc-status"])).toBe(status.INVALID_ARGUMENT);
    session.destroy();
  });

  it("page size −1, a category, a reserved view, and many wrong values at once are told apart", async () => {
    const r = await start();
    const client = r.client();
    expect(
      await failing(
        call(client, "GetStubs", {
          page_size: -1,
          namespace: "No",
          filter: { tags_any: ["UP", "ok"], name_prefix: "x".repeat(129) },
        }),
      ),
    ).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [
        { field: "namespace" },
        { field: "filter.tags_any[0]" },
        { field: "filter.name_prefix" },
        { field: "page_size" },
      ],
    });
    expect(await failing(call(client, "GetStubs", { filter: { category: "db" } }))).toMatchObject({
      code: "UNIMPLEMENTED",
      reason: "CATEGORY_UNSUPPORTED",
    });
    expect(await failing(call(client, "GetFullSchema", { tool_id: "s/t", view: 9 }))).toMatchObject(
      {
        code: "UNIMPLEMENTED",
        reason: "VIEW_UNSUPPORTED",
      },
    );
    expect(await failing(call(client, "GetFullSchema", {}))).toMatchObject({ violations: [{ field: "key" }] });
    const many = Array.from({ length: 101 }, (_, i) => `s/t${i}`);
    expect(await failing(call(client, "BatchGetFullSchemas", { tool_ids: many }))).toMatchObject({
      violations: [{ field: "tool_ids", description: "at most 100 are taken, 101 were sent" }],
    });
  });
});

describe("deadlines", () => {
  it("the caller's own reaches the use-case and ends the call with a reason", async () => {
    let told: number | undefined;
    const r = await start({
      schema: ({ deadlineMs }) => {
        told = deadlineMs;
        return new Promise(() => {});
      },
    });
    const error = await call(r.client(), "GetFullSchema", { tool_id: "s/t" }, { deadline: Date.now() + 3_000 }).catch(
      (e) => e,
    );
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
    expect(told).toBeGreaterThan(0);
    expect(told).toBeLessThanOrEqual(3_000);
  });

  it("a caller without one still gets an answer", async () => {
    const r = await start({ stubs: () => new Promise(() => {}) }, { unaryDeadlineMs: 50 });
    expect(await failing(call(r.client(), "GetStubs", {}))).toMatchObject({
      code: "DEADLINE_EXCEEDED",
      reason: "DEADLINE",
    });
    await until(
      async () =>
        (await r.metrics.registry.metrics()).includes('rpc_in_flight{method="toolcrib.v1.RegistryService/GetStubs"} 0'),
      "counted out",
    );
  });
});
