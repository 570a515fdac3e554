/** Nothing that looks like a secret leaves through errors, logs (of any level) or metrics. */
import { spawnSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/upstream.js";
import { failing } from "../integration/grpc-support.js";
import { type Expected, inline, INVALID, REJECTED, Target, tool } from "./support.js";

const SECRET = "hunter2marker";
let target: Target;
let web: Server;
/** What the HTTP server answers, whatever is asked. */
let answer: { status: number; headers: Record<string, string>; body: string };

beforeAll(async () => {
  target = await Target.start(["--log-level", "debug"]);
  web = createServer((_request, response) => {
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  });
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  web.close();
  await target.stop();
});
afterEach(async () => {
  expect(target.registry.output()).not.toContain(SECRET);
  expect(await (await fetch(`${target.registry.ops}/metrics`)).text()).not.toContain(SECRET);
  expect(await (await fetch(`${target.registry.ops}/readyz`)).text()).not.toContain(SECRET);
});

describe("in an endpoint that is refused", () => {
  it.each([
    [`http://me:${SECRET}@127.0.0.1:3999/mcp`, "user name or password"],
    [`http://${SECRET}@127.0.0.1:3999/mcp`, "user name or password"],
    [`http://:${SECRET}@example.com/mcp`, "user name or password"],
    [`http://127.0.0.1:3999/mcp?api_key=${SECRET}`, '"api_key"'],
    [`http://127.0.0.1:3999/mcp?tavilyApiKey=${SECRET}`, '"tavilyApiKey"'],
    [`http://127.0.0.1:3999/mcp?a=b&X-Amz-Signature=${SECRET}`, '"X-Amz-Signature"'],
    [`http://127.0.0.1:3999/mcp?access_token=${SECRET}#x`, "fragment"],
    [`http://127.0.0.1:3999/mcp#${SECRET}`, "fragment"],
    [`me:${SECRET}@127.0.0.1:3999/mcp`, "only http and https"],
    [`${SECRET}:x@127.0.0.1:3999/mcp`, "only http and https"],
    [`${SECRET}@127.0.0.1:3999/mcp`, "no http or https URL"],
    [`ftp://me:${SECRET}@127.0.0.1/mcp`, "only http and https"],
    [`http://me:${SECRET}@127.0.0.1:99999/mcp`, "no http or https URL"],
    [`http://me:${SECRET} @127.0.0.1/mcp`, "U+0020 (space)"],
    [`http://127.0.0.1/${SECRET}/${"x".repeat(2_048)}`, "the limit is 2048"],
  ])("%s", async (endpoint, says) => {
    for (const offer of [{ introspect: {} }, inline("", [JSON.stringify(tool("t"))])]) {
      const request = { ...offer, serverId: "s", instanceId: "instance-1", endpoint };
      const error = await target.refuses("register", request, { ...INVALID, says: [says] });
      expect(JSON.stringify(error)).not.toContain(SECRET);
    }
  });

  it("that egress forbids: neither path nor query is repeated", async () => {
    const expected: Expected = { code: "PERMISSION_DENIED", reason: "EGRESS_DENIED", says: ["169.254.169.254"] };
    const endpoint = `http://169.254.169.254/${SECRET}/mcp?x=${SECRET}`;
    const error = await target.refuses("register", { serverId: "s", instanceId: "instance-1", endpoint, introspect: {} }, expected);
    expect(JSON.stringify(error)).not.toContain(SECRET);
  });
});

describe("elsewhere in a request", () => {
  it("a schema_uri with a password or a token", async () => {
    for (const schemaUri of [`https://me:${SECRET}@example.com/s.json`, `https://example.com/s.json?token=${SECRET}`]) {
      const definition = Buffer.from(JSON.stringify(tool("t")));
      const request = { serverId: "s", instanceId: "instance-1", declared: { tools: [{ stub: { schemaUri }, definition }] } };
      const error = await target.refuses("register", request, { ...REJECTED, says: ["schema_uri"] });
      expect(JSON.stringify(error)).not.toContain(SECRET);
    }
  });

  it("a caller's metadata", async () => {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${SECRET}`);
    metadata.set("cookie", `session=${SECRET}`);
    await target.refuses("register", {}, INVALID, metadata);
    await target.refuses("getServer", { serverId: "absent" }, { code: "NOT_FOUND", reason: "NOT_FOUND" }, metadata);
  });
});

/** A secret in a path cannot be told from a path: such an endpoint is accepted, and shown to the namespace's readers alone. */
describe("in the path of an endpoint that is dialled and fails", () => {
  it.each([
    ["500", { status: 500, headers: {}, body: "broken" }],
    ["401", { status: 401, headers: { "www-authenticate": "Bearer" }, body: "" }],
    ["a redirect", { status: 302, headers: { location: `http://127.0.0.1:3999/${SECRET}` }, body: "" }],
    ["a page", { status: 200, headers: { "content-type": "text/html" }, body: "<html>" }],
    ["half of JSON", { status: 200, headers: { "content-type": "application/json" }, body: '{"jsonrpc":' }],
  ])("with %s", async (_what, given) => {
    answer = given;
    await fails(`http://127.0.0.1:${(web.address() as AddressInfo).port}/s/${SECRET}/mcp?x=${SECRET}`);
  });

  it("with a closed port", async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const { port } = gone.address() as AddressInfo;
    await new Promise((resolve) => gone.close(resolve));
    await fails(`http://127.0.0.1:${port}/s/${SECRET}/mcp?x=${SECRET}`);
  });

  async function fails(endpoint: string): Promise<void> {
    const { remote } = target;
    const introspected = { serverId: "introspected", instanceId: "instance-1", endpoint, introspect: {} };
    expect((await remote.call("register", introspected)).pending).toBe(true);
    const { server } = await remote.call("getServer", { serverId: "introspected" });
    expect(server.conditions.length).toBeGreaterThan(0);
    expect(JSON.stringify(server.conditions)).not.toContain(SECRET);
    await remote.call("deregister", { serverId: "introspected" });

    await remote.call("register", { serverId: "lazy", instanceId: "instance-1", endpoint, declared: { tools: [{ stub: { name: "t" } }] } });
    const error = await eventually(
      () => failing(remote.call("getFullSchema", { toolId: "lazy/t" })),
      (e) => e.reason !== "LOAD_PENDING",
    );
    expect(error).toMatchObject({ code: "UNAVAILABLE", reason: "LOAD_FAILED", metadata: { tool: "lazy/t" } });
    expect(JSON.stringify(error)).not.toContain(SECRET);
    const { results } = await remote.call("batchGetFullSchemas", { toolIds: ["lazy/t"] });
    expect(JSON.stringify(results)).not.toContain(SECRET);
    await remote.call("deregister", { serverId: "lazy" });
  }
});

describe("in the setting of the store", () => {
  it.each([
    `redis://me:${SECRET}@127.0.0.1:99999`,
    `redis://me:p@ss/${SECRET}@127.0.0.1:3999`,
    `redis://me:1/${SECRET}@127.0.0.1:3999`,
    `http://me:${SECRET}@127.0.0.1`,
    `me:${SECRET}@127.0.0.1`,
    `redis:me:${SECRET}@127.0.0.1`,
  ])("that is refused: %s", (store) => {
    const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
    const { status, stdout, stderr } = spawnSync(process.execPath, [main, "--store", store], { encoding: "utf8", timeout: 20_000 });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("--store (TOOLCRIB_STORE)");
    expect(stderr).not.toContain(SECRET);
  });
});
