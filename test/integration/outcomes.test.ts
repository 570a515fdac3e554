/** ReportOutcome over gRPC: what it teaches, what it refuses, and that it is shared and outlives the process. */
import { join } from "node:path";
import { describe, expect, inject, it, vi } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { detailsOf } from "../support/details.js";
import { bearer, entryOf, newToken, writeTokens } from "../support/identity.js";
import { startPair } from "../support/pair.js";
import { declared, RemoteRegistry, type RegistryProcess, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

vi.setConfig({ testTimeout: 120_000 });

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object", properties: {} } });
const TOOLS = [
  tool("create_order", "Create a purchase order"),
  tool("create_order_by_fax", "Create a purchase order by fax, the old way"),
  tool("send_message", "Send a message to a person"),
];
/** No word of it is in a label. */
const INTENT = "tell my colleague about the party";
const HOUR = { leaseTtl: { seconds: 3600 } };

interface Found {
  readonly tools: readonly { readonly stub: { readonly toolId: string }; readonly reasons: readonly { readonly kind: string; readonly detail: string }[] }[];
  readonly bundles: readonly { readonly toolIds: readonly string[]; readonly description: string }[];
}

const foundBy = async (api: RemoteRegistry, intent: string, more: object = {}): Promise<string[]> => {
  const { tools } = (await api.call("findTools", { intent, ...more })) as Found;
  return tools.map(({ stub }) => stub.toolId);
};
const report = (api: RemoteRegistry, toolId: string, more: object = {}) => api.call("reportOutcome", { toolId, success: true, ...more });
const FAILED = { success: false, errorKind: "ERROR_KIND_TOOL_ERROR" };

async function started(options: Parameters<typeof startRegistry>[0] = {}): Promise<{ process: RegistryProcess; api: RemoteRegistry }> {
  const process = await startRegistry(options);
  const api = new RemoteRegistry(process.grpc);
  await api.call("register", declared("erp", TOOLS, HOUR));
  return { process, api };
}

async function metric({ ops }: RegistryProcess, name: string): Promise<string[]> {
  const text = await (await fetch(`${ops}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith(name));
}

const refusal = (call: Promise<unknown>) => call.then(() => expect.fail("was answered"), (error: unknown) => detailsOf(error as never));

describe("an outcome", () => {
  it("teaches what words did not say, and outlives the process", async () => {
    const dataDir = await temporaryFolder();
    const { process, api } = await started({ dataDir });
    expect(await foundBy(api, INTENT)).toEqual([]);
    expect(await report(api, "erp/send_message", { intent: INTENT, latency: { seconds: 0, nanos: 5_000_000 } })).toEqual({ remembered: true });
    const { tools } = (await api.call("findTools", { intent: "tell my colleague" })) as Found;
    expect(tools.map(({ stub, reasons }) => [stub.toolId, reasons.map(({ kind }) => kind)])).toEqual([["erp/send_message", ["KIND_REMEMBERED"]]]);
    await process.stop();
    const again = await startRegistry({ dataDir });
    expect(await foundBy(new RemoteRegistry(again.grpc), INTENT)).toEqual(["erp/send_message"]);
  });

  it("is neither recorded nor recalled nor stored where the memory is off", async () => {
    const dataDir = await temporaryFolder();
    const { process, api } = await started({ dataDir, env: { TOOLCRIB_MEMORY: "off" } });
    expect(await report(api, "erp/send_message", { intent: INTENT })).toEqual({ remembered: false });
    for (let n = 0; n < 10; n++) await report(api, "erp/create_order", FAILED);
    expect(await foundBy(api, INTENT)).toEqual([]);
    expect((await foundBy(api, "create an order"))[0]).toBe("erp/create_order");
    await process.stop();
    const again = await startRegistry({ dataDir });
    expect(await foundBy(new RemoteRegistry(again.grpc), INTENT)).toEqual([]);
  });

  it("that fails again and again takes its tool from the top, names it, and gives it back", async () => {
    const { process, api } = await started();
    expect((await foundBy(api, "create an order"))[0]).toBe("erp/create_order");
    for (let n = 0; n < 10; n++) await report(api, "erp/create_order", FAILED);
    expect((await foundBy(api, "create an order"))[0]).toBe("erp/create_order_by_fax");
    const named = 'toolcrib_tool_collapsed{namespace="default",tool="erp/create_order"} 1';
    await eventually(() => metric(process, "toolcrib_tool_collapsed"), (lines) => lines.includes(named));
    for (let n = 0; n < 5; n++) await report(api, "erp/create_order");
    expect((await foundBy(api, "create an order"))[0]).toBe("erp/create_order");
    await eventually(() => metric(process, "toolcrib_tool_collapsed"), (lines) => lines.length === 0);
  });

  it("tells what follows what", async () => {
    const { api } = await started();
    for (let n = 0; n < 4; n++) {
      await report(api, "erp/create_order");
      await report(api, "erp/send_message", { precedingTools: ["erp/create_order"] });
    }
    const { tools, bundles } = (await api.call("findTools", { intent: "create an order", topK: 1, includeSchemas: "SCHEMA_INCLUSION_FULL" })) as Found;
    expect(tools.map(({ stub, reasons }) => [stub.toolId, reasons.at(-1)])).toMatchObject([
      ["erp/create_order", { kind: "KIND_MATCHED_WORDS" }],
      ["erp/send_message", { kind: "KIND_COMPANION", detail: "erp/create_order" }],
    ]);
    expect(bundles).toMatchObject([{ toolIds: ["erp/create_order", "erp/send_message"], description: "create the order, then send the message" }]);
  });
});

const BAD: [what: string, request: object, fields: string[]][] = [
  ["a negative latency", { toolId: "erp/create_order", success: true, latency: { seconds: -1 } }, ["latency"]],
  ["a latency of two days", { toolId: "erp/create_order", success: true, latency: { seconds: 172_800 } }, ["latency"]],
  ["no tool", { success: true }, ["tool_id"]],
  ["a success that failed", { toolId: "erp/create_order", success: true, errorKind: "ERROR_KIND_TIMEOUT" }, ["error_kind"]],
  ["six tools before, and 100 KB of intent", { toolId: "erp/create_order", intent: "word ".repeat(20_000), precedingTools: Array.from({ length: 6 }, () => "erp/x") }, ["preceding_tools", "intent"]],
];

describe("bad input", () => {
  it("is refused with every violation, and changes nothing", async () => {
    const { process, api } = await started();
    for (const [what, request, fields] of BAD) {
      const { reason, violations } = await refusal(api.call("reportOutcome", request));
      expect([reason, violations.map(({ field }) => field).sort()], what).toEqual(["INVALID_REQUEST", [...fields].sort()]);
    }
    expect(await refusal(report(api, "erp/nothing", { intent: INTENT }))).toMatchObject({ reason: "NOT_FOUND" });
    expect(await refusal(report(api, "erp/create_order", { namespace: "elsewhere" }))).toMatchObject({ reason: "NOT_FOUND" });
    expect((await metric(process, "toolcrib_outcomes_total")).length).toBe(0);
    for (const intent of ["🎉🎉🎉", "the of and", "\u0000", ""]) expect(await report(api, "erp/create_order", { intent })).toEqual({ remembered: false });
  });
});

describe("one caller", () => {
  it("that reports 10,000 times is told when its turn comes, and neither grows nor decides anything", async () => {
    const { process, api } = await started({ args: ["--report-rate", "20"] });
    await report(api, "erp/send_message", { intent: INTENT });
    const kinds = new Map<string, number>();
    let retry: number | undefined;
    for (let n = 0; n < 10_000; n += 100)
      await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          report(api, "erp/create_order", { intent: `word${n + i} colleague` }).then(
            () => kinds.set("ok", (kinds.get("ok") ?? 0) + 1),
            (error: unknown) => {
              const { reason, retryMs } = detailsOf(error as never);
              kinds.set(reason, (kinds.get(reason) ?? 0) + 1);
              retry ??= retryMs;
            },
          ),
        ),
      );
    expect([...kinds.keys()].sort()).toEqual(["QUOTA_EXCEEDED", "ok"]);
    expect(kinds.get("ok")).toBeLessThan(2_000);
    expect(retry).toBeGreaterThan(0);
    expect((await foundBy(api, INTENT))[0]).toBe("erp/send_message");
    await eventually(() => metric(process, "toolcrib_outcomes_unsaved"), ([line = ""]) => line.endsWith(" 0"));
  });

  it("of several does not take a tool from the others", async () => {
    const folder = await temporaryFolder();
    const tokens = { liar: newToken(), ann: newToken(), bob: newToken() };
    const file = join(folder, "tokens.json");
    const grants = [{ role: "operator", namespaces: ["*"] }] as const;
    writeTokens(file, Object.entries(tokens).map(([name, token]) => entryOf(token, name, grants)));
    const process = await startRegistry({ args: ["--tokens-file", file] });
    const api = new RemoteRegistry(process.grpc);
    const as = (name: keyof typeof tokens, method: string, request: object) => api.call(method, request, 15_000, bearer(tokens[name]));
    await as("ann", "register", declared("erp", TOOLS, HOUR));
    for (const name of ["ann", "bob", "ann", "bob", "ann"] as const) await as(name, "reportOutcome", { toolId: "erp/create_order", success: true });
    for (let n = 0; n < 50; n++) await as("liar", "reportOutcome", { toolId: "erp/create_order", ...FAILED });
    const { tools } = (await as("ann", "findTools", { intent: "create an order" })) as Found;
    expect(tools[0]?.stub.toolId).toBe("erp/create_order");
  });
});

describe.skipIf(inject("redisServer") === "")("two replicas on one Redis", () => {
  it("share what either hears within seconds, and no word of it stands in Redis", async () => {
    const { redis, a, b } = await startPair();
    const { revision } = await a.api.call("register", declared("erp", TOOLS, HOUR));
    expect(await foundBy(b.api, INTENT, { minRevision: revision })).toEqual([]);
    await report(a.api, "erp/send_message", { intent: INTENT });
    for (let n = 0; n < 10; n++) await report(b.api, "erp/create_order", FAILED);
    await eventually(() => foundBy(b.api, INTENT), ([first]) => first === "erp/send_message");
    await eventually(() => foundBy(a.api, "create an order"), ([first]) => first === "erp/create_order_by_fax");
    const keys = await redis.admin.keys("*outcomes*");
    expect(keys.length).toBeGreaterThan(1);
    for (const key of keys) {
      const bytes = (await redis.admin.getBuffer(key)) ?? Buffer.alloc(0);
      for (const word of ["colleague", "party", "anonymous"]) expect(bytes.includes(word)).toBe(false);
      expect(await redis.admin.pttl(key)).toBeGreaterThan(170 * 86_400_000);
    }
    await redis.flush();
    await a.api.call("register", declared("erp", TOOLS, HOUR)).catch(() => undefined);
    await eventually(() => redis.admin.keys("*outcomes*"), (left) => left.length === keys.length);
  });
});

describe.skipIf(inject("redisServer") === "")("a Redis that does not answer for a while", () => {
  it("keeps nobody from reporting and finding, and is told afterwards", async () => {
    const { redis, a, b } = await startPair();
    const { revision } = await a.api.call("register", declared("erp", TOOLS, HOUR));
    await foundBy(b.api, INTENT, { minRevision: revision });
    await report(a.api, "erp/create_order", { intent: "buy some pencils" });
    redis.pause();
    expect(await report(a.api, "erp/send_message", { intent: INTENT })).toEqual({ remembered: true });
    expect((await foundBy(a.api, INTENT))[0]).toBe("erp/send_message");
    await eventually(() => metric(a.process, 'toolcrib_outcome_syncs_total{result="failed"}'), (lines) => lines.length > 0, 60_000);
    expect((await foundBy(b.api, INTENT)).length).toBe(0);
    redis.resume();
    await eventually(() => foundBy(b.api, INTENT), ([first]) => first === "erp/send_message", 60_000);
    await eventually(() => metric(a.process, "toolcrib_outcomes_unsaved"), ([line = ""]) => line.endsWith(" 0"));
  });
});

describe("on the command line", () => {
  it("toolcrib report tells it, and toolcrib find says why in words", async () => {
    const { process } = await started();
    const run = (...args: string[]) => toolcribDone([...args, "--registry", process.grpc]);
    const told = await run("report", "erp/send_message", "--intent", INTENT, "--latency", "120ms");
    expect([told.stdout.trim(), told.code]).toEqual(["Remembered: intents like this one will find it.", 0]);
    expect((await run("find", INTENT)).stdout).toContain("used for this before");
    for (let n = 0; n < 3; n++) {
      await run("report", "erp/create_order");
      await run("report", "erp/send_message", "--after", "erp/create_order");
    }
    const { stdout } = await run("find", "create an order", "--top", "1");
    expect(stdout).toContain("goes with erp/create_order");
    expect(stdout).toMatch(/Often used together:\n {2}create the order, then send the message \(\d+ %\): erp\/create_order → erp\/send_message/);
    const failed = await run("report", "erp/nothing", "--failed", "timeout");
    expect([failed.code, failed.stderr.includes("erp/nothing")]).toEqual([1, true]);
    expect((await run("report", "erp/send_message", "--failed", "badly")).code).toBe(2);
  });
});
