import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { McpServer as McpServerV2, Server as ServerV2 } from "@modelcontextprotocol/server";
import { Server as ServerV1 } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer as McpServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { RegistrationEvent, ServerRegistration } from "../../src/client/registrar.js";
import { registerServer } from "../../src/client/registrar.js";
import { readDefinition } from "../../src/domain/definition.js";
import { RenewResult_State as Renewed } from "../../src/gen/toolcrib/v1/registry_service_pb.js";
import { freePort } from "../support/ports.js";
import { Failure, SmallRegistry, until } from "../support/small-registry.js";

interface AnyTool {
  remove(): void;
  update(changes: { description: string }): void;
}

interface AnyServer {
  registerTool(name: string, config: object, run: () => object): AnyTool;
  connect(transport: object): Promise<void>;
  close(): Promise<void>;
}

const KINDS: [string, () => AnyServer][] = [
  ["v1", () => new McpServerV1({ name: "billing", version: "1.0.0" }) as unknown as AnyServer],
  ["v2", () => new McpServerV2({ name: "billing", version: "1.0.0" }) as unknown as AnyServer],
];

function addTool(server: AnyServer, name: string, description = `Does ${name}. And more.`): AnyTool {
  const config = {
    description,
    inputSchema: z.object({ id: z.string(), n: z.number().optional() }),
    annotations: { readOnlyHint: true },
  };
  return server.registerTool(name, config, () => ({ content: [] }));
}

/** A transport that shows what the server writes. */
function tap() {
  const sent: { id?: unknown; method?: string; result?: { tools: object[] } }[] = [];
  const transport = {
    onmessage: undefined as ((message: object) => void) | undefined,
    onclose: undefined as (() => void) | undefined,
    start: () => Promise.resolve(),
    close: () => Promise.resolve(transport.onclose?.()),
    send: (message: object) => Promise.resolve(void sent.push(JSON.parse(JSON.stringify(message)) as object)),
  };
  return { sent, transport };
}

async function wireTools(server: AnyServer): Promise<Buffer[]> {
  const { sent, transport } = tap();
  await server.connect(transport);
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  transport.onmessage?.({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  await until(() => sent.find((m) => m.id === 1), "the answer to initialize");
  transport.onmessage?.({ jsonrpc: "2.0", method: "notifications/initialized" });
  transport.onmessage?.({ jsonrpc: "2.0", id: 2, method: "tools/list", params: {} });
  const answer = await until(() => sent.find((m) => m.id === 2), "the answer to tools/list");
  return (answer.result?.tools ?? []).map((tool) => Buffer.from(JSON.stringify(tool)));
}

let registry: SmallRegistry;
let events: RegistrationEvent[];
const open: ServerRegistration[] = [];

beforeEach(async () => {
  registry = await SmallRegistry.start();
  events = [];
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((registration) => registration.close()));
  registry.stop();
});

function register(server: object, more: object = {}): ServerRegistration {
  const registration = registerServer(server, {
    serverId: "billing",
    endpoint: "http://127.0.0.1:3000/mcp",
    registry: registry.address,
    onEvent: (event) => events.push(event),
    ...more,
  });
  open.push(registration);
  return registration;
}

/** Waits until somebody tries to reach a registry that is not there. */
async function someoneDials(port: number): Promise<void> {
  const server = createServer((socket) => socket.destroy()).listen(port, "127.0.0.1");
  await once(server, "connection");
  server.close();
  await once(server, "close");
}

const happened = (type: RegistrationEvent["type"]) => events.filter((event) => event.type === type).length;

describe.each(KINDS)("the registrar around an McpServer, %s", (_kind, make) => {
  it("sends stubs with the digests of what the server writes on the wire", async () => {
    const server = make();
    register(server, {
      tags: ["finance"],
      toolDefaults: { refund: { tags: ["money"], useWhen: "A customer wants money back." } },
    });
    addTool(server, "refund");
    addTool(server, "invoice");
    await until(() => happened("registered"), "the first Register");
    const [request] = registry.registers;
    expect(request).toMatchObject({ serverId: "billing", endpoint: "http://127.0.0.1:3000/mcp", tags: ["finance"] });
    const tools = request?.offer.case === "declared" ? request.offer.value.tools : [];
    expect(tools.map((tool) => tool.stub?.name)).toEqual(["refund", "invoice"]);
    expect(tools.every((tool) => tool.definition.length === 0)).toBe(true);
    expect(tools[0]?.stub).toMatchObject({
      tags: ["money"],
      useWhen: "A customer wants money back.",
      hints: { readOnly: true },
    });
    const wire = (await wireTools(server)).map(readDefinition);
    expect(tools.map((tool) => tool.stub?.digest)).toEqual(wire.map((read) => (read.ok ? read.definition.digest : "")));
  });

  it("names a credential of the registry's operator, and none unless it is told", async () => {
    register(make());
    register(make(), { serverId: "guarded", credential: "vault", sharePrivate: true });
    await until(() => registry.servers.size === 2, "both Registers");
    expect(registry.servers.get("billing")?.request).toMatchObject({ credential: "", sharePrivate: false });
    expect(registry.servers.get("guarded")?.request).toMatchObject({ credential: "vault", sharePrivate: true });
  });

  it("says how it wants to be looked after, and nothing unless it is told", async () => {
    register(make(), { serverId: "plain" });
    register(make(), { serverId: "probed", probe: { intervalMs: 90_500, timeoutMs: 2_000, fall: 5 } });
    register(make(), { serverId: "left-alone", probe: { off: true } });
    await until(() => registry.servers.size === 3, "all are registered");
    const probeOf = (serverId: string) => registry.servers.get(serverId)?.request.probe;
    expect(probeOf("plain")).toBeUndefined();
    expect(probeOf("probed")).toMatchObject({ interval: { seconds: 90n, nanos: 500_000_000 }, timeout: { seconds: 2n }, fall: 5, rise: 0, off: false });
    expect(probeOf("left-alone")).toMatchObject({ fall: 0, rise: 0, off: true });
    expect(probeOf("left-alone")?.interval).toBeUndefined();
  });

  it("sends the very bytes of the wire with inline, and without an endpoint always", async () => {
    for (const options of [{ inline: true }, { endpoint: undefined }]) {
      const server = make();
      addTool(server, "refund");
      const registration = register(server, options);
      await until(() => registration.leaseId, "a lease");
      const offer = registry.registers.at(-1)?.offer;
      const sent = offer?.case === "declared" ? offer.value.tools.map((tool) => Buffer.from(tool.definition)) : [];
      expect(sent).toEqual(await wireTools(server));
      await registration.close();
    }
  });

  it("registers again, once, for a burst of changes: connected or not", async () => {
    const server = make();
    addTool(server, "first");
    register(server);
    await until(() => happened("registered") === 1, "the first Register");
    const second = addTool(server, "second");
    addTool(server, "third");
    await until(() => registry.toolNames("billing").length === 3, "the new tools");
    expect(registry.registers.length).toBe(2);
    const { sent, transport } = tap();
    await server.connect(transport);
    second.update({ description: "Another text." });
    second.update({ description: "A third text." });
    await until(() => registry.registers.length === 3, "the changed tool");
    expect(sent.filter((m) => m.method === "notifications/tools/list_changed").length).toBeGreaterThan(0);
    second.remove();
    await until(() => registry.toolNames("billing").join() === "first,third", "the removed tool");
  });

  it("starts while the registry is away, and registers when it comes up", async () => {
    const port = await freePort();
    const server = make();
    addTool(server, "refund");
    const registration = register(server, { registry: `127.0.0.1:${port}` });
    expect(registration.leaseId).toBeUndefined();
    await until(() => happened("retrying") >= 2, "two failed attempts");
    await registry.stop();
    await registry.listen(port);
    await until(() => registration.leaseId, "a lease");
    expect(registry.toolNames("billing")).toEqual(["refund"]);
  });

  it("registers a server that has no tools yet", async () => {
    const server = make();
    register(server);
    await until(() => happened("registered"), "the first Register");
    expect(registry.toolNames("billing")).toEqual([]);
    expect(registry.registers[0]?.allowEmpty).toBe(true);
  });
});

describe("the registrar around a low-level Server", () => {
  it("walks the pages of v1 and hears its own notifications", async () => {
    const server = new ServerV1({ name: "low", version: "1" }, { capabilities: { tools: { listChanged: true } } });
    const names = ["a", "b", "c"];
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const at = Number(params?.cursor ?? 0);
      const tools = [{ name: names[at] ?? "", inputSchema: { type: "object" as const }, "x-own": at }];
      return at + 1 < names.length ? { tools, nextCursor: String(at + 1) } : { tools };
    });
    register(server, { serverId: "low" });
    await until(() => registry.toolNames("low").length === 3, "three pages");
    await server.connect(tap().transport as never);
    names.push("d");
    await server.sendToolListChanged();
    await until(() => registry.toolNames("low").length === 4, "the fourth tool");
  });

  it("works with v2, and says what keeps a list from being read", async () => {
    const server = new ServerV2({ name: "low", version: "1" }, { capabilities: { tools: {} } });
    let broken = true;
    server.setRequestHandler("tools/list", () => {
      if (broken) throw new Error("the database is away");
      return { tools: [{ name: "a", inputSchema: { type: "object" } }] };
    });
    register(server, { serverId: "low" });
    const event = await until(() => events.find((e) => e.type === "retrying"), "the failure");
    expect(event.type === "retrying" && event.error.message).toBe("the database is away");
    broken = false;
    await until(() => registry.toolNames("low").join() === "a", "the tool");
  });

  it("does not stop a server over a wrong address, or over a listener that throws", async () => {
    const made = new ServerV1({ name: "low", version: "1" }, { capabilities: { tools: {} } });
    const registration = register(made, { registry: "ftp://nowhere" });
    const event = await until(() => events.find((e) => e.type === "refused"), "the refusal");
    expect(event.type === "refused" && event.error.message).toContain("the scheme ftp:// is unknown");
    await registration.close();
    const warned = once(process, "warning") as Promise<[Error]>;
    const other = register(made, {
      onEvent: () => {
        throw new Error("listener's own");
      },
    });
    await until(() => other.leaseId, "a lease");
    expect((await warned)[0].message).toContain("listener's own");
    expect(registry.registers.length).toBe(1);
  });

  it("refuses what is no server", () => {
    expect(() => registerServer({}, { serverId: "x" })).toThrow(TypeError);
  });
});

describe("a lease", () => {
  const server = () => {
    const made = KINDS[0]![1]();
    addTool(made, "refund");
    return made;
  };

  it("is renewed together with all others of the process", async () => {
    register(server(), { serverId: "one" });
    register(server(), { serverId: "two" });
    await until(() => registry.renews.filter((renew) => renew.leases.length === 2).length >= 3, "three joint renewals");
    const instances = registry.registers.map((request) => request.instanceId);
    expect(new Set(instances).size).toBe(1);
    expect(instances[0]).toMatch(/^[A-Za-z0-9._-]{8,64}$/);
  });

  it("that the registry lost is registered again", async () => {
    const registration = register(server());
    const first = await until(() => registration.leaseId, "a lease");
    registry.servers.clear();
    await until(() => registration.leaseId !== undefined && registration.leaseId !== first, "another lease");
    expect(happened("again")).toBe(1);
  });

  it("is kept over REGISTER_AGAIN, goes on quietly over SUPERSEDED, and ends with DEREGISTERED", async () => {
    const registration = register(server());
    await until(() => registration.leaseId, "a lease");
    registry.renewState = Renewed.REGISTER_AGAIN;
    await until(() => registry.registers.length >= 2, "a second Register");
    registry.renewState = Renewed.SUPERSEDED;
    await until(() => happened("superseded"), "the notice");
    const renewed = registry.renews.length;
    await until(() => registry.renews.length >= renewed + 3, "more renewals");
    expect(happened("superseded")).toBe(1);
    registry.renewState = Renewed.DEREGISTERED;
    await until(() => happened("deregistered"), "the end");
    expect(registration.leaseId).toBeUndefined();
    const after = registry.renews.length + registry.registers.length;
    registration.changed();
    await registration.close();
    expect(registry.renews.length + registry.registers.length).toBe(after);
    expect(registry.deregisters.length).toBe(0);
  });

  it("survives a registry that is away for a while", async () => {
    const registration = register(server());
    const lease = await until(() => registration.leaseId, "a lease");
    const { port } = registry;
    registry.stop();
    await someoneDials(port);
    const before = registry.renews.length;
    await registry.listen(port);
    await until(() => registry.renews.length > before, "a renewal");
    expect(registration.leaseId).toBe(lease);
    expect(registry.registers.length).toBe(1);
  });

  it("is ended by close(), which does not wait for a dead registry", async () => {
    const registration = register(server());
    const lease = await until(() => registration.leaseId, "a lease");
    await registration.close();
    expect(registry.deregisters.map((d) => d.target.value)).toEqual([lease]);
    expect(events.at(-1)).toEqual({ type: "closed", serverId: "billing", removed: true });
    const other = register(server(), { serverId: "other" });
    await until(() => other.leaseId, "a lease");
    registry.stop();
    await other.close();
    expect(events.at(-1)).toEqual({ type: "closed", serverId: "other", removed: false });
  });

  it("that is refused says so and waits for other tools", async () => {
    registry.refusal = new Failure("INVALID_REQUEST", "server_id: bad", {
      violations: [{ field: "server_id", description: "bad" }],
    });
    const made = server();
    register(made);
    const event = await until(() => events.find((e) => e.type === "refused"), "the refusal");
    expect(event.type === "refused" && event.error).toMatchObject({
      reason: "INVALID_REQUEST",
      violations: [{ field: "server_id" }],
    });
    registry.refusal = undefined;
    addTool(made, "another");
    await until(() => happened("registered"), "a Register after the change");
  });
});

describe("a process with a registered server", () => {
  const script = fileURLToPath(new URL("../fixtures/client/registered-process.mjs", import.meta.url));

  async function start(mode: string) {
    const child = spawn(process.execPath, [script, registry.address, mode], { stdio: ["pipe", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    const exit = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
    await until(() => registry.servers.has("proc"), `registration of the process (${mode})`);
    return { child, exit, out: () => out };
  }

  it.each(["SIGTERM", "SIGINT"] as const)("deregisters on %s and still dies of it", async (signal) => {
    const { child, exit } = await start("plain");
    child.kill(signal);
    expect(await exit).toEqual([null, signal]);
    expect(registry.servers.has("proc")).toBe(false);
  });

  it("leaves the program's own handler in charge", async () => {
    const { child, exit, out } = await start("handler");
    child.kill("SIGTERM");
    expect(await exit).toEqual([7, null]);
    expect(out()).toContain("own handler");
    expect(registry.servers.has("proc")).toBe(false);
  });

  it("is not kept alive by the registration, and deregisters when it runs out of work", async () => {
    const { child, exit } = await start("stdin");
    child.stdin.end();
    expect(await exit).toEqual([0, null]);
    expect(registry.servers.has("proc")).toBe(false);
  });
});
