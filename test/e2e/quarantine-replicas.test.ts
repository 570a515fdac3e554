/** A tool quarantined at one replica is withheld by every replica, through restarts and a store that lost everything. */
import { describe, expect, inject, it } from "vitest";
import { startPair, startReplicaOn } from "../support/pair.js";
import { declared } from "../support/registry.js";

const tool = (name: string, description = "Does it") => ({ name, description, inputSchema: { type: "object" } });
const TOOLS = [tool("close_order"), tool("open_order")];
const ID = "shop/close_order";
type Replica = Awaited<ReturnType<typeof startReplicaOn>>;

const idsOf = async (of: Replica, minRevision = "") => (await of.api.call("getStubs", { minRevision })).stubs.map((s: { toolId: string }) => s.toolId);

describe.skipIf(inject("redisServer") === "")("a quarantine on two replicas", () => {
  it("is seen by both, told to the watchers of both, and released by both", { timeout: 90_000 }, async () => {
    const { a, b, redis } = await startPair();
    const { revision: minRevision } = await a.api.call("register", declared("shop", TOOLS));
    const ears = [a.api.watch({ minRevision }), b.api.watch({ namePrefix: "close", minRevision })];
    for (const ear of ears) await ear.ready();
    const { revision } = await b.api.call("quarantineTool", { toolId: ID, reason: "looks hacked" });
    expect(await idsOf(a, revision)).toEqual(["shop/open_order"]);
    const found = await a.api.call("findTools", { intent: "close order", minRevision: revision });
    expect(found.withheld).toMatchObject([{ toolId: ID, cause: "CAUSE_QUARANTINED" }]);
    for (const ear of ears) await expect.poll(() => ear.told, { timeout: 30_000 }).toEqual([`QUARANTINED ${ID}`]);

    const late = await startReplicaOn(redis.url);
    expect(await idsOf(late)).toEqual(["shop/open_order"]);
    // Everybody at once, on all replicas: whoever is last, all say the same.
    await Promise.all([
      a.api.call("register", declared("shop", TOOLS, { instanceId: "instance-2" })),
      b.api.call("approveTool", { toolId: ID }),
      late.api.call("quarantineTool", { toolId: ID, reason: "still looks hacked" }),
    ]);
    const mark = await a.api.call("register", declared("mark", [tool("mark")]));
    const [one, two, three] = await Promise.all([a, b, late].map((of) => idsOf(of, mark.revision)));
    expect([two, three]).toEqual([one, one]);
    // Where the approval was the last of them, this one changes nothing, and nobody hears of it.
    const { revision: released } = await late.api.call("approveTool", { toolId: ID });
    expect(await idsOf(a, released)).toContain(ID);
    await expect.poll(() => ears[1]?.told.filter((said) => said.endsWith(ID)).at(-1), { timeout: 30_000 }).toBe(`RELEASED ${ID}`);
  });

  it("comes back after the store lost everything, and is kept for the next time its server leaves", { timeout: 90_000 }, async () => {
    const { a, b, redis } = await startPair();
    await a.api.call("register", declared("shop", TOOLS));
    await a.api.call("quarantineTool", { toolId: ID, reason: "looks hacked" });
    await redis.flush();
    // Whoever starts now remembers nothing.
    const fresh = await startReplicaOn(redis.url);
    await fresh.api.call("register", declared("shop", TOOLS));
    for (const of of [fresh, a, b]) await expect.poll(() => idsOf(of), { timeout: 30_000 }).toEqual(["shop/open_order"]);
    await fresh.api.call("deregister", { serverId: "shop" });
    const again = await fresh.api.call("register", declared("shop", TOOLS));
    expect(await idsOf(fresh, again.revision)).toEqual(["shop/open_order"]);
  });
});
