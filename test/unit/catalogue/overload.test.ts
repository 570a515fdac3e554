/** What a replica refuses when it has too much to do, and what it never does; quotas of namespaces and principals. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FullSchema, SchemaLoader } from "../../../src/catalogue/api.js";
import type { Registry, RegistryOptions } from "../../../src/catalogue/registry.js";
import { Fault } from "../../../src/domain/fault.js";
import type { Principal } from "../../../src/domain/identity.js";
import { everything } from "../../../src/domain/filter.js";
import type { OverloadLevel } from "../../../src/domain/overload.js";
import { DEFAULT_QUOTAS, type Quotas } from "../../../src/domain/quotas.js";
import { declare, introspect, Recorder, stubsOf, tool, World } from "../../support/replica.js";

let world: World;
let level: OverloadLevel = 0;
const shed: string[] = [];
beforeEach(() => {
  world = new World();
  level = 0;
  shed.length = 0;
});
afterEach(() => world.stop());

const replica = (quotas: Partial<Quotas> = {}, more: Partial<RegistryOptions> = {}): Promise<Registry> =>
  world.replica(undefined, undefined, {
    pressure: () => level,
    onShed: (what) => shed.push(what),
    quotas: { ...DEFAULT_QUOTAS, ...quotas },
    ...more,
  });

const principal = (id: string): Principal => ({ id, grants: [{ role: "operator", namespaces: ["*"] }] });
const refused = async (work: Promise<unknown>): Promise<Fault> => {
  const fault = await world.run(work).then(
    () => new Error("it was not refused"),
    (e: unknown) => e,
  );
  expect(fault).toBeInstanceOf(Fault);
  return fault as Fault;
};
const head = (registry: Registry) => registry.partitions.map((p) => p.live().history.head);
const filter = everything("");

describe("overload", () => {
  it("refuses registrations first, then loads, then new watches; renewals, leaving and reads never", async () => {
    const registry = await replica();
    const held: FullSchema = { toolId: "s/held", definition: Buffer.from("{}"), digest: "d", freshness: "cached", fetchedAtMs: 1 };
    registry.useLoader(loaderOf(held));
    const { lease } = await world.run(registry.register(declare("s", ["a"])));
    const leases = [{ leaseId: lease?.leaseId ?? "", setDigest: "" }];
    const before = head(registry);
    const load = (toolId: string) =>
      registry.schema({ namespace: "", key: { kind: "tool", toolId }, view: "full", minRevision: "", deadlineMs: undefined });
    for (level of [0, 1, 2, 3] as const) {
      const told: string[] = [];
      const tried = async (what: string, work: Promise<unknown>) => {
        const result = await world.run(work.then(() => undefined, (e: unknown) => e as Fault));
        if (result?.reason === "OVERLOADED") told.push(what);
      };
      await tried("register", registry.register({ ...declare("s", ["a"]), validateOnly: true }));
      await tried("load", load("s/other"));
      await tried("held", load("s/held"));
      const recorder = new Recorder();
      await tried("watch", registry.watch({ filter, resumeToken: "", minRevision: "" }, recorder).then((h) => h.close()));
      expect(told).toEqual(["register", "load", "watch"].slice(0, level));
      expect(await registry.renew("", leases)).toMatchObject([{ state: expect.stringMatching(/ok|superseded/) as string }]);
      expect(await stubsOf(registry)).toHaveLength(1);
      await registry.servers({ namespace: "", pageSize: 0, pageToken: "", minRevision: "" });
      const batch = await registry.schemas({ namespace: "", toolIds: ["s/held", "s/other"], view: "full", minRevision: "", deadlineMs: undefined });
      expect(batch.results.map((r) => (r.kind === "fault" ? r.fault.reason : r.schema.toolId))).toEqual(["s/held", level >= 2 ? "OVERLOADED" : "s/other"]);
    }
    expect(head(registry)).toEqual(before);
    expect(shed.filter((what) => what === "register")).toHaveLength(3);
    await world.run(registry.isolate({ namespace: "", serverId: "s", why: "a test" }));
    await world.run(registry.deregister("", { kind: "lease", leaseId: lease?.leaseId ?? "" }));
    expect(await stubsOf(registry)).toEqual([]);
  });

  it("says when to come back, not the same time to everybody, and is judged before the request is", async () => {
    const registry = await replica();
    level = 3;
    const faults = await Promise.all(Array.from({ length: 20 }, () => refused(registry.register(declare("NO/", [])))));
    for (const fault of faults) {
      expect(fault).toMatchObject({ status: "UNAVAILABLE", reason: "OVERLOADED", metadata: { shed: "register", level: "3" } });
      expect(fault.retryAfterMs).toBeGreaterThanOrEqual(2_000);
      expect(fault.retryAfterMs).toBeLessThanOrEqual(6_000);
    }
    expect(new Set(faults.map((f) => f.retryAfterMs)).size).toBeGreaterThan(10);
  });

  it("leaves open watches alone", async () => {
    const registry = await replica();
    const recorder = new Recorder();
    await registry.watch({ filter, resumeToken: "", minRevision: "" }, recorder);
    await world.run(registry.register(declare("s", ["a"])));
    level = 3;
    await world.run(registry.deregister("", { kind: "server", serverId: "s" }));
    expect(recorder.events.map((e) => e.type)).toEqual(["REGISTERED", "DEREGISTERED"]);
    expect(recorder.fault).toBeUndefined();
  });
});

describe("quotas of a namespace", () => {
  it("bound its servers and tools; what does not grow is never refused, and others are not touched (P9)", async () => {
    const registry = await replica({ servers: 2, tools: 5 });
    await world.run(registry.register(declare("one", ["a", "b"])));
    await world.run(registry.register(declare("two", ["a", "b"])));
    const before = head(registry);
    const third = await refused(registry.register(declare("three", ["a"])));
    expect(third).toMatchObject({ status: "RESOURCE_EXHAUSTED", reason: "QUOTA_EXCEEDED", retryAfterMs: 30_000 });
    expect(third.metadata).toEqual({ quota: "servers", limit: "2", actual: "3", namespace: "default" });
    expect(third.message).toMatch(/namespace default may hold 2 servers.* make it 3.*--max-servers/);
    const more = await refused(registry.register(declare("two", ["a", "b", "c", "d"])));
    expect(more.metadata).toEqual({ quota: "tools", limit: "5", actual: "6", namespace: "default" });
    const asked = await refused(registry.register({ ...declare("three", ["a"]), validateOnly: true }));
    expect(asked.metadata).toMatchObject({ quota: "servers" });
    expect(head(registry)).toEqual(before);
    await world.run(registry.register({ ...declare("one", ["x"]), namespace: "other" }));
    await world.run(registry.register(declare("two", ["a", "b", "c"])));
    await world.run(registry.register(declare("one", ["a", "b"], { instanceId: "another-one" })));
    await world.run(registry.deregister("", { kind: "server", serverId: "one" }));
    await world.run(registry.register(declare("three", ["a", "b"])));
  });

  it("keep no definition of a Register that they refuse", async () => {
    const registry = await replica({ servers: 1 });
    await world.run(registry.register(declare("one", [tool("a")])));
    const blobs = () => registry.partitions[0]?.deps.store.blobs.sweep(-1);
    await blobs();
    await refused(registry.register(declare("two", [tool("b", "never to be kept")])));
    expect(await blobs()).toBe(0);
  });

  it("hold for introspected servers as for declared ones, and a lowered one lets what is there be registered again", async () => {
    world.listings.set("http://127.0.0.1:1/mcp", [tool("a"), tool("b"), tool("c")]);
    const first = await replica();
    await world.run(first.register(introspect("big", "http://127.0.0.1:1/mcp")));
    await world.run(first.register(declare("one", ["a"])));
    const lowered = await replica({ servers: 1, tools: 2 });
    await world.run(lowered.register(introspect("big", "http://127.0.0.1:1/mcp")));
    await world.run(lowered.register(declare("one", ["z"])));
    expect((await refused(lowered.register(introspect("bigger", "http://127.0.0.1:1/mcp")))).metadata).toMatchObject({ quota: "servers" });
  });
});

describe("quotas of a principal", () => {
  it("bound how often it registers: a burst, then a rate, with the time when its turn comes", async () => {
    const registry = await replica({ registersPerSecond: 2 });
    const [alice, bob] = [principal("alice"), principal("bob")];
    const ask = (who?: Principal) => registry.register({ ...declare("s", ["a"]), validateOnly: true }, who);
    for (let i = 0; i < 20; i++) await ask(alice);
    const before = head(registry);
    const faults = [await refused(ask(alice)), await refused(ask(alice))];
    expect(faults.map((f) => f.reason)).toEqual(["QUOTA_EXCEEDED", "QUOTA_EXCEEDED"]);
    expect(faults[0]?.metadata).toEqual({ quota: "registers-per-second", limit: "2", actual: "21", burst: "20", principal: "alice" });
    expect((faults[1]?.retryAfterMs ?? 0) - (faults[0]?.retryAfterMs ?? 0)).toBeGreaterThan(400);
    expect(head(registry)).toEqual(before);
    await ask(bob);
    for (let i = 0; i < 30; i++) await ask();
    await world.clock.advance(1_100);
    await ask(alice);
  });

  it("bound its watches; who is not identified shares only the replica's places", async () => {
    const registry = await replica({ watchersPerPrincipal: 2 }, { maxWatchers: 6 });
    const open = (who?: Principal) => registry.watch({ filter, resumeToken: "", minRevision: "" }, new Recorder(), who);
    const alice = principal("alice");
    const first = await open(alice);
    await open(alice);
    const own = await refused(open(alice));
    expect(own.metadata).toEqual({ quota: "watchers-per-principal", limit: "2", actual: "3", principal: "alice" });
    for (let i = 0; i < 4; i++) await open();
    expect((await refused(open())).metadata).toEqual({ quota: "watchers", limit: "6", actual: "7" });
    first.close();
    first.close();
    await open(alice);
    expect((await refused(open())).metadata).toMatchObject({ quota: "watchers" });
  });

  it("get a place back from every watch that ends, whoever ends it", async () => {
    const registry = await replica({}, { maxWatchers: 1 });
    const opening = (resumeToken: string) => registry.watch({ filter, resumeToken, minRevision: "" }, new Recorder());
    await refused(opening("no token"));
    const recorder = new Recorder();
    await registry.watch({ filter, resumeToken: "", minRevision: "" }, recorder);
    registry.partitions[0]?.failWatches(new Fault("RELIST_REQUIRED", "for a test"));
    expect(recorder.fault?.reason).toBe("RELIST_REQUIRED");
    const refusal = await world.run(opening("").then(() => undefined, (e: Fault) => e.reason));
    expect(refusal).not.toBe("QUOTA_EXCEEDED");
  });
});

/** Holds one definition in memory, and loads all others at once. */
function loaderOf(held: FullSchema): SchemaLoader {
  const loader: SchemaLoader = {
    held: ({ key }) => (key.kind === "tool" && key.toolId === held.toolId ? held : undefined),
    full: async ({ key }) => ({ ...held, toolId: key.kind === "tool" ? key.toolId : "" }),
    batch: async ({ toolIds, refuse, ...q }) =>
      Promise.all(
        toolIds.map(async (toolId) => {
          const key = { kind: "tool", toolId } as const;
          const schema = loader.held({ ...q, key });
          const fault = schema ? undefined : refuse?.();
          return fault ? { kind: "fault" as const, fault } : { kind: "schema" as const, schema: schema ?? (await loader.full({ ...q, key })) };
        }),
      ),
  };
  return loader;
}
