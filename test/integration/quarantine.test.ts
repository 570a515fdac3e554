/** A quarantined tool against a real registry: who sees it, who is told, how it is released, and that a restart changes nothing. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { detailsOf } from "../support/details.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object", properties: { of: { type: "string" } } } });
const TOOLS = [tool("close_order", "Close a purchase order"), tool("list_orders", "List purchase orders"), tool("open_order", "Open a purchase order")];
const ID = "erp/close_order";

async function dataDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-quarantine-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const faultOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("it was answered"),
    (error: unknown) => detailsOf(error as never),
  );
const idsOf = async (remote: RemoteRegistry) => (await remote.call("getStubs", {})).stubs.map((s: { toolId: string }) => s.toolId);

describe("a quarantined tool", () => {
  it("is in no list, no map and no answer; it is named where it is missed, and its definition can be read by digest", { timeout: 60_000 }, async () => {
    const { grpc, ops } = await startRegistry();
    const remote = new RemoteRegistry(grpc);
    await remote.call("register", declared("erp", TOOLS));
    const find = (more: object = {}) => remote.call("findTools", { intent: "close a purchase order", ...more });
    const gone = (await remote.call("getStubs", {})).stubs[0];
    expect((await find()).tools[0].stub.toolId).toBe(ID);
    const all = await find();
    const ear = remote.watch();
    await ear.ready();

    const { tool: shown, withheld, revision } = await remote.call("quarantineTool", { toolId: ID, reason: "it deletes rows" });
    expect({ shown, withheld }).toMatchObject({ withheld: true, shown: { toolId: ID, reason: "it deletes rows", digest: gone.digest, quarantinedBy: "anonymous" } });
    await expect.poll(() => ear.told).toEqual([`QUARANTINED ${ID}`]);
    expect(await idsOf(remote)).toEqual(["erp/list_orders", "erp/open_order"]);
    for (const more of [{}, { namedTools: [ID] }, { includeSchemas: "SCHEMA_INCLUSION_FULL" }, { topK: 50 }, { filter: { serverIds: ["erp"] } }]) {
      const found = await find({ ...more, minRevision: revision });
      expect(found.tools.map((t: { stub: { toolId: string } }) => t.stub.toolId)).not.toContain(ID);
      expect(found.withheld[0]).toMatchObject({ toolId: ID, cause: "CAUSE_QUARANTINED", why: "it is quarantined by anonymous until its definition is approved: it deletes rows" });
      expect(found).toMatchObject({ catalogueTools: 2 });
      expect(Number(found.catalogueTokens)).toBeLessThan(Number(all.catalogueTokens));
    }
    const map = await remote.call("getModuleMap", { module: "erp" });
    expect(map.text).not.toContain("close");
    expect(map.text).toContain("open");

    const refused = await faultOf(remote.call("getFullSchema", { toolId: ID }));
    expect(refused).toMatchObject({ reason: "TOOL_QUARANTINED", metadata: { tool: ID, digest: gone.digest } });
    const { results } = await remote.call("batchGetFullSchemas", { toolIds: [ID, "erp/open_order"] });
    expect(results).toMatchObject([{ toolId: ID, error: { code: 5, reason: "TOOL_QUARANTINED" } }, { schema: { toolId: "erp/open_order" } }]);
    const { schema } = await remote.call("getFullSchema", { digest: gone.digest });
    expect(JSON.parse(schema.definition.toString())).toEqual(TOOLS[0]);
    const { server } = await remote.call("getServer", { serverId: "erp" });
    expect(server).toMatchObject({ toolCount: 2, quarantinedCount: 1, quarantinedTools: [{ toolId: ID, reason: "it deletes rows", digest: gone.digest }] });
    await expect.poll(async () => (await fetch(`${ops}/metrics`)).text()).toContain("toolcrib_quarantined_tools 1");

    expect(await remote.call("approveTool", { toolId: ID, digest: gone.digest })).toMatchObject({ released: true, approvedDigest: gone.digest, tool: null });
    await expect.poll(() => ear.told).toEqual([`QUARANTINED ${ID}`, `RELEASED ${ID}`]);
    expect(ear.events[1]).toMatchObject({ oldDigest: "", newDigest: gone.digest });
    expect((await remote.call("getStubs", {})).stubs[0]).toEqual(gone);
    expect((await find()).tools[0].stub.toolId).toBe(ID);
    // Another definition was approved by nobody.
    const { revision: changed } = await remote.call("register", declared("erp", [tool("close_order", "Close, and delete, a purchase order"), ...TOOLS.slice(1)]));
    expect((await find({ minRevision: changed })).withheld).toMatchObject([{ cause: "CAUSE_QUARANTINED", why: expect.stringContaining("no longer the approved one") as string }]);
    await expect.poll(() => ear.told.at(-1)).toBe(`QUARANTINED ${ID}`);
  });

  it("stays withheld through a kill and a restart, on the same disk", { timeout: 60_000 }, async () => {
    const folder = await dataDir();
    const first = await startRegistry({ dataDir: folder });
    const before = new RemoteRegistry(first.grpc);
    await before.call("register", declared("erp", TOOLS));
    await before.call("quarantineTool", { toolId: ID, reason: "test" });
    await before.call("quarantineTool", { toolId: "erp/open_order", reason: "test" });
    await before.call("approveTool", { toolId: "erp/open_order" });
    await first.kill();
    const second = await startRegistry({ dataDir: folder });
    const remote = new RemoteRegistry(second.grpc);
    expect(await idsOf(remote)).toEqual(["erp/list_orders", "erp/open_order"]);
    await remote.call("deregister", { serverId: "erp" });
    await remote.call("register", declared("erp", TOOLS));
    expect(await idsOf(remote)).toEqual(["erp/list_orders", "erp/open_order"]);
    expect(await remote.call("approveTool", { toolId: ID })).toMatchObject({ released: true });
    expect(await idsOf(remote)).toEqual([ID, "erp/list_orders", "erp/open_order"]);
  });
});

describe("the command line", () => {
  it("quarantines and approves, and says what is so", { timeout: 60_000 }, async () => {
    const { grpc } = await startRegistry();
    const remote = new RemoteRegistry(grpc);
    await remote.call("register", declared("erp", TOOLS));
    const run = (...args: string[]) => toolcribDone([...args, "--registry", grpc]);
    const { digest } = (await remote.call("getStubs", {})).stubs[0];
    expect(await run("quarantine", ID)).toMatchObject({ code: 2, stderr: expect.stringContaining("--reason") as string });
    expect(await run("quarantine", ID, "--reason", "looks hacked")).toMatchObject({
      code: 0,
      stderr: "",
      stdout: `${ID} is quarantined by anonymous: looks hacked\nIts definition is ${digest}: read it with \`toolcrib get ${digest}\`.\nNo agent is offered it until \`toolcrib approve ${ID}\`.\n`,
    });
    expect((await run("servers")).stdout).toContain(`  erp: quarantined: ${ID} by anonymous: looks hacked\n`);
    expect((await run("ls")).stdout).not.toContain("close_order");
    const missed = await run("find", "close", "a", "purchase", "order");
    expect(missed.stdout + missed.stderr).toContain("quarantined by anonymous until its definition is approved: looks hacked");
    expect(await run("get", ID)).toMatchObject({ code: 1, stderr: expect.stringContaining("looks hacked") as string });
    expect(JSON.parse((await run("get", digest)).stdout)).toEqual(TOOLS[0]);

    const other = `sha256:${"0".repeat(64)}`;
    expect((await run("approve", ID, "--digest", other)).stdout).toBe(
      `${other} is approved for ${ID}, but its definition is ${digest} now: it stays withheld until it has the approved one.\n`,
    );
    expect((await run("approve", ID)).stdout).toBe(`${ID} is released as long as its definition is ${digest}.\n`);
    expect((await run("approve", ID)).stdout).toBe(`${ID} is listed as long as its definition is ${digest}.\n`);
    expect(JSON.parse((await run("approve", ID, "--any", "--json")).stdout)).toMatchObject({ revision: expect.any(String) as string });
    expect((await run("approve", ID)).stdout).toBe(`${ID} is under no quarantine: nothing to approve.\n`);
    expect(await run("approve", "erp/nobody")).toMatchObject({ code: 1, stderr: expect.stringContaining("no such tool") as string });
    expect(await run("approve", ID, "--digest", "abc")).toMatchObject({ code: 1, stderr: expect.stringContaining("64 hex digits") as string });
  });
});
