/** find_tools of a gateway that has a model to choose tools: it answers, hangs, talks nonsense, or is not there. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GatewayOptions } from "../../src/gateway/gateway.js";
import { startChat } from "../support/chat-endpoint.js";
import { toolcribDone } from "../support/cli.js";
import { connectClient, testGateway, toolsetIn } from "../support/gateway.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object" } });
const SECRET = "sk-very-secret-0123456789";
/** Nothing of the parcel's label: only a model finds it. */
const INTENT = "close the overdue purchase order";
const CHOICE = '{"tool_ids": ["post/ship_parcel"]}';

let folder: string;
let registry: RegistryProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-gateway-selector-"));
  registry = await startRegistry({ keep: true, store: "memory", dataDir: folder });
  const remote = new RemoteRegistry(registry.grpc, true);
  const leaseTtl = { seconds: 3_600 };
  await remote.call("register", declared("erp", [tool("close_order", "Close a purchase order."), tool("delete_order", "Delete a purchase order.")], { leaseTtl }));
  await remote.call("register", declared("post", [tool("ship_parcel", "Hand a parcel to the carrier.")], { leaseTtl }));
  const pay = { stub: { name: "pay", briefDescription: "Pay an invoice.", requires: [{ scope: "finance" }] }, definition: Buffer.from(JSON.stringify(tool("pay", "Pay an invoice."))) };
  const push = { stub: { name: "push", briefDescription: "Push commits.", requires: [{ state: "branch=main" }] }, definition: Buffer.from(JSON.stringify(tool("push", "Push commits."))) };
  await remote.call("register", { serverId: "guarded", instanceId: "instance-1", leaseTtl, declared: { tools: [pay, push] } });
  await eventually(() => remote.toolIds(), (ids) => ids.length === 5);
  remote.client.close();
});
afterAll(async () => {
  await registry?.kill();
  await rm(folder, { recursive: true, force: true });
});

const gatewayWith = (endpoint: string, more: Partial<GatewayOptions> = {}) => testGateway(registry.grpc, { selector: { endpoint, model: "small", apiKey: SECRET }, ...more });

describe("a model that answers", () => {
  it("chooses where nothing else is said, in both modes, and search where that is asked for", async () => {
    const chat = await startChat(() => CHOICE);
    const gateway = await gatewayWith(chat.url);
    const session = await connectClient("sdk v1", gateway.url);
    const [findTools] = await session.listed();
    expect(findTools.inputSchema.properties.by).toMatchObject({ enum: ["model", "search"] });
    const chosen = await session.call("find_tools", { intent: INTENT });
    expect(chosen).toMatchObject({ isError: false, text: expect.stringContaining("post__ship_parcel") });
    expect(chosen.text).not.toContain("erp__close_order");
    expect(await session.names()).toEqual(["find_tools", "post__ship_parcel"]);
    expect(chat.asked[0]).toMatchObject({ path: "/v1/chat/completions", body: { model: "small" }, headers: { authorization: `Bearer ${SECRET}` } });
    const asked = chat.asked.length;
    const searched = await session.call("find_tools", { intent: INTENT, by: "search" });
    expect(searched.text).toContain("erp__close_order");
    expect(chat.asked).toHaveLength(asked);

    const modern = await connectClient("sdk v2, negotiating", gateway.url);
    const found = await modern.call("find_tools", { intent: INTENT });
    expect(found.text).toContain("- post/ship_parcel");
    const described = await modern.call("describe_tools", { toolset: toolsetIn(found.text), tools: ["post/ship_parcel"] });
    expect(described.text).toContain("Hand a parcel to the carrier.");
  });

  it("is judged by the gate: what needs a scope stays withheld, and is there where the scope was granted", async () => {
    const chat = await startChat(() => '{"tool_ids": ["guarded/pay"]}');
    const without = await connectClient("sdk v1", (await gatewayWith(chat.url)).url);
    expect((await without.call("find_tools", { intent: "settle the bill" })).text).toMatch(/Not offered: guarded\/pay \(scope: .*finance/);
    expect(await without.names()).toEqual(["find_tools"]);
    const granted = await connectClient("sdk v1", (await gatewayWith(chat.url, { scopes: ["finance"] })).url);
    await granted.call("find_tools", { intent: "settle the bill" });
    expect(await granted.names()).toContain("guarded__pay");
  });
});

describe("a model that is of no use", () => {
  it.each<[string, Parameters<typeof startChat>[0], RegExp]>([
    ["nonsense", () => "I would take the hammer.", /\(the selector's model answered without .*: the gate chose\)/],
    ["tools that there are not", () => '{"tool_ids": ["evil/one"]}', /named no tool that there is: the gate chose\)/],
    ["an error", () => (response) => void response.writeHead(500).end("no"), /: the gate chose\)/],
  ])("is told of in the answer, which is the gate's: %s", async (_what, reply, told) => {
    const chat = await startChat(reply);
    const client = await connectClient("sdk v1", (await gatewayWith(chat.url)).url);
    const { text, isError } = await client.call("find_tools", { intent: INTENT });
    expect(isError).toBe(false);
    expect(text).toContain("erp__close_order");
    expect(text).toMatch(told);
    expect(text).not.toContain(SECRET);
    expect(await client.names()).toContain("erp__close_order");
  });

  it("is waited for no longer than its time, and a caller that gives up ends the question", async () => {
    const chat = await startChat(() => () => undefined);
    const gateway = await gatewayWith(chat.url, { selectorMs: 2_000 });
    const client = await connectClient("sdk v2, negotiating", gateway.url);
    const { text } = await client.call("find_tools", { intent: INTENT });
    expect(text).toContain("- erp/close_order");
    expect(text).toMatch(/took more than 2000 ms: the gate chose\)/);
    await expect.poll(() => chat.left.count).toBe(1);

    const patient = await gatewayWith(chat.url, { selectorMs: 600_000 });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const send = (message: object, session = "") =>
      fetch(patient.url, { method: "POST", headers: { ...headers, ...(session && { "mcp-session-id": session }) }, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
    const begun = await send({ id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } } });
    await begun.text();
    const session = begun.headers.get("mcp-session-id") ?? "";
    const asked = chat.asked.length;
    const answer = send({ id: 7, method: "tools/call", params: { name: "find_tools", arguments: { intent: INTENT } } }, session);
    await expect.poll(() => chat.asked.length).toBe(asked + 1);
    await send({ method: "notifications/cancelled", params: { requestId: 7 } }, session);
    expect(await (await answer).text()).toContain("cancelled while tools were chosen");
    await expect.poll(() => chat.left.count).toBe(2);
  });

  it("is not there: a gateway without one says so where it is asked for, and does not offer it", async () => {
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", gateway.url);
    expect((await client.listed())[0].inputSchema.properties.by).toBeUndefined();
    expect((await client.call("find_tools", { intent: INTENT })).text).not.toContain("the gate chose");
    expect((await client.call("find_tools", { intent: INTENT, by: "model" })).text).toMatch(/no model is set for the selector: the gate chose/);
    const gone = await connectClient("sdk v1", (await gatewayWith("http://127.0.0.1:9/v1")).url);
    expect((await gone.call("find_tools", { intent: INTENT })).text).toMatch(/: the gate chose\)/);
  });
});

describe("facts of the agent's state", () => {
  it("open what waits for them", async () => {
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", gateway.url);
    expect((await client.call("find_tools", { intent: "push the commits" })).text).toMatch(/Not offered: guarded\/push \(precondition: .*branch=main/);
    expect((await client.call("find_tools", { intent: "push the commits", state: ["branch=main"] })).text).toContain("- guarded__push");
    expect((await client.call("find_tools", { intent: "push the commits", state: { branch: "main" } })).text).toContain("- guarded__push");
  });
});

describe("toolcrib gateway", () => {
  it("needs an endpoint and a model together, and a key that can be read", async () => {
    const alone = await toolcribDone(["gateway", "--gateway-selector", "http://127.0.0.1:9/v1"]);
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("--gateway-selector-model")]);
    const key = join(folder, "empty.key");
    await writeFile(key, "\n");
    const empty = await toolcribDone(["gateway", "--gateway-address", "127.0.0.1:0", "--gateway-selector", "http://127.0.0.1:9/v1", "--gateway-selector-model", "m", "--gateway-selector-key-file", key]);
    expect([empty.code, empty.stderr]).toEqual([1, expect.stringMatching(/The selector's key .*1 to 4,096 characters/)]);
  });
});
