/** Official clients of both SDKs against a gateway over a real registry, with the reference servers behind it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLIENTS, connectClient, type TestGateway, testGateway, toolsetIn } from "../support/gateway.js";
import { type ReferenceServers, startReferenceServers } from "../support/reference-servers.js";
import { type RegistryProcess, RemoteRegistry, startRegistry } from "../support/registry.js";

let folder: string;
let registry: RegistryProcess;
let remote: RemoteRegistry;
let servers: ReferenceServers;
let gateway: TestGateway;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-gateway-"));
  await writeFile(join(folder, "note.txt"), "Remember the milk.");
  registry = await startRegistry({ keep: true, store: "memory", dataDir: join(folder, "data") });
  remote = new RemoteRegistry(registry.grpc, true);
  servers = await startReferenceServers(registry.grpc, folder, remote);
  gateway = await testGateway(registry.grpc, { keep: true });
}, 60_000);
afterAll(async () => {
  await gateway?.stop();
  await servers?.stop();
  remote?.client.close();
  await registry?.kill();
  await rm(folder, { recursive: true, force: true });
});

describe.each(CLIENTS.filter((k) => k !== "sdk v2, negotiating"))("%s, dynamic", (kind) => {
  it("sees find_tools alone, then what it looked for, then something else", async () => {
    const client = await connectClient(kind, gateway.url);
    expect(await client.names()).toEqual(["find_tools"]);
    expect((await client.listed())[0].description).toMatch(/everything[\s\S]*files[\s\S]*memory[\s\S]*thinking/);

    const files = await client.call("find_tools", { intent: "read the contents of a text file" });
    expect(files.text).toContain("files__read_text_file");
    await expect.poll(client.changes).toBeGreaterThan(0);
    const names = await client.names();
    expect(names).toContain("files__read_text_file");
    const note = await client.call("files__read_text_file", { path: join(folder, "note.txt") });
    expect(note).toMatchObject({ isError: false });
    expect(note.text).toContain("Remember the milk.");

    const before = client.changes();
    await client.call("find_tools", { intent: "remember entities in a knowledge graph" });
    await expect.poll(client.changes).toBeGreaterThan(before);
    const switched = await client.names();
    expect(switched).toContain("memory__create_entities");
    expect(switched).not.toContain("files__read_text_file");
    const unloaded = await client.call("files__read_text_file", { path: "x" });
    expect(unloaded).toMatchObject({ isError: true });
    expect(unloaded.text).toContain("is not loaded now");
  });

  it("loads a category as a whole", async () => {
    const client = await connectClient(kind, gateway.url);
    await client.call("find_tools", { category: "memory" });
    const names = await client.names();
    expect(names.filter((n) => n.startsWith("memory__"))).toHaveLength(9);
    expect(names).toHaveLength(10);
  });

  it("gets definitions but for their names as the servers sent them", async () => {
    const client = await connectClient(kind, gateway.url);
    await client.call("find_tools", { category: "everything" });
    for (const tool of await client.listed()) {
      if (tool.name === "find_tools") continue;
      const toolId = `everything/${tool.name.replace("everything__", "")}`;
      const { schema } = await remote.call("getFullSchema", { toolId });
      expect({ ...tool, name: toolId.slice(11) }).toMatchObject({ name: toolId.slice(11), inputSchema: JSON.parse(schema.definition).inputSchema });
    }
  });
});

describe("sdk v2, negotiating", () => {
  it("takes the stable way: find, describe, call", async () => {
    const client = await connectClient("sdk v2, negotiating", gateway.url);
    expect(client.era).toBe("2026-07-28");
    const list = JSON.stringify(await client.listed());
    expect(await client.names()).toEqual(["find_tools", "describe_tools", "call_tool"]);
    const found = await client.call("find_tools", { intent: "read the contents of a text file" });
    const toolset = toolsetIn(found.text);
    expect(found.text).toContain("files/read_text_file");
    const described = await client.call("describe_tools", { toolset, tools: ["files/read_text_file"] });
    expect(described.text).toContain('"inputSchema"');
    const called = await client.call("call_tool", { toolset, tool: "files/read_text_file", arguments: { path: join(folder, "note.txt") } });
    expect(called.text).toContain("Remember the milk.");
    expect(JSON.stringify(await client.listed())).toBe(list);
  });
});
