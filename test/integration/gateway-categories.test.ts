/** Drilling down through a gateway: whatever the map of a category names can be asked for, and nothing of it is lost on the way. */
import { beforeAll, afterAll, describe, expect, it } from "vitest";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectClient, type TestGateway, testGateway } from "../support/gateway.js";
import { declared, type RegistryProcess, RemoteRegistry, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const NOTES = ["note", "get_note", "list_notes", "close_window"];
/** One module, whose map does not fit into the shortest answer. */
const RECORDS = Array.from({ length: 150 }, (_, i) => `corehr_v1_employee_record_number_${i}_search`);

let folder: string;
let registry: RegistryProcess;
let remote: RemoteRegistry;
let gateway: TestGateway;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-categories-"));
  registry = await startRegistry({ keep: true, store: "memory", dataDir: folder });
  remote = new RemoteRegistry(registry.grpc, true);
  const tool = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: { type: "object" } });
  await remote.call("register", declared("desk", NOTES.map(tool)));
  await remote.call("register", declared("office", [...RECORDS, "meeting_open", "meeting_close"].map(tool)));
  gateway = await testGateway(registry.grpc, { keep: true });
  await eventually(async () => (await fetch(gateway.url.replace("/mcp", "/readyz"))).status, (status) => status === 200);
});
afterAll(async () => {
  await gateway?.stop();
  remote?.client.close();
  await registry?.kill();
  await rm(folder, { recursive: true, force: true });
});

describe.each(["sdk v1", "sdk v2, negotiating"] as const)("%s", (kind) => {
  const find = async (args: object) => (await connectClient(kind, gateway.url)).call("find_tools", args);
  const shown = (server: string, tool: string) => (kind === "sdk v1" ? `${server}__${tool}` : `${server}/${tool}`);

  it("finds all tools of a module that has the name of one of them", async () => {
    const { text } = await find({ category: "desk" });
    expect(NOTES.filter((name) => !new RegExp(`^- ${shown("desk", name)}(:|$)`, "m").test(text))).toEqual([]);
  });

  it("is shown every tool of a large module", async () => {
    const outer = (await find({ category: "office" })).text;
    expect(outer).toContain("office has 152 tools, too many at once");
    const [, module = ""] = /^(office\/\S+) 150\b/m.exec(outer) ?? [];
    const inner = (await find({ category: module })).text;
    expect(inner).not.toMatch(/^and \d+ more/m);
    expect(RECORDS.filter((name) => !inner.split("\n").includes(`office/${name}`))).toEqual([]);
  });

  it("gets a single tool that such a map names by naming it as the category, with an intent or without", async () => {
    for (const more of [{}, { intent: "look up an employee" }]) {
      const { text, isError } = await find({ category: "office/meeting_open", ...more });
      expect(isError).toBe(false);
      expect(text.match(/^- [^\s:]+/gm)).toEqual([`- ${shown("office", "meeting_open")}`]);
    }
  });

  it("is told what to do about a category that there is not", async () => {
    for (const more of [{}, { intent: "look up an employee" }]) {
      const { text, isError } = await find({ category: "office/nothing", ...more });
      expect([isError, text]).toEqual([true, 'There is no category "office/nothing". Call find_tools without arguments for the categories, or leave it out and say an intent.']);
    }
  });
});
