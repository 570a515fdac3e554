import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import { everything } from "../../../src/domain/filter.js";
import { formatRevision } from "../../../src/domain/revision.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";
import { mismatchOf } from "../../../src/probe/conditions.js";
import { declare, introspect, listingOf, stubsOf, tool, watch, World } from "../../support/replica.js";

let world: World;
let a: Registry;
let b: Registry;

beforeEach(async () => {
  world = new World();
  a = await world.replica();
  b = await world.replica();
});
afterEach(() => world.stop());

const names = async (registry: Registry) => (await stubsOf(registry)).map((s) => s.toolId);

describe("Register of a declared server", () => {
  it("lists its tools on every replica, sorted by tool_id", async () => {
    await world.run(a.register(declare("b", ["two", "one"])));
    const { position } = await world.run(a.register(declare("b.a", ["x"])));
    expect(await names(a)).toEqual(["b.a/x", "b/one", "b/two"]);
    const stubs = await world.run(stubsOf(b, {}, formatRevision(position)));
    expect(stubs.map((s) => s.toolId)).toEqual(["b.a/x", "b/one", "b/two"]);
  });

  it("P5: repeating it changes nothing and answers the same revision", async () => {
    const first = await world.run(a.register(declare("s", ["one", tool("two")])));
    const watcher = await watch(b);
    const again = await world.run(a.register(declare("s", ["one", tool("two")])));
    const elsewhere = await world.run(b.register(declare("s", ["one", tool("two")])));
    expect(again.position).toEqual(first.position);
    expect(elsewhere.position).toEqual(first.position);
    expect(again.lease?.leaseId).toBe(first.lease?.leaseId);
    expect(again.tools.map((t) => t.outcome)).toEqual(["unchanged", "unchanged"]);
    expect(watcher.events).toEqual([]);
  });

  it("P5: the same request id is answered with the first revision even after other changes", async () => {
    const first = await world.run(a.register(declare("s", ["one"], { requestId: "r-1" })));
    await world.run(a.register(declare("s", ["one", "two"], { instanceId: "instance-2" })));
    const again = await world.run(b.register(declare("s", ["one"], { requestId: "r-1" })));
    expect(again.position).toEqual(first.position);
    expect(await names(a)).toEqual(["s/one", "s/two"]);
  });

  it("20 concurrent Registers of one server by one instance on two replicas make one revision", async () => {
    const before = a.partitions[0]?.live().history.head.revision ?? -1;
    const all = await world.run(
      Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).register(declare("s", ["one", "two"])))),
    );
    expect(new Set(all.map((r) => r.lease?.leaseId)).size).toBe(1);
    expect(a.partitions[0]?.live().history.head.revision).toBe(before + 1);
    expect(await names(a)).toEqual(["s/one", "s/two"]);
  });

  it("removes what is missing from the new set, with one event per changed tool", async () => {
    await world.run(a.register(declare("s", [tool("kept"), tool("changed"), tool("gone")])));
    const watcher = await watch(b);
    await world.run(a.register(declare("s", [tool("kept"), tool("changed", "other words"), tool("new")])));
    expect(watcher.told).toEqual(["SCHEMA_INVALIDATED s/changed", "DEREGISTERED s/gone", "REGISTERED s/new"]);
    expect(watcher.events[0]?.old).toMatch(/^sha256:/);
    expect(watcher.events[0]?.new).not.toBe(watcher.events[0]?.old);
  });

  it("a rolling deploy: one event per changed tool, no DEREGISTERED for kept ones", async () => {
    const one = await world.run(
      a.register(declare("s", [tool("kept"), tool("changed")], { instanceId: "instance-1" })),
    );
    const watcher = await watch(b);
    const two = await world.run(
      b.register(
        declare("s", [tool("kept"), tool("changed", "v2")], {
          instanceId: "instance-2",
          endpoint: "http://127.0.0.1:10/mcp",
        }),
      ),
    );
    const told = await world.run(a.renew("", [{ leaseId: one.lease?.leaseId ?? "", setDigest: one.setDigest }]));
    expect(told[0]?.state).toBe("superseded");
    await world.run(a.deregister("", { kind: "lease", leaseId: one.lease?.leaseId ?? "" }));
    expect(watcher.told).toEqual(["SCHEMA_INVALIDATED s/changed"]);
    const late = await world.run(b.renew("", [{ leaseId: one.lease?.leaseId ?? "", setDigest: one.setDigest }]));
    expect(late[0]?.state).toBe("deregistered");
    const newer = await world.run(b.renew("", [{ leaseId: two.lease?.leaseId ?? "", setDigest: two.setDigest }]));
    expect(newer[0]?.state).toBe("ok");
  });

  it("plain scale-out of one set shows nothing", async () => {
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-1" })));
    const watcher = await watch(a);
    await world.run(b.register(declare("s", ["one"], { instanceId: "instance-2" })));
    expect(watcher.events).toEqual([]);
    const { server } = await world.run(a.server({ namespace: "", serverId: "s", minRevision: "" }));
    expect(server.header.instances.map((i) => i.instanceId)).toEqual(["instance-1", "instance-2"]);
  });

  it("REGISTER_AGAIN when the instance with the current set has left", async () => {
    const one = await world.run(a.register(declare("s", ["old"], { instanceId: "instance-1" })));
    const two = await world.run(a.register(declare("s", ["new"], { instanceId: "instance-2" })));
    await world.run(a.deregister("", { kind: "lease", leaseId: two.lease?.leaseId ?? "" }));
    expect(await names(a)).toEqual(["s/new"]);
    const told = await world.run(a.renew("", [{ leaseId: one.lease?.leaseId ?? "", setDigest: one.setDigest }]));
    expect(told[0]?.state).toBe("register-again");
    await world.run(a.register(declare("s", ["old"], { instanceId: "instance-1" })));
    expect(await names(a)).toEqual(["s/old"]);
  });

  it("an etag that is not the current one refuses the whole Register", async () => {
    const first = await world.run(a.register(declare("s", ["one"])));
    await expect(world.run(a.register(declare("s", ["two"], { etag: "0" })))).rejects.toMatchObject({
      reason: "ETAG_MISMATCH",
    });
    expect(await names(a)).toEqual(["s/one"]);
    await world.run(a.register(declare("s", ["two"], { etag: first.etag })));
    expect(await names(a)).toEqual(["s/two"]);
  });

  it("P9: one bad tool is rejected by name and the rest is listed; strict refuses all", async () => {
    const bad = { name: "bad", inputSchema: { type: "int" } };
    await expect(world.run(a.register(declare("s", [tool("good"), bad], { strict: true })))).rejects.toMatchObject({
      reason: "TOOLS_REJECTED",
    });
    expect(await names(a)).toEqual([]);
    const answer = await world.run(a.register(declare("s", [tool("good"), bad])));
    expect(answer.tools.map((t) => [t.name, t.outcome])).toEqual([
      ["good", "accepted"],
      ["bad", "rejected"],
    ]);
    expect(await names(a)).toEqual(["s/good"]);
    await expect(world.run(a.register(declare("t", [bad])))).rejects.toMatchObject({ reason: "TOOLS_REJECTED" });
  });

  it("validate_only checks and changes nothing", async () => {
    const answer = await world.run(a.register(declare("s", ["one"], { validateOnly: true })));
    expect(answer.tools[0]?.outcome).toBe("accepted");
    expect(answer.lease).toBeUndefined();
    expect(await names(a)).toEqual([]);
  });

  it("tenants do not see each other, and a foreign lease is unknown", async () => {
    const mine = await world.run(a.register(declare("s", ["one"], { namespace: "mine" })));
    expect(await names(a)).toEqual([]);
    expect((await stubsOf(a, { namespace: "mine" })).length).toBe(1);
    const told = await world.run(a.renew("other", [{ leaseId: mine.lease?.leaseId ?? "", setDigest: "" }]));
    expect(told[0]?.state).toBe("unknown-lease");
    const removed = await world.run(a.deregister("other", { kind: "lease", leaseId: mine.lease?.leaseId ?? "" }));
    expect(removed.removed).toBe(false);
  });

  it("one declared tool can be removed until it is declared again", async () => {
    await world.run(a.register(declare("s", ["one", "two"])));
    const watcher = await watch(a);
    const removed = await world.run(b.deregister("", { kind: "tool", toolId: "s/one" }));
    expect(removed.removed).toBe(true);
    expect((await world.run(b.deregister("", { kind: "tool", toolId: "s/one" }))).removed).toBe(false);
    await world.run(a.register(declare("s", ["one", "two"])));
    expect(watcher.told).toEqual(["DEREGISTERED s/one", "REGISTERED s/one"]);
  });
});

describe("Register of an introspected server", () => {
  it("lists the server in the same revision, and keeps the last good set when its endpoint becomes a bad one", async () => {
    world.listings.set("http://127.0.0.1:1/mcp", [tool("one"), tool("two")]);
    const first = await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    expect(first.pending).toBe(false);
    expect(first.lease).toBeUndefined();
    expect(await names(a)).toEqual(["s/one", "s/two"]);
    await world.run(a.register(introspect("s", "http://127.0.0.1:2/mcp")));
    expect(await names(a)).toEqual(["s/one", "s/two"]);
  });

  it("is pending while it does not answer, and listed by compare-and-set", async () => {
    const answer = await world.run(a.register(introspect("s", "http://127.0.0.1:1/mcp")));
    expect(answer.pending).toBe(true);
    const { server } = await world.run(a.server({ namespace: "", serverId: "s", minRevision: "" }));
    expect(server.header.availability).toBe("unavailable");
    const watcher = await watch(b);
    expect(
      await world.run(a.listings.commitListing("default", "s", listingOf([tool("one")]), server.revision - 1)),
    ).toBe("conflict");
    expect(await world.run(a.listings.commitListing("default", "s", listingOf([tool("one")]), server.revision))).toBe(
      "committed",
    );
    expect(watcher.told).toEqual(["AVAILABILITY_CHANGED s", "REGISTERED s/one"]);
    const now = await world.run(a.server({ namespace: "", serverId: "s", minRevision: "" }));
    expect(
      await world.run(b.listings.commitListing("default", "s", listingOf([tool("one")], 99), now.server.revision)),
    ).toBe("unchanged");
  });

  it("an address that may not be dialled is refused", async () => {
    await expect(world.run(a.register(introspect("s", "http://10.0.0.1/mcp")))).rejects.toMatchObject({
      reason: "EGRESS_DENIED",
    });
    await expect(
      world.run(a.register(declare("s", ["label-only"], { endpoint: "http://10.0.0.1/mcp" }))),
    ).rejects.toMatchObject({
      reason: "EGRESS_DENIED",
    });
    await world.run(a.register(declare("s", [tool("inline")], { endpoint: "http://10.0.0.1/mcp" })));
    expect(await names(a)).toEqual(["s/inline"]);
  });
});

describe("digests that the registrant did not give", () => {
  it("are learned from the first listing as UPDATED, changed by later ones as SCHEMA_INVALIDATED, and survive a restart", async () => {
    await world.run(a.register(declare("s", ["one"])));
    const watcher = await watch(b);
    const revision = () => a.partitions[0]?.live().history.server("default", "s")?.record.revision ?? 0;
    await world.run(a.listings.learn("default", "s", listingOf([tool("one")]), revision()));
    await world.run(a.listings.learn("default", "s", listingOf([tool("one", "other")]), revision()));
    expect(watcher.told).toEqual(["UPDATED s/one", "SCHEMA_INVALIDATED s/one"]);
    await world.run(a.register(declare("s", ["one"], { instanceId: "instance-2" })));
    expect((await stubsOf(b))[0]?.digest).toBe(watcher.events[1]?.new);
    expect(watcher.told.length).toBe(2);
  });

  it("a declared digest that the server does not send makes Renew answer REGISTER_AGAIN", async () => {
    const { lease, setDigest } = await world.run(a.register(declare("s", [tool("one")])));
    const record = a.partitions[0]?.live().history.server("default", "s")?.record;
    if (!record) throw new Error("it is registered");
    a.listings.listed("default", "s", mismatchOf(record, listingOf([tool("one", "other")])));
    await world.clock.advance(20);
    const told = await world.run(b.renew("", [{ leaseId: lease?.leaseId ?? "", setDigest }]));
    expect(told[0]?.state).toBe("register-again");
    await world.run(a.register(declare("s", [tool("one", "other")])));
    const after = await world.run(b.renew("", [{ leaseId: lease?.leaseId ?? "", setDigest: "" }]));
    expect(after[0]?.state).toBe("ok");
  });
});

describe("sizes", () => {
  const spaced = () => Buffer.from(JSON.stringify(tool("one"), undefined, 2));
  const inline = (bytes: Buffer) =>
    ({ offer: { kind: "declared", tools: [{ label: undefined, definition: bytes }] } }) as const;

  it("another spelling of the same definition changes nothing: the first bytes and their size are kept", async () => {
    const first = await world.run(a.register(declare("s", [tool("one")])));
    const again = await world.run(b.register(declare("s", [], inline(spaced()))));
    expect(again.position).toEqual(first.position);
    expect(again.setDigest).toBe(first.setDigest);
    const other = await world.run(b.register(declare("s", [], { ...inline(spaced()), instanceId: "instance-2" })));
    expect(other.setDigest).toBe(first.setDigest);
    expect((await stubsOf(a))[0]?.sizeBytes).toBe(JSON.stringify(tool("one")).length);
  });

  it("of a tool declared by digest alone is learned with the first listing, and stays when it is declared again", async () => {
    const listing = listingOf([tool("one")]);
    const digest = listing.tools[0]?.digest ?? "";
    const byDigest = (instanceId: string) =>
      declare("s", [], {
        instanceId,
        offer: { kind: "declared", tools: [{ label: { ...EMPTY_STUB, name: "one", digest }, definition: undefined }] },
      });
    const one = await world.run(a.register(byDigest("instance-1")));
    expect((await stubsOf(a))[0]?.sizeBytes).toBe(0);
    await world.run(a.listings.learn("default", "s", listing, one.position.revision));
    expect((await stubsOf(a))[0]?.sizeBytes).toBeGreaterThan(0);
    const watcher = await watch(a);
    await world.run(b.register(byDigest("instance-2")));
    expect((await stubsOf(a))[0]?.sizeBytes).toBeGreaterThan(0);
    expect(watcher.told).toEqual([]);
  });
});

describe("one order, one answer", () => {
  it("P1: watchers on two replicas hear all changes in the same order, whoever made them", async () => {
    const [one, two] = [await watch(a), await watch(b)];
    const writes = Array.from({ length: 12 }, (_, i) =>
      (i % 2 ? a : b).register(declare(`s${i % 5}`, [tool(`t${i}`)], { instanceId: `instance-${i}` })),
    );
    await world.run(Promise.all(writes));
    await world.clock.advance(100);
    expect(one.told.length).toBeGreaterThan(12);
    expect(two.events).toEqual(one.events);
  });

  it("P12: equal catalogues give byte-identical lists, in whatever order they came about", async () => {
    const other = new World();
    const c = await other.replica();
    const sets = [
      declare("a.b", [tool("x"), tool("y")]),
      declare("a", ["z"], { tags: ["t"] }),
      declare("b", [tool("m")]),
    ];
    for (const input of sets) await world.run(a.register(input));
    await other.run(c.register(declare("b", ["first-something-else"])));
    for (const input of [...sets].reverse()) await other.run(c.register(input));
    const bytes = async (r: Registry) =>
      Buffer.concat(
        (await r.stubs({ filter: everything(""), pageSize: 0, pageToken: "", minRevision: "", ifRevision: "" })).frames,
      );
    expect((await bytes(c)).equals(await bytes(a))).toBe(true);
    expect((await bytes(b)).equals(await bytes(a))).toBe(true);
    await other.stop();
  });
});

describe("how a server asks to be probed", () => {
  const probing = { intervalMs: 60_000, timeoutMs: 1_000, fall: 1, rise: 3, off: false };
  const instance = async (registry: Registry) =>
    (await registry.server({ namespace: "", serverId: "s", minRevision: "" })).server.header.instances[0];

  it("is stored with its instance, seen on every replica, and changed by the next Register alone", async () => {
    await world.run(a.register(declare("s", ["one"], { probing })));
    expect((await instance(b))?.probing).toEqual(probing);
    const before = (await instance(b))?.revision;
    await world.run(a.register(declare("s", ["one"], { probing })));
    expect((await instance(b))?.revision).toBe(before);
    await world.run(a.register(declare("s", ["one"], { probing: { ...probing, off: true } })));
    expect(await instance(b)).toMatchObject({ probing: { off: true } });
    expect((await instance(b))?.revision).not.toBe(before);
    const fresh = await world.replica();
    expect((await instance(fresh))?.probing).toEqual({ ...probing, off: true });
  });
});
