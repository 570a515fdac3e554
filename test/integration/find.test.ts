/** FindTools against a real registry: over gRPC, over HTTP as JSON, and as a person sees it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { detailsOf } from "../support/details.js";
import { toolcribDone } from "../support/cli.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry } from "../support/registry.js";

const tool = (name: string, description: string, properties: object = {}) => ({ name, description, inputSchema: { type: "object", properties } });
const TOOLS = [
  tool("close_purchase_order", "Close a purchase order that is done.", { order_id: { type: "string", description: "Which order" } }),
  tool("delete_purchase_order", "Delete a purchase order for good.", { order_id: { type: "string" } }),
  tool("list_invoices", "List overdue invoices.", { since: { type: "string" } }),
];

let folder: string;
let registry: RegistryProcess;
let remote: RemoteRegistry;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-find-"));
  registry = await startRegistry({ keep: true, dataDir: folder });
  remote = new RemoteRegistry(registry.grpc, true);
  await remote.call("register", declared("erp", TOOLS, { title: "Purchasing" }));
});
afterAll(async () => {
  remote.client.close();
  await registry.kill();
  await rm(folder, { recursive: true, force: true });
});

async function overHttp(request: object): Promise<{ status: number; body: any }> {
  const answer = await fetch(`${registry.http}/toolcrib.v1.GateService/FindTools`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return { status: answer.status, body: await answer.json() };
}

describe("FindTools", () => {
  it("answers the same over both listeners: the stub as stored, its availability, why and what it costs", async () => {
    const request = { intent: "close the overdue purchase order" };
    const { tools, answerTokens, catalogueTokens, ...rest } = await remote.call("findTools", request);
    expect(rest).toMatchObject({ weak: false, withheld: [], catalogueTools: 3, stale: false });
    const { stubs, revision } = await remote.call("getStubs");
    expect(rest.revision).toBe(revision);
    const stored = stubs.find((s: { name: string }) => s.name === "close_purchase_order");
    expect(tools[0]).toMatchObject({ stub: stored, reasons: [{ kind: "KIND_MATCHED_WORDS" }] });
    expect(stored.availability).toBe("AVAILABILITY_AVAILABLE");
    expect(tools.map((t: { stub: { name: string } }) => t.stub.name)[0]).toBe("close_purchase_order");
    expect(answerTokens).toBe(tools.reduce((sum: number, t: { estimatedTokens: number }) => sum + t.estimatedTokens, 0));
    expect(catalogueTokens).toBe(stubs.reduce((sum: number, s: { estimatedTokens: number }) => sum + s.estimatedTokens, 0));
    const { status, body } = await overHttp(request);
    expect(status).toBe(200);
    expect(body.tools.map((t: any) => [t.stub.toolId, t.score, t.estimatedTokens])).toEqual(tools.map((t: any) => [t.stub.toolId, t.score, t.estimatedTokens]));
    expect(body.tools.map((t: any) => t.margin ?? 0)).toEqual(tools.map((t: any) => t.margin));
  });

  it("brings schemas along, readable in JSON", async () => {
    const { tools } = await remote.call("findTools", { intent: "close purchase order", includeSchemas: "SCHEMA_INCLUSION_FULL", topK: 1 });
    expect(JSON.parse(tools[0].definition.definition.toString())).toEqual(TOOLS[0]);
    const { body } = await overHttp({ intent: "close purchase order", includeSchemas: "SCHEMA_INCLUSION_COMPACT", topK: 1 });
    expect(JSON.parse(body.tools[0].definition.definitionJson)).toMatchObject({ name: "close_purchase_order" });
    expect(body.tools[0].definition.view).toBe("SCHEMA_VIEW_COMPACT");
  });

  it("finds by the words of parameters, read from the store", async () => {
    await expect.poll(async () => (await remote.call("findTools", { intent: "since" })).tools[0]?.stub.name).toBe("list_invoices");
  });

  it("answers from a min_revision that has just been written", async () => {
    const { revision } = await remote.call("register", declared("films", [tool("translate_subtitles", "Translate subtitles")], { instanceId: "films-0001" }));
    const { tools } = await remote.call("findTools", { intent: "translate subtitles", minRevision: revision });
    expect(tools[0].stub.toolId).toBe("films/translate_subtitles");
    await remote.call("deregister", { serverId: "films" });
    expect((await remote.call("findTools", { intent: "translate subtitles" })).tools).toEqual([]);
  });

  it("withholds the tools of an isolated server, and says so", async () => {
    await remote.call("register", declared("shaky", [tool("shake_hands", "Shake hands")], { instanceId: "shaky-0001" }));
    await remote.call("isolateServer", { serverId: "shaky", why: "test" });
    const { tools, withheld } = await remote.call("findTools", { intent: "shake hands" });
    expect(tools).toEqual([]);
    expect(withheld).toMatchObject([{ toolId: "shaky/shake_hands", cause: "CAUSE_UNHEALTHY" }]);
    await remote.call("deregister", { serverId: "shaky" });
  });
});

const intent = "close order";
const BAD: [what: string, request: object, fields: string[]][] = [
  ["no intent", {}, ["intent"]],
  ["an empty intent", { intent: " \n " }, ["intent"]],
  ["100 KB of intent", { intent: "word ".repeat(20_000) }, ["intent"]],
  ["top_k −1", { intent, topK: -1 }, ["top_k"]],
  ["top_k of a million", { intent, topK: 1_000_000 }, ["top_k"]],
  ["a negative budget", { intent, tokenBudget: -5 }, ["token_budget"]],
  ["51 turns", { intent, history: Array.from({ length: 51 }, () => "x") }, ["history"]],
  ["a tag that can be none", { intent, filter: { tagsAny: ["UPPER"] } }, ["filter.tags_any[0]"]],
  ["tools that are away", { intent, filter: { availability: "AVAILABILITY_UNAVAILABLE" } }, ["filter.availability"]],
  ["recent tools that can be none", { intent, recentTools: [{ toolId: "no slash" }] }, ["recent_tools[0].tool_id"]],
  ["an empty scope and a fact of two lines", { intent, scopes: [""], state: ["a\nb"] }, ["state[0]", "scopes[0]"]],
  ["all at once", { topK: 51, tokenBudget: -1, namespace: "NO" }, ["namespace", "intent", "top_k", "token_budget"]],
];

describe("bad input", () => {
  it.each(BAD)("%s is refused with every violation, over both listeners", async (_what, request, fields) => {
    const error = await remote.call("findTools", request).then(
      () => expect.fail("was answered"),
      (e: unknown) => detailsOf(e as never),
    );
    expect(error).toMatchObject({ reason: "INVALID_REQUEST" });
    const { status, body } = await overHttp(request);
    expect([status, body.code]).toEqual([400, "invalid_argument"]);
    const bad = body.details.find((d: { type: string }) => d.type === "google.rpc.BadRequest").debug.fieldViolations;
    expect(new Set(bad.map((v: { field: string }) => v.field))).toEqual(new Set(fields));
  });

  it.each([
    ["only stop words", "the of and a"],
    ["only emoji", "🎉🔥💩"],
    ["NUL and other controls", "\u0000\u0001\u0007"],
    ["signs", "%%% ((( \\ ' \" ;--"],
  ])("%s are an intent that nothing fits", async (_what, said) => {
    const answer = await remote.call("findTools", { intent: said });
    expect(answer).toMatchObject({ tools: [], weak: true });
  });

  it("an unknown tag selects nothing; a category and an inclusion that are not known say so", async () => {
    expect(await remote.call("findTools", { intent, filter: { tagsAny: ["unheard-of"] } })).toMatchObject({ tools: [], weak: true });
    for (const [request, reason] of [
      [{ intent, filter: { category: "finance" } }, "NOT_FOUND"],
      [{ intent, includeSchemas: 77 }, "VIEW_UNSUPPORTED"],
    ] as const) {
      const error = await remote.call("findTools", request).then(() => undefined, (e: unknown) => detailsOf(e as never));
      expect(error?.reason).toBe(reason);
    }
  });
});

describe("GetModuleMap", () => {
  it("is the same over both listeners, names what FindTools takes, and looks into modules", async () => {
    const map = await remote.call("getModuleMap");
    expect(map).toMatchObject({ toolCount: 3, leftOut: 0, stale: false, modules: [{ name: "erp", toolCount: 3 }] });
    expect(map.text).toBe("3 tools on 1 server.\nerp 3: purchase (close, delete); invoice (list)");
    const answer = await fetch(`${registry.http}/toolcrib.v1.GateService/GetModuleMap`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    expect(await answer.json()).toMatchObject({ text: map.text, estimatedTokens: map.estimatedTokens });
    const inside = await remote.call("getModuleMap", { module: "erp/invoice" });
    expect(inside.modules).toEqual([{ name: "erp/list_invoices", toolCount: 1 }]);
    const { tools } = await remote.call("findTools", { intent: "list or close", filter: { category: "erp/invoice" } });
    expect(tools.map((t: any) => t.stub.name)).toEqual(["list_invoices"]);
    expect(await remote.call("getModuleMap", { namespace: "empty" })).toMatchObject({ text: "0 tools on 0 servers.", modules: [] });
  });

  it.each([
    [{ tokenBudget: -1 }, "INVALID_REQUEST"],
    [{ tokenBudget: 19 }, "INVALID_REQUEST"],
    [{ tokenBudget: 1_000_000 }, "INVALID_REQUEST"],
    [{ module: "x".repeat(500) }, "INVALID_REQUEST"],
    [{ module: "nobody" }, "NOT_FOUND"],
    [{ module: "erp/\u0000" }, "NOT_FOUND"],
  ])("refuses %o", async (request, reason) => {
    const error = await remote.call("getModuleMap", request).then(() => undefined, (e: unknown) => detailsOf(e as never));
    expect(error?.reason).toBe(reason);
  });

  it("toolcrib map prints it", async () => {
    const run = (...args: string[]) => toolcribDone(["map", ...args, "--registry", registry.grpc]);
    const { stdout } = await run();
    expect(stdout).toMatch(/^3 tools on 1 server\.\nerp 3: .*\n\n\d+ tokens \(estimated\)\.\n$/);
    expect(JSON.parse((await run("erp", "--json", "--budget", "50")).stdout).modules).toHaveLength(2);
    expect(await run("nobody")).toMatchObject({ code: 1, stderr: expect.stringContaining("no such module") as string });
  });
});

describe("toolcrib find", () => {
  const run = (...args: string[]) => toolcribDone(["find", ...args, "--registry", registry.grpc]);

  it("shows rank, score, why, tokens, and what the whole catalogue would cost", async () => {
    const { code, stdout } = await run("close", "the", "overdue", "purchase", "order");
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expect(lines.every((text) => text.length <= 100), stdout).toBe(true);
    expect(lines[0]).toMatch(/^# +TOOL +SCORE +WHY +TOKENS +DESCRIPTION$/);
    expect(lines[1]).toMatch(/^1 +erp\/close_purchase_order +0\.\d\d +.*close.* +\d+ +Close a purchase/);
    expect(lines.at(-1)).toMatch(/^This answer: \d+ tokens; the whole catalogue \(3 tools\): \d+ tokens \(estimated\)\.$/);
    const json = await run("close the order", "--json", "--schemas", "compact", "--top", "1");
    // What deletes the same thing stands beside what closes it, so that nobody takes one for the other.
    expect(JSON.parse(json.stdout).tools.map((t: any) => [t.stub.name, t.reasons[0].kind])).toEqual([
      ["close_purchase_order", "KIND_MATCHED_WORDS"],
      ["delete_purchase_order", "KIND_SIBLING"],
    ]);
  });

  it("says what was withheld, that nothing fits, and what is wrong with a command", async () => {
    const withheld = await run("close the purchase order", "--budget", "1");
    expect(withheld.stdout).toMatch(/Withheld:\n {2}erp\/close_purchase_order: budget, it takes \d+ estimated tokens and 1 of the budget of 1 were left/);
    expect((await run("xyzzy plugh")).stdout).toContain("No tool has anything of it.");
    expect((await run("anything", "--namespace", "empty")).stdout).toBe("No tools are registered here.\n");
    expect(await run("x", "--top", "many")).toMatchObject({ code: 2, stderr: expect.stringContaining("whole number") as string });
    expect(await run("x", "--top", "99")).toMatchObject({ code: 1, stderr: expect.stringContaining("top_k") as string });
    expect(await run("")).toMatchObject({ code: 2, stderr: expect.stringContaining("say what") as string });
  });
});
