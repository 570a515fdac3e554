/** A live SDK server changes its tools while it runs, and a watcher on another replica hears each change once. */
import { describe, expect, inject, it, vi } from "vitest";
import { listedTexts } from "../support/mcp.js";
import { flush, type Replica, startPair, toldOf } from "../support/pair.js";
import type { RemoteWatch } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

// Whole processes on a machine that may be slow; each wait has its own end.
vi.setConfig({ testTimeout: 60_000 });

const SERVERS = [
  {
    sdk: "v1",
    era: "legacy",
    args: ["--sdk", "v1"],
    protocol: /^20(24|25)-/,
    opened: (r: { http: string; method: string | null }) => r.http === "GET",
  },
  {
    sdk: "v2",
    era: "modern",
    args: ["--sdk", "v2"],
    protocol: /^2026-07-28$/,
    opened: (r: { method: string | null }) => r.method === "subscriptions/listen",
  },
] as const;

/** The tools as the registry tells them, byte for byte what the server sends. */
async function expectSame(replica: Replica, server: Fixture, era: "legacy" | "modern"): Promise<void> {
  const sent = await listedTexts(server.url, era);
  expect(await replica.api.toolIds({ filter: { serverIds: ["live"] } })).toEqual(
    [...sent.keys()].sort().map((name) => `live/${name}`),
  );
  for (const [name, text] of sent) {
    const { schema } = await replica.api.call("getFullSchema", { toolId: `live/${name}` });
    expect(schema.definition.toString()).toBe(text);
    expect(["FRESHNESS_LIVE", "FRESHNESS_CACHED"]).toContain(schema.freshness);
  }
}

function eventOf(watch: RemoteWatch, type: string, toolId: string): Promise<RemoteWatch["events"][number] | undefined> {
  return eventually(
    () => watch.events.find((e) => e.type === type && e.toolId === toolId),
    (e) => e !== undefined,
  );
}

describe.skipIf(inject("redisServer") === "").each(SERVERS)(
  "an introspected server of SDK $sdk ($era)",
  ({ era, args, protocol, opened }) => {
    it("is listed at once, and every change of its tools is one event on every replica", {
      timeout: 60_000,
    }, async () => {
      const { a, b } = await startPair();
      const server = await startFixture("sdk-server.mjs", args);
      const watches = [a.api.watch(), b.api.watch()];
      for (const watch of watches) await watch.ready();

      const registered = await a.api.call("register", {
        serverId: "live",
        endpoint: server.url,
        standing: true,
        introspect: {},
      });
      expect(registered).toMatchObject({ pending: false, lease: null });
      const { server: known } = await b.api.call("getServer", { serverId: "live", minRevision: registered.revision });
      expect(known).toMatchObject({
        source: "TOOL_SOURCE_INTROSPECTED",
        retention: "RETENTION_STANDING",
        toolCount: 3,
        availability: "AVAILABILITY_AVAILABLE",
      });
      expect(known.protocolVersion).toMatch(protocol);
      await expectSame(b, server, era);
      await eventually(
        () => server.requests(),
        (seen) => seen.some(opened),
      );

      const [onA, onB] = watches as [RemoteWatch, RemoteWatch];
      await server.control({ op: "add", name: "new_tool", description: "Was not there." });
      await eventOf(onB, "REGISTERED", "live/new_tool");
      await expectSame(b, server, era);

      await server.control({ op: "change", name: "greet", description: "Greets in another way." });
      const changed = await eventOf(onB, "SCHEMA_INVALIDATED", "live/greet");
      const { schema } = await b.api.call("getFullSchema", { toolId: "live/greet" });
      expect(schema.definition.toString()).toContain("Greets in another way.");
      expect(changed).toMatchObject({ newDigest: schema.digest });
      expect(changed?.oldDigest).toMatch(/^sha256:[0-9a-f]{64}$/);
      expect(changed?.oldDigest).not.toBe(changed?.newDigest);
      // What was told under the old digest is still what it was.
      const old = await b.api.call("getFullSchema", { digest: changed?.oldDigest });
      expect(old.schema.definition.toString()).toContain("Greets somebody by name.");

      await server.control({ op: "remove", name: "echo" });
      await eventOf(onB, "DEREGISTERED", "live/echo");
      await expectSame(b, server, era);

      // Three changes in one burst.
      await server.control({ op: "add", name: "burst" });
      await server.control({ op: "change", name: "add", description: "Adds differently." });
      await server.control({ op: "remove", name: "new_tool" });
      await eventOf(onB, "DEREGISTERED", "live/new_tool");
      await eventOf(onB, "SCHEMA_INVALIDATED", "live/add");
      await flush(a.api, watches, "marker");
      await expectSame(b, server, era);
      await expectSame(a, server, era);

      const told = [
        "REGISTERED live/add",
        "REGISTERED live/echo",
        "REGISTERED live/greet",
        "REGISTERED live/new_tool",
        "SCHEMA_INVALIDATED live/greet",
        "DEREGISTERED live/echo",
        "REGISTERED live/burst",
        "SCHEMA_INVALIDATED live/add",
        "DEREGISTERED live/new_tool",
      ];
      for (const watch of [onA, onB]) expect(toldOf(watch, "live").sort()).toEqual([...told].sort());
    });

    // One era is enough: which replica keeps a server does not depend on how it is spoken to.
    it.skipIf(era === "legacy")(
      "is kept by one replica alone, and by the other when that one dies",
      { timeout: 90_000 },
      async () => {
        const { a, b } = await startPair();
        const server = await startFixture("sdk-server.mjs", args);
        await a.api.call("register", { serverId: "live", endpoint: server.url, standing: true, introspect: {} });
        await eventually(
          () => server.requests(),
          (seen) => seen.some(opened),
        );
        const holder = await eventually(
          async () => (await Promise.all([a, b].map(holds))).findIndex(Boolean),
          (index) => index >= 0,
        );
        expect((await Promise.all([a, b].map(holds))).filter(Boolean)).toHaveLength(1);
        const [dying, other] = holder === 0 ? [a, b] : [b, a];
        const watch = other.api.watch();
        await watch.ready();
        const before = (await server.requests()).filter(opened).length;
        await dying.process.kill();
        // Nobody hears of this one: the new holder lists first.
        await server.control({ op: "add", name: "meanwhile" });
        await eventually(
          () => watch.told,
          (told) => told.includes("REGISTERED live/meanwhile"),
          45_000,
        );
        await eventually(
          async () => (await server.requests()).filter(opened).length,
          (n) => n > before,
          45_000,
        );
        await server.control({ op: "change", name: "greet" });
        await eventOf(watch, "SCHEMA_INVALIDATED", "live/greet");
        await expectSame(other, server, era);
        expect(toldOf(watch, "live").sort()).toEqual(["REGISTERED live/meanwhile", "SCHEMA_INVALIDATED live/greet"]);
      },
    );
  },
);

/** Whether this replica looks after a server, by its own metrics. */
async function holds(replica: Replica): Promise<boolean> {
  const text = await (await fetch(`${replica.process.ops}/metrics`)).text();
  return /^toolcrib_servers_kept\{[^}]*held[^}]*\} [1-9]/m.test(text);
}
