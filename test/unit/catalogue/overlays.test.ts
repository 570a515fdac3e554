/** What operators lay over labels: shown everywhere, kept as long as it fits, never in the way of a definition. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import type { Fault } from "../../../src/domain/fault.js";
import { versionOf } from "../../../src/domain/overlay.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";
import type { Stub } from "../../../src/gen/toolcrib/v1/stub_pb.js";
import { declare, introspect, listingOf, stubsOf, tool, watch, World } from "../../support/replica.js";

let world: World;
let registry: Registry;
beforeEach(async () => {
  world = new World();
  registry = await world.replica();
});
afterEach(() => world.stop());

const TOOLS = [tool("close_order", "Closes it"), tool("open_order", "Opens it")];
const WORDS = { briefDescription: "Closes a purchase order that is paid", keywords: ["invoice", "settle"], useWhen: "An order is paid and done" };

async function stubOf(name = "close_order", of = registry): Promise<Stub> {
  const found = (await stubsOf(of)).find((stub) => stub.name === name);
  if (!found) throw new Error(`${name} is not listed`);
  return found;
}

async function proposal(name = "close_order", texts = WORDS) {
  const { briefDescription, keywords, useWhen, digest } = await stubOf(name);
  return { toolName: name, texts, digest, madeFor: { briefDescription, keywords, useWhen } };
}

const approve = (overlays: readonly Awaited<ReturnType<typeof proposal>>[], trial = false, serverId = "shop") =>
  world.run(registry.approveOverlays({ namespace: "", serverId, overlays, trial }));
const withdraw = (toolNames: readonly string[] = []) => world.run(registry.withdrawOverlays({ namespace: "", serverId: "shop", toolNames }));
const register = (tools: readonly (string | object)[] = TOOLS, more = {}) => world.run(registry.register(declare("shop", tools, more)));
const states = async (serverIds: readonly string[] = []) =>
  (await world.run(registry.overlays({ namespace: "", serverIds }))).overlays.map(({ toolId, state, why }) => (why === "" ? `${toolId} ${state}` : `${toolId} ${state}: ${why}`));
const faultOf = (work: Promise<unknown>) => work.then(() => expect.fail("it was taken"), (fault: Fault) => fault);

describe("an approved overlay", () => {
  it("is one revision, shown on every replica, and leaves the definition and the rest of the label alone", async () => {
    await register();
    const other = await world.replica();
    const before = await stubOf();
    const ear = await watch(other);
    const head = registry.partitions[0]?.live().history.head.revision ?? 0;
    const output = await approve([await proposal()]);
    expect(output).toMatchObject({ changed: 1, position: { revision: head + 1 }, overlays: [{ toolId: "shop/close_order", state: "shown" }] });
    await world.clock.advance(100);

    const after = await stubOf();
    expect(after).toMatchObject(WORDS);
    expect({ ...after, ...WORDS }).toEqual({ ...before, ...WORDS });
    expect(after.digest).toBe(before.digest);
    expect(await stubsOf(other)).toEqual(await stubsOf(registry));
    expect(ear.told).toEqual(["UPDATED shop/close_order"]);
    expect(ear.events[0]).toMatchObject({ old: before.digest, new: before.digest });
    expect(await states()).toEqual(["shop/close_order shown"]);

    // Again: nothing to do.
    expect(await approve([{ ...(await proposal()), madeFor: { briefDescription: before.briefDescription, keywords: [], useWhen: "" } }])).toMatchObject({ changed: 0, position: { revision: head + 1 } });
  });

  it("replaces only the parts that it has", async () => {
    await register(["plain"]);
    // Its definition is not known, so no overlay can have been made for it.
    const fault = await faultOf(approve([{ ...(await proposal("plain")), digest: `sha256:${"0".repeat(64)}` }]));
    expect(fault).toMatchObject({ reason: "INVALID_REQUEST", violations: [{ field: "overlays[0].digest", description: expect.stringContaining("is not known yet") as string }] });
    await register();
    await approve([await proposal("close_order", { briefDescription: "", keywords: ["settle"], useWhen: "" })]);
    expect(await stubOf()).toMatchObject({ briefDescription: "Closes it", keywords: ["settle"], useWhen: "" });
  });

  it("outlives registrations of the same tool, its server's leaving, and a new history's snapshot", async () => {
    await register();
    await approve([await proposal()]);
    const ear = await watch(registry);
    await register([...TOOLS, tool("third")]);
    await register(TOOLS, { instanceId: "instance-2", tags: [] });
    await world.clock.advance(50);
    expect(ear.told.filter((text) => text.includes("close_order"))).toEqual([]);
    await world.run(registry.deregister("", { kind: "server", serverId: "shop" }));
    expect(await states(["shop"])).toEqual(["shop/close_order inactive: its server is not registered now"]);
    expect(await states()).toEqual([]);
    await register();
    expect(await stubOf()).toMatchObject(WORDS);
    // A replica that starts now reads it from the record.
    const late = await world.replica();
    expect(await stubsOf(late)).toEqual(await stubsOf(registry));
    expect(await states()).toEqual(["shop/close_order shown"]);
  });

  it("rests while the definition or the label is another one, says so, and holds again when they come back", async () => {
    await register();
    await approve([await proposal()]);
    const changed = [{ ...tool("close_order", "Closes it"), outputSchema: { type: "object" } }, TOOLS[1] as object];
    await register(changed);
    expect(await stubOf()).toMatchObject({ briefDescription: "Closes it", keywords: [] });
    expect(world.news.at(-1), "an operator reads of it").toMatchObject(["a server registered other content", { tools_changed: 1, overlays_resting: 1 }]);
    expect(await states()).toEqual(["shop/close_order inactive: the tool has another definition now: propose it anew"]);
    await register([TOOLS[1] as object]);
    expect(await states()).toEqual(["shop/close_order inactive: its server has no such tool now"]);
    await register();
    expect(await stubOf()).toMatchObject(WORDS);

    const labelled = declare("shop", TOOLS, {
      offer: { kind: "declared", tools: TOOLS.map((t, i) => ({ label: { ...EMPTY_STUB, name: "", useWhen: i === 0 ? "Always" : "" }, definition: Buffer.from(JSON.stringify(t)) })) },
    });
    await world.run(registry.register(labelled));
    expect(await states()).toEqual(["shop/close_order inactive: the tool's registrant labels it otherwise now: propose it anew"]);
    expect(await stubOf()).toMatchObject({ briefDescription: "Closes it", useWhen: "Always" });
  });

  it("is told of registrations as it is: unchanged tools stay unchanged, and previews say the same", async () => {
    await register();
    await approve([await proposal()]);
    const again = await register(TOOLS, { instanceId: "instance-3" });
    expect(again.tools.map(({ outcome }) => outcome)).toEqual(["unchanged", "unchanged"]);
    const preview = await register(TOOLS, { validateOnly: true });
    expect(preview.tools.map(({ outcome }) => outcome)).toEqual(["unchanged", "unchanged"]);
    expect(again.setDigest).toBe(preview.setDigest);
  });

  it("outlives listings of an introspected server", async () => {
    world.listings.set("http://127.0.0.1:1/mcp", TOOLS);
    await world.run(registry.register(introspect("shop", "http://127.0.0.1:1/mcp")));
    await approve([await proposal()]);
    const revision = () => registry.partitions[0]?.live().history.server("default", "shop")?.record.revision ?? 0;
    const listed = (tools: readonly object[]) => world.run(registry.listings.commitListing("default", "shop", listingOf(tools), revision()));
    expect(await listed(TOOLS)).toBe("unchanged");
    expect(await listed([...TOOLS, tool("third")])).toBe("committed");
    expect(await stubOf()).toMatchObject(WORDS);
    expect(await listed([{ ...TOOLS[0], description: "Closes it for good" }, TOOLS[1] as object])).toBe("committed");
    expect(await stubOf()).toMatchObject({ briefDescription: "Closes it for good", keywords: [] });
    expect(await listed(TOOLS)).toBe("committed");
    expect(await stubOf()).toMatchObject(WORDS);
  });

  it("holds once a digest that the registrant did not give is learned", async () => {
    world.listings.set("http://127.0.0.1:9/mcp", [tool("close_order", "close_order does something")]);
    const learn = async () => {
      const revision = registry.partitions[0]?.live().history.server("default", "shop")?.record.revision ?? 0;
      return world.run(registry.listings.learn("default", "shop", listingOf([tool("close_order", "close_order does something")]), revision));
    };
    await register(["close_order"]);
    expect(await learn()).toBe("committed");
    await approve([await proposal()]);
    expect(await learn()).toBe("unchanged");
    await world.run(registry.deregister("", { kind: "server", serverId: "shop" }));
    await register(["close_order"]);
    expect(await stubOf()).toMatchObject({ briefDescription: "close_order does something" });
    expect(await states()).toEqual(["shop/close_order inactive: the tool's definition is not known yet"]);
    expect(await learn()).toBe("committed");
    expect(await stubOf()).toMatchObject(WORDS);
  });
});

describe("a trial", () => {
  it("shows in no list and makes no event; approving without it shows it", async () => {
    await register();
    const ear = await watch(registry);
    const before = await stubsOf(registry);
    expect(await approve([await proposal()], true)).toMatchObject({ changed: 1, overlays: [{ state: "trial" }] });
    await world.clock.advance(50);
    expect(await stubsOf(registry)).toEqual(before);
    expect(ear.told).toEqual([]);
    expect(await states()).toEqual(["shop/close_order trial"]);
    await register(TOOLS, { instanceId: "instance-2" });
    expect(await states()).toEqual(["shop/close_order trial"]);
    await approve([await proposal()]);
    await world.clock.advance(50);
    expect(await stubOf()).toMatchObject(WORDS);
    expect(ear.told).toEqual(["UPDATED shop/close_order"]);
    // And back to a trial: the registrant's own words show again.
    await approve([{ ...(await proposal()), madeFor: { briefDescription: "Closes it", keywords: [], useWhen: "" } }], true);
    expect(await stubsOf(registry)).toEqual(before);
  });
});

describe("a withdrawal", () => {
  it("shows the registrant's words again, for good", async () => {
    await register();
    const before = await stubsOf(registry);
    await approve([await proposal(), await proposal("open_order")]);
    expect(await withdraw(["close_order", "nobody"])).toMatchObject({ toolNames: ["close_order"] });
    expect(await states()).toEqual(["shop/open_order shown"]);
    expect(await withdraw()).toMatchObject({ toolNames: ["open_order"] });
    expect(await stubsOf(registry)).toEqual(before);
    await world.run(registry.deregister("", { kind: "server", serverId: "shop" }));
    expect(await withdraw()).toEqual({ position: undefined, toolNames: [] });
    await register();
    expect(await stubsOf(registry)).toEqual(before);
  });

  it("reaches what is kept for a server that has left", async () => {
    await register();
    await approve([await proposal()]);
    await world.run(registry.deregister("", { kind: "server", serverId: "shop" }));
    expect(await withdraw()).toEqual({ position: undefined, toolNames: ["close_order"] });
    expect(await states(["shop"])).toEqual([]);
  });
});

describe("what is refused", () => {
  it("is refused with everything that is wrong, and changes nothing", async () => {
    await register();
    const good = await proposal();
    const before = await stubsOf(registry);
    const wrong = [
      good,
      { ...(await proposal("open_order")), digest: good.digest },
      { ...good, toolName: "nobody" },
    ];
    const misfit = await faultOf(approve(wrong));
    expect(misfit.violations.map(({ field }) => field)).toEqual(["overlays[1].digest", "overlays[2].tool_name"]);
    const other = { ...good, madeFor: { ...good.madeFor, useWhen: "something else" } };
    expect((await faultOf(approve([other]))).violations).toMatchObject([{ field: "overlays[0].made_for" }]);
    const malformed = await faultOf(
      approve([
        { ...good, texts: { briefDescription: "x".repeat(601), keywords: ["a\nb", ""], useWhen: "hidden \u202e" } },
        { ...good, digest: "sha1:1", texts: { briefDescription: "", keywords: [], useWhen: "" } },
      ]),
    );
    expect(malformed.violations.map(({ field }) => field)).toEqual([
      "overlays[0].texts.brief_description",
      "overlays[0].texts.use_when",
      "overlays[0].texts.keywords[0]",
      "overlays[0].texts.keywords[1]",
      "overlays[1].tool_name",
      "overlays[1].digest",
      "overlays[1].texts",
    ]);
    expect((await faultOf(approve([]))).violations).toMatchObject([{ field: "overlays" }]);
    expect(await faultOf(approve([good], false, "nobody"))).toMatchObject({ reason: "NOT_FOUND" });
    expect(await stubsOf(registry)).toEqual(before);
    expect(await states(["shop"])).toEqual([]);
  });
});

describe("a version", () => {
  it("names the words, the definition and the label, not who approved them or when", () => {
    const one = { texts: WORDS, madeFor: { briefDescription: "a", keywords: [], useWhen: "" }, digest: "d" };
    expect(versionOf(one)).toBe(versionOf({ ...one }));
    expect(versionOf(one)).not.toBe(versionOf({ ...one, digest: "e" }));
    expect(versionOf(one)).not.toBe(versionOf({ ...one, texts: { ...WORDS, useWhen: "" } }));
    expect(versionOf(one)).toMatch(/^o[0-9a-f]{15}$/);
  });
});
