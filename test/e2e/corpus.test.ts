/**
 * Harvested listings of real servers, served by real processes in both eras: every definition comes back byte for byte,
 * also after a kill -9 of the registry.
 */
import { existsSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { definitionDigest } from "../../src/domain/digest.js";
import { type Harvest, harvestsIn, LARGE, SMALL } from "../support/harvests.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

/** Server processes at a time. */
const AT_ONCE = 6;

async function serveAndRegister(api: RemoteRegistry, harvest: Harvest, era: string): Promise<void> {
  const server = await startFixture("corpus-server.mjs", [harvest.file, "--era", era]);
  const request = { serverId: harvest.serverId, endpoint: server.url, standing: true, introspect: {} };
  const answer = await api.call("register", request, 30_000);
  expect(answer.pending, harvest.serverId).toBe(false);
  expect(
    answer.tools.filter((t: { outcome: string }) => t.outcome === "OUTCOME_REJECTED"),
    harvest.serverId,
  ).toEqual([]);
  const { server: known } = await api.call("getServer", { serverId: harvest.serverId });
  expect(known).toMatchObject({
    toolCount: harvest.tools.size,
    rejectedCount: 0,
    protocolVersion: era === "modern" ? "2026-07-28" : "2025-11-25",
  });
  await expectVerbatim(api, harvest);
  await server.stop();
}

/** Every definition by every way to ask for it. */
async function expectVerbatim(api: RemoteRegistry, { serverId, tools }: Harvest): Promise<void> {
  for (const [view, part] of [
    ["SCHEMA_VIEW_FULL", "text"],
    ["SCHEMA_VIEW_INPUT_ONLY", "inputSchema"],
  ] as const) {
    const got = await batches(
      api,
      [...tools.keys()].map((name) => `${serverId}/${name}`),
      view,
    );
    for (const [name, sent] of tools) {
      // Compared as booleans first: a difference in a large text is slow to print.
      const bytes = got.get(`${serverId}/${name}`);
      if (!bytes?.equals(Buffer.from(sent[part])))
        expect(bytes?.toString(), `${serverId}/${name} ${view}`).toBe(sent[part]);
    }
  }
  const left = [...tools];
  const lane = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [name, sent] = next;
      const { schema } = await api.call("getFullSchema", { toolId: `${serverId}/${name}` });
      const same = schema.definition.equals(Buffer.from(sent.text)) && schema.digest === definitionDigest(sent.text);
      if (!same) expect(schema.definition.toString(), `${serverId}/${name}`).toBe(sent.text);
    }
  };
  await Promise.all(Array.from({ length: 16 }, lane));
}

/** tool_id → bytes, a hundred at a time; what did not fit into an answer is asked for again. */
async function batches(api: RemoteRegistry, toolIds: readonly string[], view: string): Promise<Map<string, Buffer>> {
  const got = new Map<string, Buffer>();
  let left = [...toolIds];
  while (left.length > 0) {
    const asked = left.slice(0, 100);
    const { results } = await api.call("batchGetFullSchemas", { toolIds: asked, view });
    expect(results.map((r: { toolId: string }) => r.toolId)).toEqual(asked);
    const before = got.size;
    for (const r of results) {
      if (r.schema) got.set(r.toolId, r.schema.definition);
      else expect(r.error.reason, r.toolId).toBe("QUOTA_EXCEEDED");
    }
    expect(got.size).toBeGreaterThan(before);
    left = left.filter((id) => !got.has(id));
  }
  return got;
}

async function expectListed(api: RemoteRegistry, harvests: readonly Harvest[]): Promise<void> {
  const wanted = harvests.flatMap((h) => [...h.tools].map(([name, sent]) => ({ id: `${h.serverId}/${name}`, sent })));
  const got = new Map<string, { digest: string; sizeBytes: number }>();
  const order: string[] = [];
  let pageToken = "";
  do {
    const page = await api.call("getStubs", { pageToken, pageSize: 300 });
    for (const stub of page.stubs) {
      order.push(stub.toolId);
      got.set(stub.toolId, stub);
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(order).toHaveLength(wanted.length);
  expect(got.size).toBe(wanted.length);
  for (const { id, sent } of wanted) {
    expect(got.get(id)).toMatchObject({ digest: definitionDigest(sent.text), sizeBytes: Buffer.byteLength(sent.text) });
  }
}

async function roundTrip(harvests: readonly Harvest[], era: string): Promise<void> {
  const registry = await startRegistry();
  const api = new RemoteRegistry(registry.grpc);
  const left = [...harvests];
  const lane = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) await serveAndRegister(api, next, era);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  await expectListed(api, harvests);
  if (era === "legacy") return;

  // All servers are gone by now, and so is this registry: everything is in the data folder. The store does not know of eras.
  await registry.kill();
  const again = new RemoteRegistry((await startRegistry({ dataDir: registry.dataDir })).grpc);
  await expectListed(again, harvests);
  for (const { serverId, tools } of harvests) {
    const got = await batches(
      again,
      [...tools.keys()].map((name) => `${serverId}/${name}`),
      "SCHEMA_VIEW_FULL",
    );
    for (const [name, sent] of tools)
      expect(got.get(`${serverId}/${name}`)?.equals(Buffer.from(sent.text)), `${serverId}/${name}`).toBe(true);
  }
}

describe.each(["legacy", "modern"])("harvested listings, %s era", (era) => {
  it("of the repository come back byte for byte", { timeout: 60_000 }, async () => {
    const harvests = harvestsIn(SMALL);
    expect(harvests.flatMap((h) => [...h.tools])).toHaveLength(56);
    await roundTrip(harvests, era);
  });

  it("of all 34 servers come back byte for byte", { timeout: 240_000 }, async ({ skip }) => {
    skip(!existsSync(LARGE), `there is no ${LARGE}: the whole corpus is not part of the repository`);
    const harvests = harvestsIn(LARGE);
    expect(harvests).toHaveLength(34);
    expect(harvests.flatMap((h) => [...h.tools])).toHaveLength(2_914);
    await roundTrip(harvests, era);
  });
});
