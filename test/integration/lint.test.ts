/** Description quality over the wire: warnings at registration, LintTools, the metric, and `toolcrib lint`. */
import { describe, expect, it } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";
import { corpusFile, startFixture } from "../support/servers.js";

const tool = (name: string, description: string, properties: object = {}, required: string[] = []) => ({
  name,
  description,
  inputSchema: { type: "object", properties, required },
});
const TOOLS = [
  tool("close_order", "Closes an order for good once it is paid"),
  tool("end_order", "Closes an order for good once it is paid."),
  tool("go", "Go"),
  tool("move", "Moves a file to another folder", { from: {}, to: {} }, ["from", "to"]),
  tool("fine", "Says how warm it is in a city", { city: { type: "string", description: "Name of the city" } }, ["city"]),
];
const kinds = (warnings: { kind: string }[]) => warnings.map(({ kind }) => kind.replace("KIND_", ""));

describe("description quality", () => {
  it("is told at registration, by LintTools, by the metric and by toolcrib lint", { timeout: 60_000 }, async () => {
    const { grpc, http, ops } = await startRegistry();
    const remote = new RemoteRegistry(grpc);
    const run = (...args: string[]) => toolcribDone(["lint", ...args, "--registry", grpc]);
    expect((await run()).stdout).toBe("No tools.\n");

    const answer = await remote.call("register", declared("shop", TOOLS));
    const told = Object.fromEntries(answer.tools.map((t: any) => [t.name, kinds(t.warnings)]));
    expect(told).toEqual({
      close_order: ["DUPLICATE_TEXT"],
      end_order: ["DUPLICATE_TEXT"],
      go: ["ONE_WORD"],
      move: ["UNDESCRIBED_PARAMETERS"],
      fine: [],
    });
    expect(answer.tools.every((t: any) => t.outcome === "OUTCOME_ACCEPTED")).toBe(true);
    const preview = await remote.call("register", declared("shop", TOOLS, { validateOnly: true }));
    expect(preview.tools.map((t: any) => kinds(t.warnings))).toEqual(answer.tools.map((t: any) => kinds(t.warnings)));

    const lint = () => remote.call("lintTools", {});
    // Definitions are read from the store beside everything else.
    await expect.poll(async () => (await lint()).unknownCount, { timeout: 20_000 }).toBe(0);
    const linted = await lint();
    expect(linted).toMatchObject({ toolCount: 5, warnedCount: 4, stale: false });
    expect(linted.tools.map((t: any) => [t.toolId, ...kinds(t.warnings)])).toEqual([
      ["shop/go", "ONE_WORD"],
      ["shop/close_order", "DUPLICATE_TEXT"],
      ["shop/end_order", "DUPLICATE_TEXT"],
      ["shop/move", "UNDESCRIBED_PARAMETERS"],
    ]);
    const gauge = async () => (await (await fetch(`${ops}/metrics`)).text()).match(/toolcrib_tools_to_mend\{kind="duplicate-text"\} (\d+)/)?.[1];
    await expect.poll(gauge, { timeout: 10_000 }).toBe("2");

    // Mended: the warnings go, everywhere.
    const mended = TOOLS.filter(({ name }) => name !== "end_order" && name !== "go" && name !== "move");
    await remote.call("register", declared("shop", mended));
    await expect.poll(async () => (await lint()).warnedCount, { timeout: 10_000 }).toBe(0);
    await expect.poll(gauge, { timeout: 10_000 }).toBe("0");
    expect(await run("--fail")).toMatchObject({ code: 0, stdout: "Nothing to mend in 2 tools.\n" });

    // An introspected server, and another tenant, which sees nothing of this one.
    const server = await startFixture("corpus-server.mjs", [corpusFile("memory")]);
    await toolcribDone(["register", "--id", "graph", "--url", server.url, "--registry", grpc]);
    await expect.poll(async () => (await lint()).unknownCount, { timeout: 20_000 }).toBe(0);
    const failing = await run("graph", "--fail", "--top", "2");
    expect(failing.code).toBe(1);
    expect(failing.stdout).toMatch(/^graph\/\S+\n {2}.*parameters? ha(?:s|ve) no description \(.*\): say what each means/m);
    expect(failing.stdout).toMatch(/… and \d+ more: --top shows them\./);
    expect(failing.stdout).toMatch(/\d+ of \d+ tools to mend: .*parameters undescribed/);
    expect((await run("graph")).code).toBe(0);
    expect(JSON.parse((await run("graph", "--json")).stdout)).toMatchObject({ tools: expect.any(Array) as unknown[] });
    expect((await run("--namespace", "other")).stdout).toBe("No tools.\n");

    // Wrong questions, and the other listener.
    expect(await run("nobody")).toMatchObject({ code: 1, stderr: expect.stringContaining("nobody") as string });
    expect(await run("--top", "0")).toMatchObject({ code: 2 });
    await expect(remote.call("lintTools", { maxTools: 1_001 })).rejects.toThrow(/max_tools/);
    await expect(remote.call("lintTools", { maxTools: -1, serverIds: ["NO"] })).rejects.toThrow(/server_ids\[0\].*and 1 more/);
    const posted = await fetch(`${http}/toolcrib.v1.RegistryService/LintTools`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
    expect(await posted.json()).toMatchObject({ toolCount: expect.any(Number) as number });
  });
});
