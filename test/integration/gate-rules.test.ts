/** Rules of a real registry: from a folder, over gRPC, changed and broken while it runs, and as a person checks them. */
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry, temporaryFolder } from "../support/registry.js";

const tool = (name: string, description: string, annotations: object = {}) => ({ name, description, annotations, inputSchema: { type: "object" } });

const RULES = `categories:
  network: [tag:network]
  office: [files/*, tag:network]
rules:
  - name: exports are files
    when: { intent: [export] }
    prefer: [file_operation]
  - name: finance stays offline
    why: Finance sessions touch no network.
    when: { state: [session=finance] }
    deny: [category:network]
  - name: spelled wrong
    deny: [file_operations]
`;

let folder: string;
let registry: RegistryProcess;
let remote: RemoteRegistry;
const file = (name = "default.yaml") => join(folder, "rules", name);
/** As an editor or a config map does it: never half. */
async function write(text: string, name = "default.yaml"): Promise<void> {
  await writeFile(`${file(name)}.new`, text);
  await rename(`${file(name)}.new`, file(name));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolcrib-rules-"));
  await mkdir(join(folder, "rules"));
  await write(RULES);
  registry = await startRegistry({ keep: true, dataDir: join(folder, "data"), args: ["--gate-rules", join(folder, "rules")] });
  remote = new RemoteRegistry(registry.grpc, true);
  await remote.call("register", declared("files", [tool("file_operation", "Read, write and move files.")]));
  const web = declared("web", [tool("http_get", "Get a page over HTTP."), tool("http_post", "Send a page over HTTP.")]);
  await remote.call("register", { ...web, tags: ["network"] });
  const erp = [tool("close_order", "Close an order.", { destructiveHint: false }), tool("delete_order", "Delete an order.", { destructiveHint: true })];
  await remote.call("register", declared("erp", erp));
});
afterAll(async () => {
  remote?.client.close();
  await registry?.kill();
  await rm(folder, { recursive: true, force: true });
});

const ids = async (request: object): Promise<string[]> =>
  (await remote.call("findTools", request)).tools.map((t: { stub: { toolId: string } }) => t.stub.toolId);
const valid = async () => /^toolcrib_gate_rules_valid (\d)$/m.exec(await (await fetch(`${registry.ops}/metrics`)).text())?.[1];

describe("rules of a registry", () => {
  it("decide what FindTools answers, and say so", async () => {
    const { tools } = await remote.call("findTools", { intent: "export the balances" });
    expect(tools[0]).toMatchObject({ stub: { toolId: "files/file_operation" }, reasons: [{ kind: "KIND_RULE", detail: "exports are files" }] });
    const request = { intent: "get a page over HTTP" };
    expect(await ids(request)).toContain("web/http_get");
    const { tools: offered, withheld } = await remote.call("findTools", { ...request, state: ["session=finance"] });
    expect(offered.map((t: { stub: { toolId: string } }) => t.stub.toolId)).not.toContain("web/http_get");
    expect(withheld[0]).toMatchObject({
      toolId: "web/http_get",
      cause: "CAUSE_RULE",
      why: 'the rule "finance stays offline" denies it here: Finance sessions touch no network.',
    });
    expect(await ids({ ...request, namespace: "other", state: ["session=finance"] })).toEqual([]);
  });

  it("declare categories that the map names and FindTools takes", async () => {
    const map = await remote.call("getModuleMap");
    expect(map.text.split("\n").slice(0, 3)).toEqual(["5 tools on 3 servers.", expect.stringMatching(/^category network 2: /), expect.stringMatching(/^category office 3: /)]);
    const inside = await remote.call("getModuleMap", { module: "network" });
    expect(inside.modules.map((m: { name: string }) => m.name)).toEqual(["web/http_get", "web/http_post"]);
    expect((await ids({ intent: "page, read, order", filter: { category: "network" } })).sort()).toEqual(["web/http_get", "web/http_post"]);
    const run = (...args: string[]) => toolcribDone([...args, "--registry", registry.grpc]);
    expect((await run("find", "get a page", "--category", "office")).stdout).toContain("web/http_get");
    expect((await run("map", "network")).stdout).toContain("2 tools of network.");
    expect((await run("find", "get a page over HTTP", "--state", "session=finance")).stdout).toContain("finance stays offline");
  });

  it("show an opposite beside what was asked for, with what each may do", async () => {
    const { tools } = await remote.call("findTools", { intent: "delete an order", topK: 1 });
    expect(tools).toMatchObject([
      { stub: { toolId: "erp/delete_order" }, sideEffect: "SIDE_EFFECT_DESTRUCTIVE" },
      { stub: { toolId: "erp/close_order" }, sideEffect: "SIDE_EFFECT_ADDITIVE", reasons: [{ kind: "KIND_SIBLING", detail: "erp/delete_order" }] },
    ]);
    const { stdout } = await toolcribDone(["find", "delete an order", "--top", "1", "--registry", registry.grpc]);
    expect(stdout).toMatch(/erp\/delete_order .*may destroy.*erp\/close_order .*beside erp\/delete_order/s);
  });

  it("stay in force while their file is broken or gone wrong, which is told once, and are read anew when it is well", async () => {
    const denied = () => ids({ intent: "get a page over HTTP", state: ["session=finance"] }).then((all) => !all.includes("web/http_get"));
    expect([await denied(), await valid()]).toEqual([true, "1"]);
    const said = () => registry.logs().filter(({ msg }) => String(msg).includes("cannot be used"));
    for (const broken of ["rules: [", "", "rules:\n  - { name: x, deney: [y] }\n"]) {
      const before = said().length;
      await write(broken);
      await expect.poll(valid, { timeout: 10_000 }).toBe("0");
      await expect.poll(() => said().length, { timeout: 10_000 }).toBe(before + 1);
      expect(await denied()).toBe(true);
    }
    expect(JSON.stringify(said().at(-1))).toContain("did you mean");
    await write("rules: []\n");
    await expect.poll(denied, { timeout: 10_000 }).toBe(false);
    await expect.poll(valid, { timeout: 10_000 }).toBe("1");
    await write(RULES);
    await expect.poll(denied, { timeout: 10_000 }).toBe(true);
    // Another namespace's broken file is no matter of this one.
    await write("{", "other.yaml");
    await expect.poll(valid, { timeout: 10_000 }).toBe("0");
    await rm(file("other.yaml"));
    await expect.poll(valid, { timeout: 10_000 }).toBe("1");
    await rename(join(folder, "rules"), join(folder, "away"));
    await expect.poll(valid, { timeout: 10_000 }).toBe("0");
    expect(await denied()).toBe(true);
    await rename(join(folder, "away"), join(folder, "rules"));
    await expect.poll(valid, { timeout: 10_000 }).toBe("1");
    await rm(file());
    await expect.poll(denied, { timeout: 10_000 }).toBe(false);
  }, 120_000);
});

describe("a registry with a folder of rules that cannot be used", () => {
  it("does not start, and names everything that is wrong", async () => {
    const rules = await temporaryFolder();
    await writeFile(join(rules, "default.yaml"), "rules: [{ name: a }]\n");
    await writeFile(join(rules, "Not A Name.yaml"), "rules: []\n");
    await writeFile(join(rules, "README.md"), "no rules\n");
    await expect(startRegistry({ args: ["--gate-rules", rules] })).rejects.toThrow(/Not A Name.*names? must be.*default\.yaml cannot be used: line 1: the rule "a" does nothing/s);
    await expect(startRegistry({ args: ["--gate-rules", join(rules, "none")] })).rejects.toThrow(/cannot be read: ENOENT/);
  }, 60_000);
});

describe("toolcrib rules check", () => {
  it("says that a file is well, what overlaps, and against a registry which selectors match nothing", async () => {
    const path = join(await temporaryFolder(), "default.yaml");
    await writeFile(path, RULES);
    const alone = await toolcribDone(["rules", "check", path]);
    expect(alone).toMatchObject({ code: 0 });
    expect(alone.stdout.split("\n").slice(0, 4)).toEqual([
      `${path} is well: 3 rules, 2 categories.`, "", "Categories that share tools:", "  network and office: tag:network",
    ]);
    const live = await toolcribDone(["rules", "check", path, "--registry", registry.grpc]);
    expect(live.stdout).toContain("held against 5 tools");
    expect(live.stdout).toContain("network and office: 2 tools: web/http_get, web/http_post");
    expect(live.stdout).toMatch(/match no tool now:\n {2}line 12, the rule "spelled wrong": file_operations\n/);
    const json = JSON.parse((await toolcribDone(["rules", "check", path, "--json", "--registry", registry.grpc])).stdout);
    expect(json).toMatchObject({ rules: 3, categories: 2, tools: 5, unmatched: [{ selector: "file_operations" }] });
  }, 60_000);

  it("names every problem with its line", async () => {
    const folderOf = await temporaryFolder();
    const path = join(folderOf, "bad.yaml");
    await writeFile(path, "rules:\n  - name: a\n    deny: [*/x]\n  - deny: []\nrule: 1\n");
    const { code, stderr } = await toolcribDone(["rules", "check", path]);
    expect(code).toBe(1);
    expect(stderr.split("\n").map((text) => text.trim().split(":")[0])).toEqual([`${path} cannot be used`, "line 3", "line 4", "line 4", "line 5", ""]);
    expect((await toolcribDone(["rules", "check", join(folderOf, "none.yaml")])).code).toBe(2);
    expect((await toolcribDone(["rules", "check", folderOf])).code).toBe(2);
  }, 60_000);
});

describe("a registry that starts with tools", () => {
  it("is ready when it finds all of them", async () => {
    const dataDir = await temporaryFolder();
    const first = await startRegistry({ dataDir });
    const client = new RemoteRegistry(first.grpc, true);
    const many = Array.from({ length: 4_000 }, (_, i) => tool(`tool_${i}`, `Does thing number ${i} for somebody who needs it.`));
    await client.call("register", declared("many", many));
    client.client.close();
    await first.stop();
    const second = await startRegistry({ dataDir });
    const metrics = await (await fetch(`${second.ops}/metrics`)).text();
    expect(/^toolcrib_gate_tools (\d+)$/m.exec(metrics)?.[1]).toBe("4000");
  }, 120_000);
});
