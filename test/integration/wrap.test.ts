import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import type { Run } from "../support/cli.js";
import { BIN, processesWith, toolcrib, toolcribDone } from "../support/cli.js";
import { SmallRegistry, until } from "../support/small-registry.js";

const bin = (name: string) =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`, import.meta.url));
const ODD = fileURLToPath(new URL("../fixtures/client/odd-stdio-server.mjs", import.meta.url));

let registry: SmallRegistry;

beforeEach(async () => {
  registry = await SmallRegistry.start();
});
afterEach(() => registry.stop());

async function wrap(command: readonly string[], more: readonly string[] = [], id = "wrapped") {
  const run = toolcrib([
    "wrap",
    "--id",
    id,
    "--registry",
    registry.address,
    ...more,
    "--",
    process.execPath,
    ...command,
  ]);
  const url = await until(() => / is served at (\S+)/.exec(run.stderr())?.[1], `the endpoint: ${run.stderr()}`);
  await until(() => registry.servers.has(id), "the registration");
  return { run, url };
}

/** A process that only this test started: its last argument is a mark. */
let marks = 0;
const mark = () => `mark-${process.pid}-${++marks}`;

const definitions = () => {
  const offer = registry.servers.get("wrapped")?.request.offer;
  return offer?.case === "declared" ? offer.value.tools.map((tool) => Buffer.from(tool.definition).toString()) : [];
};

/** By the real npx, which finds the command in a package's folder. */
function wrapByNpx(id: string, childMark: string): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), "toolcrib-npx-"));
  mkdirSync(join(folder, "node_modules", ".bin"), { recursive: true });
  writeFileSync(join(folder, "package.json"), "{}");
  symlinkSync(BIN, join(folder, "node_modules", ".bin", "toolcrib"));
  const args = ["--offline", "toolcrib", "wrap", "--id", id, "--registry", registry.address, "--"];
  const child = spawn("npx", [...args, process.execPath, ODD, "stubborn", childMark], { cwd: folder, stdio: "ignore" });
  onTestFinished(() => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return child;
}

async function stop(run: Run, signal: NodeJS.Signals = "SIGTERM") {
  run.process.kill(signal);
  return run.exit;
}

async function post(url: string, message: object | string, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: typeof message === "string" ? message : JSON.stringify(message),
  });
  return {
    status: response.status,
    session: response.headers.get("mcp-session-id") ?? "",
    text: await response.text(),
  };
}

async function newSession(url: string): Promise<string> {
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  const { session } = await post(url, { jsonrpc: "2.0", id: 0, method: "initialize", params });
  return session;
}

describe("wrap around the reference servers", () => {
  it.each([
    ["memory", [bin("memory")], "read_graph", {}],
    ["everything", [bin("everything")], "echo", { message: "hello" }],
    ["filesystem", [bin("filesystem"), mkdtempSync(join(tmpdir(), "crib-"))], "list_allowed_directories", {}],
    [
      "sequential-thinking",
      [bin("sequential-thinking")],
      "sequentialthinking",
      { thought: "one", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
    ],
  ])(
    "%s: registered with definitions, listed and called by clients of both SDKs",
    async (_name, command, tool, args) => {
      // Other files run these servers, too: a condition that no package knows marks the process of this test.
      const id = mark();
      const { run, url } = await wrap([`--conditions=${id}`, ...command]);
      const declared = definitions().map((text) => (JSON.parse(text) as { name: string }).name);
      expect(declared).toContain(tool);

      const v1 = new ClientV1({ name: "v1", version: "1" });
      await v1.connect(new HttpV1(new URL(url)) as never);
      expect((await v1.listTools()).tools.map((t) => t.name)).toEqual(declared);
      const first = await v1.callTool({ name: tool, arguments: args });
      expect(first.isError ?? false).toBe(false);
      await v1.close();

      for (const mode of ["legacy", "auto"] as const) {
        const v2 = new ClientV2({ name: "v2", version: "1" }, { versionNegotiation: { mode } });
        await v2.connect(new HttpV2(new URL(url)));
        expect((await v2.listTools()).tools.map((t) => t.name)).toEqual(declared);
        const second = await v2.callTool({ name: tool, arguments: args });
        expect(second.isError ?? false).toBe(false);
        await v2.close();
      }
      expect(await stop(run)).toEqual([0, null]);
      expect(registry.servers.size).toBe(0);
      expect(processesWith(id)).toEqual([]);
    },
    60_000,
  );

  it("passes progress on to the one who asked", async () => {
    const { url } = await wrap([bin("everything")]);
    const client = new ClientV1({ name: "v1", version: "1" });
    await client.connect(new HttpV1(new URL(url)) as never);
    const seen: number[] = [];
    const call = { name: "trigger-long-running-operation", arguments: { duration: 1, steps: 4 } };
    await client.callTool(call, undefined, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3, 4]);
    await client.close();
  });
});

describe("what wrap passes on", () => {
  it("is byte for byte what the server wrote", async () => {
    const { url } = await wrap([ODD, "odd"]);
    expect(definitions()).toEqual([
      `{ "name":"big",  "inputSchema":{"type":"object","properties":{"n":{"const":9007199254740993, "e":1.50e+2}}}, "__proto__":{"x":1} }`,
      String.raw`{"inputSchema" : {"type":"object"},"description":"\u00e9\/ü — first.  Second.","name":"escaped","unknown":[ 1,2 , 3]}`,
    ]);
    const session = await newSession(url);
    const list = await post(url, { jsonrpc: "2.0", id: "α", method: "tools/list" }, { "mcp-session-id": session });
    expect(list.text).toBe(`{"jsonrpc":"2.0","id":"α","result":{"tools":[${definitions().join(" , ")}]}}`);
  });

  it("keeps a request's bytes, too, but for its id and token, and line breaks between them", async () => {
    const { url } = await wrap([ODD, "odd"]);
    const session = await newSession(url);
    const body =
      '{"jsonrpc" : "2.0",\n"id": 77,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0,"big":9007199254740993}}}';
    const { text } = await post(url, body, { "mcp-session-id": session });
    const echoed = /"text":("(?:[^"\\]|\\.)*")/.exec(text)?.[1] ?? '""';
    const arrived = JSON.parse(echoed) as string;
    expect(arrived.replace(/"id": \d+/, '"id": 77')).toBe(body.replace("\n", " "));
    expect(text).toMatch(/^\{"jsonrpc":"2\.0","id":77,"result":.*"exact":1\.0\}\}$/);
  });

  it("keeps many clients apart that use the same ids and tokens", async () => {
    const { url } = await wrap([ODD, "odd"]);
    const sessions = await Promise.all(Array.from({ length: 20 }, () => newSession(url)));
    expect(new Set(sessions).size).toBe(20);
    const call = (n: number) => ({ name: `for-${n}`, arguments: {}, _meta: { progressToken: "same" } });
    const answers = await Promise.all(
      sessions.map((session, n) =>
        post(url, { jsonrpc: "2.0", id: 1, method: "tools/call", params: call(n) }, { "mcp-session-id": session }),
      ),
    );
    answers.forEach(({ text }, n) => {
      expect(text).toContain(`for-${n}\\"`);
      expect(text).toContain('"progressToken":"same"');
      expect(text).toContain('"jsonrpc":"2.0","id":1,"result"');
    });
  });

  it("includes cancellations, under the child's own id", async () => {
    const { url } = await wrap([ODD, "odd"]);
    const session = await newSession(url);
    const headers = { "mcp-session-id": session };
    const stream = await fetch(url, { headers: { ...headers, accept: "text/event-stream" } });
    const pending = post(url, { jsonrpc: "2.0", id: 5, method: "tools/call", params: { name: "wait" } }, headers);
    // The odd server says of a cancellation whether the request waits; asked too early it does not yet.
    await post(url, { jsonrpc: "2.0", id: 6, method: "tools/call", params: { name: "x" } }, headers);
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } };
    expect((await post(url, cancel, headers)).status).toBe(202);
    expect(JSON.parse((await pending).text)).toMatchObject({ id: 5, error: { code: -32800 } });
    const { value } = await stream.body!.getReader().read();
    expect(Buffer.from(value!).toString()).toContain('{"cancelled":true}');
  });

  it("includes changes of the list: to HTTP clients and to the registry", async () => {
    const id = mark();
    const { url } = await wrap([ODD, "changing", id]);
    const client = new ClientV1({ name: "v1", version: "1" });
    let changes = 0;
    client.setNotificationHandler(z.object({ method: z.literal("notifications/tools/list_changed") }) as never, () => {
      changes++;
    });
    await client.connect(new HttpV1(new URL(url)) as never);
    const [server] = processesWith(`changing ${id}`).filter((pid) => !processesWith("bin.js wrap").includes(pid));
    // The GET stream opens behind the client's back: tell it until it hears.
    await until(() => {
      process.kill(server!, "SIGUSR2");
      return changes > 0;
    }, "the notification");
    await until(() => definitions().length > 2, "the new tool in the registry");
    await client.close();
  });

  it("is the 2026-07-28 era as it is, when the child speaks only that", async () => {
    const id = mark();
    const { url } = await wrap([ODD, "modern", id]);
    expect(definitions().length).toBe(2);
    const client = new ClientV2({ name: "v2", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new HttpV2(new URL(url)));
    expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["big", "escaped"]);
    await client.close();
    const legacy = await post(url, { jsonrpc: "2.0", id: 1, method: "initialize", params: {} });
    expect(JSON.parse(legacy.text)).toMatchObject({ id: 1, error: { code: -32022 } });
    const [server] = processesWith(`modern ${id}`).filter((pid) => !processesWith("bin.js wrap").includes(pid));
    process.kill(server!, "SIGUSR2");
    await until(() => definitions().length === 3, "the new tool in the registry");
  });

  it("includes subscriptions of the 2026-07-28 era, under the client's own id", async () => {
    const id = mark();
    const { url } = await wrap([ODD, "modern", id]);
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const listen = {
      jsonrpc: "2.0",
      id: "sub-1",
      method: "subscriptions/listen",
      params: { notifications: { toolsListChanged: true }, _meta: meta },
    };
    const leave = new AbortController();
    const response = await fetch(url, {
      method: "POST",
      signal: leave.signal,
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify(listen),
    });
    const reader = response.body!.getReader();
    let text = "";
    const read = async (what: string) => {
      while (!text.includes(what)) text += Buffer.from((await reader.read()).value ?? []).toString();
    };
    await read("notifications/subscriptions/acknowledged");
    const [server] = processesWith(`modern ${id}`).filter((pid) => !processesWith("bin.js wrap").includes(pid));
    process.kill(server!, "SIGUSR2");
    await read("notifications/tools/list_changed");
    expect(text.match(/"io.modelcontextprotocol\/subscriptionId":"sub-1"/g)?.length).toBe(2);
    leave.abort();
  });

  it("is both eras on one connection, where the child can", async () => {
    const run = toolcrib([
      "wrap",
      "--id",
      "wrapped",
      "--registry",
      registry.address,
      "--",
      process.execPath,
      BIN,
      "sample",
    ]);
    const url = await until(() => / is served at (\S+)/.exec(run.stderr())?.[1], "the endpoint");
    for (const mode of ["legacy", "auto"] as const) {
      const client = new ClientV2({ name: "v2", version: "1" }, { versionNegotiation: { mode } });
      await client.connect(new HttpV2(new URL(url)));
      const call = { name: "convert_units", arguments: { value: 26.2188, from: "mi", to: "km" } };
      expect((await client.callTool(call)).content).toEqual([{ type: "text", text: "42.1950684672 km" }]);
      await client.close();
    }
  });
});

describe("the wrapped endpoint refuses", () => {
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

  it("callers from elsewhere, unknown sessions, and what is no message", async () => {
    const { url } = await wrap([ODD, "odd"]);
    const session = await newSession(url);
    const known = { "mcp-session-id": session };
    expect((await post(url, ping, { ...known, origin: "https://evil.example" })).status).toBe(403);
    expect((await post(url, ping, { ...known, origin: "http://localhost:5173" })).status).toBe(200);
    expect((await post(url, ping)).status).toBe(400);
    expect((await post(url, ping, { "mcp-session-id": "stranger" })).status).toBe(404);
    expect((await post(url, "{", known)).status).toBe(400);
    expect((await post(url, [ping], known)).status).toBe(400);
    expect((await post(url, "x".repeat(5 * 1024 * 1024), known)).status).toBe(413);
    expect((await post(url.replace("/mcp", "/"), ping, known)).status).toBe(404);
    expect((await post(url, ping, { ...known, "mcp-method": "tools/list" })).status).toBe(400);
    expect((await fetch(url, { method: "PUT", headers: known })).status).toBe(405);
    expect((await fetch(url, { method: "DELETE", headers: known })).status).toBe(200);
    expect((await post(url, ping, known)).status).toBe(404);
    expect((await fetch(url)).status).toBe(405);
  });

  it("a foreign Host, unless it was advertised", async () => {
    const { request } = await import("node:http");
    const { url } = await wrap([ODD, "odd"], [
      ...["--advertise", "https://tools.example/odd/mcp"],
      ...["--credential", "vault"],
    ]);
    const endpoint = "https://tools.example/odd/mcp";
    expect(registry.servers.get("wrapped")?.request).toMatchObject({ endpoint, credential: "vault" });
    const statusFor = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const call = request(
          url,
          { method: "POST", headers: { host, "content-type": "application/json" } },
          (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          },
        );
        call.on("error", reject);
        call.end(JSON.stringify(ping));
      });
    expect(await statusFor("evil.example")).toBe(403);
    expect(await statusFor("tools.example")).toBe(400); // Past the guard: only the session is missing.
    expect(registry.servers.get("wrapped")?.request.endpoint).toBe("https://tools.example/odd/mcp");
  });
});

describe("wrap and its child", () => {
  it("a child that ends takes the registration and the exit code with it", async () => {
    const { run, url } = await wrap([ODD, "crash"]);
    const session = await newSession(url);
    const answer = await post(
      url,
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x" } },
      { "mcp-session-id": session },
    );
    expect(JSON.parse(answer.text)).toMatchObject({
      id: 1,
      error: { code: -32603, message: "the server exited with code 3" },
    });
    expect(await run.exit).toEqual([3, null]);
    expect(registry.servers.size).toBe(0);
  });

  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s ends even a child that will not, after deregistering",
    async (signal) => {
      const id = mark();
      const { run } = await wrap([ODD, "stubborn", id]);
      expect(await stop(run, signal)).toEqual([0, null]);
      expect(registry.servers.size).toBe(0);
      expect(processesWith(id)).toEqual([]);
    },
  );

  it("one Ctrl-C that arrives twice is one", async () => {
    const { run } = await wrap([ODD, "odd"]);
    run.process.kill("SIGINT");
    expect(await stop(run, "SIGINT")).toEqual([0, null]);
    expect(registry.servers.size).toBe(0);
  });

  it("kill -9 of wrap leaves nobody behind", async () => {
    const id = mark();
    const { run } = await wrap([ODD, "stubborn", id]);
    expect(processesWith(id).length).toBe(2);
    expect(await stop(run, "SIGKILL")).toEqual([null, "SIGKILL"]);
    await until(() => processesWith(id).length === 0, "the end of the child");
  });

  it("grandchildren go, too", async () => {
    const id = mark();
    const run = toolcrib([
      "wrap",
      "--id",
      "wrapped",
      "--registry",
      registry.address,
      "--",
      "sh",
      "-c",
      `"${process.execPath}" "${ODD}" stubborn ${id}; true`,
    ]);
    await until(() => registry.servers.has("wrapped"), "the registration");
    expect(await stop(run)).toEqual([0, null]);
    expect(processesWith(id)).toEqual([]);
  });

  it.each(["SIGTERM", "SIGHUP", "SIGKILL"] as const)("ends when npx alone, which started it, is ended by %s", async (signal) => {
    const id = mark();
    const npx = wrapByNpx("wrapped", id);
    await until(() => registry.servers.has("wrapped"), "the registration");
    npx.kill(signal);
    await until(() => registry.servers.size === 0, "the deregistration");
    await until(() => processesWith(id).length === 0, "the end of all processes");
  });

  it("goes on when a parent ends that is no npx, whatever variables it inherited", async () => {
    const [daemon, control] = [mark(), mark()];
    const command = `"${process.execPath}" "${BIN}" wrap --id daemon --registry ${registry.address} -- "${process.execPath}" "${ODD}" stubborn ${daemon} & wait`;
    const shell = spawn("sh", ["-c", command], { stdio: "ignore", env: { ...process.env, npm_command: "exec" } });
    const npx = wrapByNpx("control", control);
    await until(() => registry.servers.size === 2, "both registrations");
    shell.kill("SIGKILL");
    await once(shell, "close");
    npx.kill("SIGKILL");
    await until(() => processesWith(control).length === 0, "the end of the one that npx started");
    expect([...registry.servers.keys()]).toEqual(["daemon"]);
    const [wrapper] = processesWith(daemon).sort((a, b) => a - b);
    process.kill(wrapper ?? 0, "SIGTERM");
    await until(() => processesWith(daemon).length === 0, "the end of the daemon");
  });

  it("says what is wrong with a command", async () => {
    const wrapping = (...command: string[]) =>
      toolcribDone(["wrap", "--id", "x", "--registry", registry.address, "--", ...command]);
    expect(await wrapping("no-such-command-here")).toMatchObject({
      code: 1,
      stderr: "cannot run no-such-command-here: no such command\n",
    });
    const died = await wrapping(process.execPath, "-e", "process.exit(4)");
    expect(died.code).toBe(4);
    expect(died.stderr).toContain("exited with code 4 before it answered as an MCP server");
    expect(registry.registers).toEqual([]);
  });

  it("says for what it waits, and ends with a true sentence when nothing comes", async () => {
    const id = mark();
    const args = ["wrap", "--id", "silent", "--registry", registry.address, "--start-timeout", "5s", "--"];
    const { code, stderr } = await toolcribDone([...args, process.execPath, ODD, "silent", id]);
    expect(code).toBe(1);
    expect(stderr.split("\n")).toEqual([
      "toolcrib wrap: the server has not answered initialize yet: waiting up to 5 s in all (--start-timeout)",
      expect.stringMatching(/ cannot be wrapped: it answered nothing within 5 s: it is no MCP server that speaks over/),
      "",
    ]);
    expect(processesWith(id)).toEqual([]);
    const wrong = await toolcribDone(["wrap", "--id", "x", "--start-timeout", "5", "--", "true"]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("such as 500ms, 90s or 2m") });
  });

  it("goes on over noise, and ends while the child still starts", async () => {
    const { run } = await wrap([ODD, "noise"]);
    expect(run.stderr()).toContain("something that is no message: Starting up");
    const id = mark();
    const silent = toolcrib([
      "wrap",
      "--id",
      "silent",
      "--registry",
      registry.address,
      "--",
      process.execPath,
      ODD,
      "silent",
      id,
    ]);
    await until(() => processesWith(id).length === 2, "the child");
    expect(await stop(silent)).toEqual([0, null]);
  });

  it("serves on while the registry is away, and registers when it comes", async () => {
    const { port } = registry;
    registry.stop();
    const run = toolcrib([
      "wrap",
      "--id",
      "wrapped",
      "--registry",
      registry.address,
      "--",
      process.execPath,
      ODD,
      "odd",
    ]);
    const url = await until(() => / is served at (\S+)/.exec(run.stderr())?.[1], "the endpoint");
    await until(() => run.stderr().includes("trying again"), "the notice");
    expect(await newSession(url)).not.toBe("");
    await registry.listen(port);
    await until(() => registry.servers.has("wrapped"), "the registration");
    expect(registry.servers.get("wrapped")?.request.endpoint).toBe(url);
  });
});
