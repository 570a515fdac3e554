import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { findNodeAtLocation, parseTree } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import type { Listing } from "../../src/catalogue/upstream-port.js";
import { corpusFile, startFixture } from "../support/servers.js";
import { soon, startUpstream } from "../support/upstream.js";

const eras = ["legacy", "modern"] as const;
const small = ["everything", "git", "memory", "time"].map((name) => ({ name, file: corpusFile(name) }));

/** name → bytes, cut out of the file by another parser than the one under test. First of a name stays. */
function harvested(file: string): Map<string, string> {
  const text = readFileSync(file, "utf8");
  const root = parseTree(text);
  const list = root && findNodeAtLocation(root, ["tools"]);
  const tools = new Map<string, string>();
  for (const node of list?.children ?? []) {
    const name = String(findNodeAtLocation(node, ["name"])?.value);
    if (!tools.has(name)) tools.set(name, text.slice(node.offset, node.offset + node.length));
  }
  return tools;
}

function received(listing: Listing): Map<string, string> {
  return new Map(listing.tools.map(({ name, definition }) => [name, Buffer.from(definition).toString("utf8")]));
}

async function expectVerbatim(file: string, args: readonly string[]): Promise<Listing> {
  const server = await startFixture("corpus-server.mjs", [file, ...args]);
  const listing = await startUpstream().list(server.url, soon());
  const sent = harvested(file);
  expect(listing.rejected).toEqual([]);
  expect(listing.tools.map(({ name }) => name)).toEqual([...sent.keys()].sort());
  expect(received(listing)).toEqual(new Map([...sent].sort(([a], [b]) => (a < b ? -1 : 1))));
  return listing;
}

describe.each(eras)("a listing in the %s era", (era) => {
  it.each(small)("keeps every definition of $name byte for byte (P10)", async ({ file }) => {
    const listing = await expectVerbatim(file, ["--era", era]);
    expect(listing.era).toBe(era);
    expect(listing.protocolVersion).toBe(era === "modern" ? "2026-07-28" : "2025-11-25");
    expect(listing.listChanged).toBe(true);
  });

  it("keeps them when they come as an event stream and over several pages", async () => {
    await expectVerbatim(corpusFile("git"), ["--era", era, "--stream", "--page-size", "5"]);
  });

  it("keeps numbers beyond a double, key order and unknown keys", async () => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", era]);
    const json =
      '{ "x": 1e400, "inputSchema":{"type":"object","properties":{"2":{"maximum":9007199254740993},"1":{}, "__proto__":{}}},\t"name":"odd","id":1.0}';
    await server.control({ op: "add", json });
    const listing = await startUpstream().list(server.url, soon());
    expect(received(listing).get("odd")).toBe(json);
  });
});

it("of a server that speaks both eras the newer one is used", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--ttl-ms", "60000"]);
  const listing = await startUpstream().list(server.url, soon());
  expect(listing).toMatchObject({ era: "modern", ttlMs: 60_000, cacheScope: "private" });
});

it("one session serves all listings of a server of the older eras, and is ended at close", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy"]);
  const upstream = startUpstream();
  for (let i = 0; i < 3; i++) await upstream.list(server.url, soon());
  await Promise.all([1, 2, 3].map(() => upstream.list(server.url, soon())));
  await upstream.close();
  const seen = (await server.requests()).map(({ http, method }) => method ?? http);
  expect(seen.filter((method) => method === "initialize")).toHaveLength(1);
  expect(seen.filter((method) => method === "tools/list")).toHaveLength(6);
  expect(seen.at(-1)).toBe("DELETE");
});

it("callers that come together share one handshake", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy"]);
  const upstream = startUpstream();
  await Promise.all(Array.from({ length: 20 }, () => upstream.list(server.url, soon())));
  const seen = (await server.requests()).map(({ method }) => method);
  expect(seen.filter((method) => method === "initialize")).toHaveLength(1);
  expect(seen.filter((method) => method === "server/discover")).toHaveLength(1);
});

it("every request says which revision it speaks and who asks", async () => {
  const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "modern"]);
  await startUpstream().list(server.url, soon());
  for (const { method, params, headers } of await server.requests()) {
    expect(headers).toMatchObject({ "mcp-protocol-version": "2026-07-28", "mcp-method": method });
    expect(params?.["_meta"]).toEqual({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "toolcrib", version: "0.0.0" },
    });
  }
});

describe("the era of a server", () => {
  it("is looked at again after an hour, and a held session goes on", async () => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", "legacy"]);
    let ahead = 0;
    const { realClock } = await import("../support/upstream.js");
    const upstream = startUpstream({ ...realClock, monotonic: () => realClock.monotonic() + ahead });
    await upstream.list(server.url, soon());
    ahead = 3_600_001;
    expect((await upstream.list(server.url, soon())).era).toBe("legacy");
    const seen = (await server.requests()).map(({ method }) => method);
    expect(seen.filter((method) => method === "initialize")).toHaveLength(1);
    expect(seen.filter((method) => method === "server/discover")).toHaveLength(2);
    await server.control({ op: "set-era", era: "dual" });
    ahead *= 2;
    expect((await upstream.list(server.url, soon())).era).toBe("modern");
  });

  it.each([
    ["legacy", "modern"],
    ["modern", "legacy"],
  ] as const)("is noticed at once when a %s server becomes a %s one", async (before, after) => {
    const server = await startFixture("corpus-server.mjs", [corpusFile("time"), "--era", before]);
    const upstream = startUpstream();
    expect((await upstream.list(server.url, soon())).era).toBe(before);
    await server.control({ op: "set-era", era: after });
    await server.control({ op: "forget-sessions" });
    const listing = await upstream.list(server.url, soon());
    expect(listing.era).toBe(after);
    expect(listing.tools).toHaveLength(6);
  });
});

describe.each([
  { args: ["--sdk", "v1"], era: "legacy" },
  { args: ["--sdk", "v2"], era: "modern" },
  { args: ["--sdk", "v2", "--era", "legacy"], era: "legacy" },
])("a server on the official SDK ($args)", ({ args, era }) => {
  it("is listed, and again after each change", async () => {
    const server = await startFixture("sdk-server.mjs", args);
    const upstream = startUpstream();
    const first = await upstream.list(server.url, soon());
    expect(first).toMatchObject({ era, listChanged: true, rejected: [] });
    expect(first.tools.map(({ name }) => name)).toEqual(["add", "echo", "greet"]);
    await server.control({ op: "add", name: "extra" });
    await server.control({ op: "change", name: "echo" });
    await server.control({ op: "remove", name: "greet" });
    const second = await upstream.list(server.url, soon());
    expect(second.tools.map(({ name }) => name)).toEqual(["add", "echo", "extra"]);
    const digests = (listing: Listing) => new Map(listing.tools.map(({ name, digest }) => [name, digest]));
    expect(digests(second).get("add")).toBe(digests(first).get("add"));
    expect(digests(second).get("echo")).not.toBe(digests(first).get("echo"));
  });
});

const corpus = fileURLToPath(new URL("../../../shared/corpus/mcp-servers", import.meta.url));
const files = existsSync(corpus) ? readdirSync(corpus).filter((name) => name.endsWith(".json")) : [];
if (files.length === 0)
  process.stderr.write("The full corpus of harvested listings is not here; its tests are skipped.\n");

describe.skipIf(files.length === 0)("the full corpus", () => {
  describe.each(eras)("in the %s era", (era) => {
    it.each(files)("%s comes back byte for byte (P10)", async (name) => {
      await expectVerbatim(`${corpus}/${name}`, ["--era", era]);
    });
  });
});
