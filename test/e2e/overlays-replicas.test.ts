/** An overlay approved at one replica is on every replica, survives restarts and a store that lost everything, and moves no digest. */
import { describe, expect, inject, it } from "vitest";
import { startPair, startReplicaOn } from "../support/pair.js";
import { declared } from "../support/registry.js";

const TOOL = { name: "close_order", description: "Closes it", inputSchema: { type: "object" } };
const WORDS = { briefDescription: "Closes a purchase order once it is paid", keywords: ["settle"], useWhen: "It is paid" };

describe.skipIf(inject("redisServer") === "")("overlays on two replicas", () => {
  it("are shown by both, told to their watchers, and found by both", { timeout: 90_000 }, async () => {
    const { a, b, redis } = await startPair();
    const registered = await a.api.call("register", declared("shop", [TOOL]));
    const stubOf = async (of: typeof a, minRevision = "") => (await of.api.call("getStubs", { minRevision })).stubs[0];
    const own = await stubOf(a);
    const ear = b.api.watch({ minRevision: registered.revision });
    await ear.ready();
    const madeFor = { briefDescription: own.briefDescription, keywords: [], useWhen: "" };
    const overlays = [{ toolName: TOOL.name, texts: WORDS, digest: own.digest, madeFor }];
    const approve = (at: typeof a, trial = false) => at.api.call("approveOverlays", { serverId: "shop", overlays, trial });

    const trial = await approve(b, true);
    expect(await stubOf(a, trial.revision)).toEqual(own);
    const { revision } = await approve(a);
    expect(await stubOf(b, revision)).toEqual({ ...own, ...WORDS });
    expect(await stubOf(a)).toEqual(await stubOf(b));
    await expect.poll(() => ear.told).toEqual(["UPDATED shop/close_order"]);
    expect(ear.events[0]).toMatchObject({ oldDigest: own.digest, newDigest: own.digest });
    await expect.poll(async () => (await b.api.call("findTools", { intent: "settle" })).tools[0]?.stub.toolId).toBe("shop/close_order");

    const late = await startReplicaOn(redis.url);
    expect(await stubOf(late)).toEqual(await stubOf(a));
    expect((await late.api.call("listOverlays", {})).overlays).toMatchObject([{ state: "STATE_SHOWN", version: trial.overlays[0].version }]);

    // Two replicas withdraw and approve at once: whoever was last, all of them say the same.
    await Promise.all([approve(a), b.api.call("withdrawOverlays", { serverId: "shop" }), approve(late, true)]);
    const mark = await a.api.call("register", declared("mark", [{ ...TOOL, name: "mark" }]));
    const shop = async (of: typeof a) => (await of.api.call("getStubs", { filter: { serverIds: ["shop"] }, minRevision: mark.revision })).stubs;
    const [one, two, three] = await Promise.all([a, b, late].map(shop));
    expect(two).toEqual(one);
    expect(three).toEqual(one);
  });

  it("come back with a leased server after the store lost everything, and are kept for the next time it leaves", { timeout: 90_000 }, async () => {
    const { a, b, redis } = await startPair();
    const register = (of: typeof a) => of.api.call("register", declared("shop", [TOOL]));
    await register(a);
    const own = (await a.api.call("getStubs", {})).stubs[0];
    const madeFor = { briefDescription: own.briefDescription, keywords: [], useWhen: "" };
    await a.api.call("approveOverlays", { serverId: "shop", overlays: [{ toolName: TOOL.name, texts: WORDS, digest: own.digest, madeFor }] });
    await redis.flush();
    // Both know that the history is gone before the new one's revision is asked for.
    for (const { api } of [a, b]) await expect.poll(async () => (await api.call("getStubs", {})).stale).toBe(true);
    const { revision } = await register(a);
    expect((await b.api.call("getStubs", { minRevision: revision })).stubs[0]).toEqual({ ...own, ...WORDS });
    await b.api.call("deregister", { serverId: "shop" });
    const again = await register(b);
    expect((await a.api.call("getStubs", { minRevision: again.revision })).stubs[0]).toEqual({ ...own, ...WORDS });
  });
});
