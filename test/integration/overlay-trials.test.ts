/** A label on trial: each caller of FindTools is shown one of the two, always the same one, and outcomes tell them apart. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { bearer, entryOf, newToken, writeTokens } from "../support/identity.js";
import { declared, RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";

const TOOLS = [
  { name: "close_order", description: "Closes it", inputSchema: { type: "object" } },
  { name: "open_order", description: "Opens an order again", inputSchema: { type: "object" } },
];
const WORDS = { briefDescription: "Closes a purchase order once it is paid", keywords: ["settle"], useWhen: "It is paid" };

describe("a label on trial", () => {
  it("is shown to the same half of the principals each time, found by its own words, and compared by what came of calls", { timeout: 90_000 }, async () => {
    const folder = await temporaryFolder();
    const operator = newToken();
    const agents = Array.from({ length: 16 }, () => newToken());
    const tokens = [entryOf(operator, "boss", [{ role: "operator", namespaces: ["*"] }]), ...agents.map((token, i) => entryOf(token, `agent-${i}`, [{ role: "reader", namespaces: ["default"] }]))];
    writeTokens(join(folder, "tokens.json"), tokens);
    const { grpc } = await startRegistry({ args: ["--tokens-file", join(folder, "tokens.json")] });
    const remote = new RemoteRegistry(grpc);
    const as = (token: string) => (method: string, request: object) => remote.call(method, request, 15_000, bearer(token));
    const boss = as(operator);
    await boss("register", declared("shop", TOOLS));
    const own = (await boss("getStubs", {})).stubs[0];
    const madeFor = { briefDescription: own.briefDescription, keywords: [], useWhen: "" };
    const approve = (trial: boolean) => boss("approveOverlays", { serverId: "shop", trial, overlays: [{ toolName: "close_order", texts: WORDS, digest: own.digest, madeFor }] });
    const { overlays } = await approve(true);
    const [{ version }] = overlays;

    const close = { intent: "close the order" };
    const shownTo = async (token: string) => {
      const { tools } = await as(token)("findTools", close);
      const found = tools.find((t: any) => t.stub.name === "close_order");
      return { version: found.labelVersion as string, brief: found.stub.briefDescription as string, digest: found.stub.digest as string };
    };
    // The trial begins once the namespace is indexed for it, too.
    await expect.poll(async () => new Set((await Promise.all(agents.map(shownTo))).map((s) => s.version)).size, { timeout: 20_000 }).toBe(2);
    const shown = await Promise.all(agents.map(shownTo));
    for (const one of shown) {
      expect(one.brief).toBe(one.version === version ? WORDS.briefDescription : "Closes it");
      expect(one.digest).toBe(own.digest);
    }
    expect(await Promise.all(agents.map(shownTo)), "nobody changes sides").toEqual(shown);
    const after = agents.filter((_, i) => shown[i]?.version === version);
    const before = agents.filter((_, i) => shown[i]?.version === "");
    const ids = async (token: string, intent: string) => (await as(token)("findTools", { intent })).tools.map((t: any) => t.stub.toolId);
    expect(await ids(after[0] as string, "settle")).toContain("shop/close_order");
    expect(await ids(before[0] as string, "settle")).not.toContain("shop/close_order");
    // Lists are the same for everybody (P12).
    for (const token of [after[0], before[0]]) expect((await as(token as string)("getStubs", {})).stubs[0]).toEqual(own);

    const report = (token: string, success: boolean, labelVersion: string) => as(token)("reportOutcome", { toolId: "shop/close_order", success, labelVersion });
    for (let i = 0; i < 40; i++) {
      await report(after[i % after.length] as string, i % 10 !== 0, version);
      await report(before[i % before.length] as string, i % 2 === 0, "");
    }
    const counted = (await boss("listOverlays", {})).overlays[0];
    expect(counted).toMatchObject({ state: "STATE_TRIAL", withOverlay: { successes: 36, failures: 4 }, withOwn: { successes: 20, failures: 20 } });
    const told = await toolcribDone(["enhance", "report", "--registry", grpc], { TOOLCRIB_TOKEN: operator });
    expect(told.stdout).toMatch(/^shop\/close_order +o[0-9a-f]{15} +trial +20 of 40 \(50 %\) +36 of 40 \(90 %\) +the new one is better$/m);

    // The end of the trial: everybody is shown it, and the answer goes on naming it.
    await approve(false);
    await expect.poll(async () => new Set((await Promise.all(agents.map(shownTo))).map((s) => s.version)), { timeout: 10_000 }).toEqual(new Set([version]));
    await boss("withdrawOverlays", { serverId: "shop" });
    await expect.poll(async () => new Set((await Promise.all(agents.map(shownTo))).map((s) => s.version)), { timeout: 10_000 }).toEqual(new Set([""]));
    expect(await ids(after[0] as string, "settle")).not.toContain("shop/close_order");
  });

  it("where nobody is identified, is shown for half of the intents, and survives a restart", { timeout: 60_000 }, async () => {
    const first = await startRegistry();
    const remote = new RemoteRegistry(first.grpc);
    await remote.call("register", declared("shop", TOOLS, { leaseTtl: { seconds: 3_600 } }));
    const own = (await remote.call("getStubs", {})).stubs[0];
    const madeFor = { briefDescription: own.briefDescription, keywords: [], useWhen: "" };
    await remote.call("approveOverlays", { serverId: "shop", trial: true, overlays: [{ toolName: "close_order", texts: WORDS, digest: own.digest, madeFor }] });
    const versions = async (of: RemoteRegistry) => {
      const intents = Array.from({ length: 16 }, (_, i) => `close order ${i}`);
      const answers = await Promise.all(intents.map((intent) => of.call("findTools", { intent })));
      return answers.map(({ tools }) => tools.find((t: any) => t.stub.name === "close_order").labelVersion as string);
    };
    await expect.poll(async () => new Set(await versions(remote)).size, { timeout: 20_000 }).toBe(2);
    const before = await versions(remote);
    expect(await versions(remote)).toEqual(before);
    await first.stop();
    const second = await startRegistry({ dataDir: first.dataDir });
    await expect.poll(() => versions(new RemoteRegistry(second.grpc)), { timeout: 20_000 }).toEqual(before);
  });
});
