/** Toolsets against real registries: over both listeners, through a restart, and on two replicas. */
import type { ServiceError } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { RegistryConnection } from "../../src/client/connection.js";
import { parseTarget } from "../../src/client/target.js";
import { openToolsets } from "../../src/client/toolsets.js";
import { detailsOf } from "../support/details.js";
import { redisMissing, startRedis } from "../support/redis.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";

const STEP = 60_000;

async function json(http: string, method: string, request: object): Promise<{ status: number; body: any }> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${http}/toolcrib.v1.ToolsetService/${method}`, { method: "POST", headers, body: JSON.stringify(request) });
  return { status: answer.status, body: await answer.json() };
}

describe("over both listeners", () => {
  it("a toolset is created, found, changed and deleted, and what is wrong is told all at once", async () => {
    const registry = await startRegistry();
    const remote = new RemoteRegistry(registry.grpc);
    const { body } = await json(registry.http, "CreateToolset", { toolIds: ["s/a"], facts: { mode: "dynamic" }, idleTtl: "90s" });
    const { handle, etag } = body.toolset;
    expect(body.toolset).toMatchObject({ toolIds: ["s/a"], facts: { mode: "dynamic" }, idleTtl: "90s" });
    const lasts = Date.parse(body.toolset.expireTime) - Date.parse(body.toolset.createTime);
    expect(lasts).toBe(90_000);
    const { toolset } = await remote.call("updateToolset", { handle, etag, tools: { toolIds: ["s/b", "s/c"] }, removeFacts: ["mode"] });
    expect(toolset).toMatchObject({ handle, toolIds: ["s/b", "s/c"], facts: {} });
    const stale = await json(registry.http, "UpdateToolset", { handle, etag, setFacts: { mode: "stable" } });
    expect(stale).toMatchObject({ status: 409, body: { code: "aborted" } });
    expect((await json(registry.http, "GetToolset", { handle, touch: true })).body.toolset.etag).toBe(toolset.etag);
    expect(await remote.call("deleteToolset", { handle })).toEqual({ deleted: true });
    expect(await json(registry.http, "DeleteToolset", { handle })).toEqual({ status: 200, body: {} });

    const wrong = { namespace: "NO", toolIds: ["x", "s/a", "s/a"], facts: { "A B": "" }, idleTtl: { seconds: 0 } };
    const error = await remote.call("createToolset", wrong).catch((thrown: unknown) => thrown);
    const fields = ["namespace", "tool_ids[0]", "tool_ids[2]", 'facts["A B"]', "idle_ttl"];
    const { reason, violations } = detailsOf(error as ServiceError);
    expect([reason, violations.map((v: { field: string }) => v.field)]).toEqual(["INVALID_REQUEST", fields]);
    const update = { namespace: "NO", handle: "", etag: "e".repeat(513), tools: { toolIds: ["x"] }, setFacts: { a: "1", B: "1" }, removeFacts: ["a", "C"], idleTtl: { seconds: -1 } };
    const bad = await remote.call("updateToolset", update).catch((thrown: unknown) => thrown);
    const all = ["namespace", "handle", "etag", "tools.tool_ids[0]", 'set_facts["B"]', 'remove_facts["C"]', "remove_facts", "idle_ttl"];
    expect(detailsOf(bad as ServiceError).violations.map((v: { field: string }) => v.field)).toEqual(all);

    const metrics = await (await fetch(`${registry.ops}/metrics`)).text();
    for (const what of ["created", "updated", "deleted", "conflict"]) expect(metrics).toContain(`toolcrib_toolset_happenings_total{what="${what}"} 1`);
    expect(registry.output()).not.toContain(handle);
  }, STEP);
});

it("a restart loses none, and nothing but the toolset's own note is needed", async () => {
  const dataDir = await temporaryFolder();
  const first = await startRegistry({ dataDir, args: ["--max-toolsets", "2"] });
  const { toolset } = await new RemoteRegistry(first.grpc).call("createToolset", { toolIds: ["s/a"], facts: { k: "值" } });
  await first.kill();
  const second = await startRegistry({ dataDir, args: ["--max-toolsets", "2"] });
  const remote = new RemoteRegistry(second.grpc);
  expect((await remote.call("getToolset", { handle: toolset.handle })).toolset).toEqual(toolset);
  await remote.call("createToolset", {});
  const full = await remote.call("createToolset", {}).catch((thrown: unknown) => thrown);
  expect(detailsOf(full as ServiceError)).toMatchObject({ reason: "QUOTA_EXCEEDED", metadata: { quota: "toolsets", limit: "2" } });
}, STEP);

const missing = redisMissing();

describe.skipIf(missing)("on two replicas over Redis with several partitions", () => {
  it("any replica serves the next call, also when the one that made it is gone; a store that is away is said to be", async () => {
    const redis = await startRedis();
    try {
      const args = ["--partitions", "4"];
      const [one, two] = await Promise.all([startRegistry({ store: redis.url, args }), startRegistry({ store: redis.url, args })]);
      const namespace = "team-7";
      const connection = (address: string) => new RegistryConnection(parseTarget(address));
      const [here, there] = [connection(one.grpc), connection(two.grpc)];
      const toolsets = { here: openToolsets({ registry: here, namespace }), there: openToolsets({ registry: there, namespace }) };
      const made = await toolsets.here.create({ toolIds: ["s/a"], facts: { turn: "0" } });
      const turns = Array.from({ length: 10 }, (_, i) =>
        toolsets[i % 2 ? "here" : "there"].change(made.handle, (now) => ({ setFacts: { turn: String(Number(now.facts["turn"]) + 1) } })),
      );
      await Promise.all(turns);
      await one.kill();
      expect((await toolsets.there.get(made.handle))?.facts).toEqual({ turn: "10" });
      expect(await toolsets.there.get(`${made.handle.slice(0, -1)}g`)).toBeUndefined();
      redis.pause();
      await expect(toolsets.there.get(made.handle, { timeoutMs: 15_000 })).rejects.toMatchObject({ code: "UNAVAILABLE", reason: "STORE_UNAVAILABLE" });
      redis.resume();
      await expect.poll(() => toolsets.there.get(made.handle).catch(() => undefined), { timeout: 20_000 }).toMatchObject({ toolIds: ["s/a"] });
      expect(await toolsets.there.delete(made.handle)).toBe(true);
      expect(await toolsets.there.get(made.handle)).toBeUndefined();
      for (const closing of [here, there]) closing.close();
    } finally {
      await redis.stop();
    }
  }, STEP);
});
