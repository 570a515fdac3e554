/** A good tool is withheld until its definition is approved: on every replica, whatever its registrant, a restart or a lost store does. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import type { Fault } from "../../../src/domain/fault.js";
import type { Filter } from "../../../src/domain/filter.js";
import { stubCodec } from "../../../src/store/codec/stub.js";
import { decodeChange, decodeRecord, encodeChange, encodeRecord } from "../../../src/store/codec/storage.js";
import { Flushable } from "../../support/flushable.js";
import { declare, introspect, listingOf, stubsOf, tool, watch, World } from "../../support/replica.js";

let world: World;
let registry: Registry;
beforeEach(async () => {
  world = new World();
  registry = await world.replica();
});
afterEach(() => world.stop());

const TOOLS = [tool("close_order"), tool("open_order")];
const CHANGED = [tool("close_order", "Closes it, and deletes what was ordered"), tool("open_order")];
const ID = "shop/close_order";

const run = <T>(work: Promise<T>) => world.run(work);
const register = (tools: readonly (string | object)[] = TOOLS, more = {}, of = registry) => run(of.register(declare("shop", tools, more)));
const quarantine = (reason = "looks hacked", toolId = ID, of = registry) => run(of.quarantineTool({ namespace: "", toolId, reason }));
const approve = (digest = "", anyDigest = false, toolId = ID) => run(registry.approveTool({ namespace: "", toolId, digest, anyDigest }));
const names = async (of = registry, filter: Partial<Filter> = {}) => (await stubsOf(of, filter)).map((stub) => stub.toolId);
const recordOf = async (of = registry) => (await run(of.server({ namespace: "", serverId: "shop", minRevision: "" }))).server;
const head = () => registry.partitions[0]?.live().history.head.revision ?? 0;
const digestOf = (tools: readonly object[]) => listingOf(tools).tools[0]?.digest ?? "";
const faultOf = (work: Promise<unknown>) => work.then(() => expect.fail("it was taken"), (fault: Fault) => fault);
const ears = async (of = registry) => ({
  all: await watch(of),
  tagged: await watch(of, { tagsAny: ["red"] }),
  named: await watch(of, { namePrefix: "open" }),
  up: await watch(of, { availability: "available" }),
});

describe("a quarantine", () => {
  it("is one revision, hides the tool on every replica, and is told to those who had it", async () => {
    await register(TOOLS, { tags: ["red"] });
    const other = await world.replica();
    const ear = await ears(other);
    const before = head();
    const output = await quarantine();
    expect(output).toMatchObject({
      withheld: true,
      position: { revision: before + 1 },
      tool: { toolId: ID, reason: "looks hacked", by: "anonymous", digest: digestOf(TOOLS), approvedDigest: "" },
    });
    await world.clock.advance(100);
    for (const of of [registry, other, await world.replica()]) {
      expect(await names(of)).toEqual(["shop/open_order"]);
      expect(await names(of, { tagsAll: ["red"] })).toEqual(["shop/open_order"]);
      expect(await names(of, { namePrefix: "close" })).toEqual([]);
      const late = await watch(of);
      expect(late.stubs.map(({ toolId }) => toolId)).toEqual(["shop/open_order"]);
    }
    for (const one of [ear.all, ear.tagged, ear.up]) expect(one.told).toEqual([`QUARANTINED ${ID}`]);
    expect(ear.named.told).toEqual([]);
    expect(ear.all.events[0]).toMatchObject({ old: digestOf(TOOLS), new: "" });
    // Still the server's: it counts towards its set, and nothing was deregistered.
    expect((await recordOf()).tools).toHaveLength(2);

    // The same again changes nothing, another reason does.
    expect(await quarantine()).toMatchObject({ withheld: false, position: { revision: before + 1 } });
    expect(await quarantine("it is hacked")).toMatchObject({ withheld: false, position: { revision: before + 2 }, tool: { reason: "it is hacked", sinceMs: output.tool.sinceMs } });
    await world.clock.advance(100);
    expect(ear.all.told).toEqual([`QUARANTINED ${ID}`]);
  });

  it("moves no page of a list that goes on, and says not modified to whom it does not concern", async () => {
    await register(["a", "b", "c", "d"].map((name) => tool(name)));
    const page = (pageToken: string) => registry.stubs({ filter: everythingOf(), pageSize: 2, pageToken, minRevision: "", ifRevision: "" });
    const first = await page("");
    await quarantine("test", "shop/b");
    const second = await page(first.nextPageToken);
    expect(Buffer.concat(second.frames).toString("latin1")).toContain("shop/c");
    expect(await names()).toEqual(["shop/a", "shop/c", "shop/d"]);
  });

  it("holds through registrations, listings, a server that left, and restarts", async () => {
    await register();
    await quarantine();
    const ear = await watch(registry);
    await register([...TOOLS, tool("third")]);
    await register(TOOLS, { instanceId: "instance-2" });
    const answer = await register(CHANGED);
    expect(answer.tools.map(({ outcome }) => outcome)).toEqual(["accepted", "unchanged"]);
    expect(ear.told.filter((text) => text.includes("close_order"))).toEqual([]);
    await register([TOOLS[1] as object]);
    await register();
    expect(await names()).toEqual(["shop/open_order"]);
    await run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await register();
    expect(await names()).toEqual(["shop/open_order"]);
    expect(await names(await world.replica())).toEqual(["shop/open_order"]);

    world.listings.set("http://127.0.0.1:1/mcp", TOOLS);
    await run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await run(registry.register(introspect("shop", "http://127.0.0.1:1/mcp")));
    const listed = async (tools: readonly object[]) => run(registry.listings.commitListing("default", "shop", listingOf(tools), (await recordOf()).revision));
    expect(await listed(TOOLS)).toBe("unchanged");
    expect(await listed([TOOLS[1] as object])).toBe("committed");
    expect(await listed(CHANGED)).toBe("committed");
    expect(await names()).toEqual(["shop/open_order"]);
  });

  it("outlives an unrelated removal without an event of its own", async () => {
    await register();
    await quarantine();
    const ear = await watch(registry);
    await run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await world.clock.advance(50);
    expect(ear.told).toEqual(["DEREGISTERED shop/open_order"]);
  });

  it("is refused for what is not there and for what makes no sense", async () => {
    await register();
    expect(await faultOf(quarantine("why", "shop/nobody"))).toMatchObject({ reason: "NOT_FOUND", message: expect.stringContaining("shop/nobody") as string });
    expect(await faultOf(quarantine("why", "nobody/close_order"))).toMatchObject({ reason: "NOT_FOUND" });
    expect((await faultOf(quarantine(" ", "shop"))).violations.map(({ field }) => field)).toEqual(["tool_id", "reason"]);
    expect((await faultOf(quarantine("x".repeat(601)))).violations.map(({ field }) => field)).toEqual(["reason"]);
    expect((await faultOf(approve("sha256:no"))).violations.map(({ field }) => field)).toEqual(["digest"]);
    expect((await faultOf(approve(`sha256:${"0".repeat(64)}`, true))).violations.map(({ field }) => field)).toEqual(["any_digest"]);
    expect(await faultOf(approve("", false, "shop/nobody"))).toMatchObject({ reason: "NOT_FOUND" });
    expect(await names()).toEqual([ID, "shop/open_order"]);
  });
});

describe("an approval", () => {
  it("releases the tool in one revision, as long as its definition is the approved one", async () => {
    await register();
    await quarantine();
    const ear = await ears();
    const before = head();
    expect(await approve()).toMatchObject({ released: true, tool: undefined, approvedDigest: digestOf(TOOLS), position: { revision: before + 1 } });
    expect(await approve()).toMatchObject({ released: false, tool: undefined, position: { revision: before + 1 } });
    await world.clock.advance(50);
    expect(await names()).toEqual([ID, "shop/open_order"]);
    expect(ear.all.told).toEqual([`RELEASED ${ID}`]);
    expect(ear.all.events[0]).toMatchObject({ old: "", new: digestOf(TOOLS) });
    expect(ear.named.told).toEqual([]);

    await register(CHANGED);
    expect(await names()).toEqual(["shop/open_order"]);
    await register(TOOLS);
    await register(CHANGED);
    await world.clock.advance(50);
    expect(ear.all.told).toEqual(["RELEASED", "QUARANTINED", "RELEASED", "QUARANTINED"].map((type) => `${type} ${ID}`));
    expect(await approve()).toMatchObject({ released: true, approvedDigest: digestOf(CHANGED) });
    await run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await register(CHANGED);
    expect(await names()).toEqual([ID, "shop/open_order"]);
    await register(TOOLS);
    expect(await names()).toEqual(["shop/open_order"]);
  });

  it("of a definition that the tool does not have yet waits for it", async () => {
    await register();
    await quarantine();
    expect(await approve(digestOf(CHANGED))).toMatchObject({ released: false, tool: { toolId: ID, digest: digestOf(TOOLS), approvedDigest: digestOf(CHANGED) } });
    expect(await names()).toEqual(["shop/open_order"]);
    const ear = await watch(registry);
    await register(CHANGED);
    await world.clock.advance(50);
    expect(ear.told).toEqual([`RELEASED ${ID}`]);
    // Quarantining it again takes the approval back.
    expect(await quarantine("again")).toMatchObject({ withheld: true, tool: { approvedDigest: "" } });
    expect(await names()).toEqual(["shop/open_order"]);
  });

  it("of whatever definition forgets the quarantine", async () => {
    await register();
    await quarantine();
    expect(await approve("", true)).toMatchObject({ released: true, approvedDigest: "" });
    await register(CHANGED);
    await run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await register();
    expect(await names()).toEqual([ID, "shop/open_order"]);
    const before = head();
    expect(await approve()).toMatchObject({ released: false, tool: undefined, approvedDigest: "", position: { revision: before } });
  });

  it("names a definition that is not known yet, or none", async () => {
    await register(["close_order", "open_order"]);
    await quarantine();
    expect((await faultOf(approve())).violations).toMatchObject([{ field: "digest", description: expect.stringContaining("is not known yet") as string }]);
    const ear = await watch(registry);
    await approve(digestOf(TOOLS));
    expect(await names()).toEqual(["shop/open_order"]);
    expect(await run(registry.listings.learn("default", "shop", listingOf(TOOLS), (await recordOf()).revision))).toBe("committed");
    await world.clock.advance(50);
    expect(await names()).toEqual([ID, "shop/open_order"]);
    expect(ear.told).toEqual([`RELEASED ${ID}`, "UPDATED shop/open_order"]);
  });
});

describe("a store that lost everything", () => {
  it("gets the quarantines back from a replica that remembers them, before and after the server is back", async () => {
    const flushable = new Flushable(world);
    const old = await world.replica(flushable.attach().store);
    await register(TOOLS, {}, old);
    await run(old.register(declare("gone", TOOLS)));
    await quarantine("looks hacked", ID, old);
    await quarantine("looks hacked", "gone/close_order", old);
    flushable.flush();
    // Registered again where nobody remembers: it is put back there.
    const fresh = await world.replica(flushable.attach().store);
    await register(TOOLS, {}, fresh);
    await world.clock.advance(5_000);
    expect(await names(fresh)).toEqual(["shop/open_order"]);
    await run(fresh.register(declare("gone", TOOLS)));
    await world.clock.advance(5_000);
    expect(await names(fresh)).toEqual(["gone/open_order", "shop/open_order"]);
    expect(await names(old)).toEqual(["gone/open_order", "shop/open_order"]);
  });
});

describe("the stored form", () => {
  it("is read as it was written, beside what is not understood", async () => {
    await register();
    await quarantine();
    const record = await recordOf();
    const beyond = Uint8Array.of(0xfa, 0x3f, 1, 7);
    const tools = record.tools.map((one) => ({ ...one, beyond }));
    const again = decodeRecord(encodeRecord({ ...record, tools }), record.revision);
    expect(again.tools[0]?.quarantine).toEqual(tools[0]?.quarantine);
    expect(again.tools.map((one) => one.beyond)).toEqual([beyond, beyond]);
    const change = { namespace: "default", serverId: "shop", cause: "approve", header: record.header, tools: [{ name: "close_order", before: tools[0], after: tools[0] }], availabilityBefore: "available" } as const;
    expect(decodeChange(encodeChange(change as never))).toMatchObject({ cause: "approve", tools: [{ before: { quarantine: { reason: "looks hacked" } } }] });
    const one = tools[0]?.quarantine;
    expect(stubCodec.quarantines.decodeShelf(stubCodec.quarantines.encodeShelf(one ? [one] : []))).toEqual([one]);
  });
});

function everythingOf(): Filter {
  return { namespace: "", tagsAny: [], tagsAll: [], serverIds: [], namePrefix: "", availability: undefined };
}
