import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import type { Grant, Principal } from "../../../src/domain/identity.js";
import { declare, stubsOf, watch, World } from "../../support/replica.js";

let world: World;
let a: Registry;
let b: Registry;
beforeEach(async () => {
  world = new World();
  a = await world.replica();
  b = await world.replica();
});
afterEach(() => world.stop());

const who = (id: string, role: Grant["role"] = "registrant", servers?: string[]): Principal => ({
  id,
  grants: [{ role, namespaces: ["default"], ...(servers && { servers }) }],
});
const alice = who("alice");
const bob = who("bob");
const operator = who("op", "operator");
const ownerOf = async (registry: Registry): Promise<string> => {
  const { server } = await registry.server({ namespace: "", serverId: "s", minRevision: "" });
  return server.header.owner;
};
const lease = (leaseId: string) => [{ leaseId, setDigest: "" }];

describe("the first registrant of a server_id", () => {
  it("owns it on every replica; another is NOT_OWNER, and nothing changes", async () => {
    const first = await world.run(a.register(declare("s", ["one"]), alice));
    const watcher = await watch(b);
    for (const registry of [a, b]) {
      for (const more of [
        {},
        { instanceId: "instance-2" },
        { validateOnly: true },
        { etag: "0" },
        { requestId: "r" },
      ]) {
        await expect(world.run(registry.register(declare("s", ["two"], more), bob))).rejects.toMatchObject({
          reason: "NOT_OWNER",
          status: "ALREADY_EXISTS",
          metadata: { server: "s" },
        });
      }
    }
    expect(watcher.events).toEqual([]);
    const again = await world.run(b.register(declare("s", ["one"]), alice));
    expect(again.position).toEqual(first.position);
    expect(await ownerOf(b)).toBe("alice");
  });

  it("is one of two who try at once on two replicas", async () => {
    const both = await world.run(
      Promise.allSettled([
        a.register(declare("s", ["one"]), alice),
        b.register(declare("s", ["one"], { instanceId: "instance-2" }), bob),
      ]),
    );
    expect(both.map((r) => r.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await ownerOf(a)).toBe(both[0]?.status === "fulfilled" ? "alice" : "bob");
  });

  it("stays the owner when an operator registers, and whoever is first after its end is the next", async () => {
    const { lease: granted } = await world.run(a.register(declare("s", ["one"]), alice));
    await world.run(a.register(declare("s", ["two"], { instanceId: "instance-2" }), operator));
    expect(await ownerOf(a)).toBe("alice");
    expect((await world.run(a.deregister("", { kind: "server", serverId: "s" }, alice))).removed).toBe(true);
    await world.run(b.register(declare("s", ["one"]), bob));
    expect(await ownerOf(b)).toBe("bob");
    const [late] = await world.run(a.renew("", lease(granted?.leaseId ?? ""), alice));
    expect(late?.state).not.toBe("ok");
  });

  it("takes over what was registered while nobody was identified", async () => {
    await world.run(a.register(declare("s", ["one"])));
    expect(await ownerOf(a)).toBe("anonymous");
    await world.run(a.register(declare("s", ["one"]), alice));
    expect(await ownerOf(a)).toBe("alice");
    await expect(world.run(a.register(declare("s", ["one"]), bob))).rejects.toMatchObject({ reason: "NOT_OWNER" });
  });
});

describe("another's server", () => {
  it("is not renewed, not ended by lease, and FORBIDDEN to remove; operators may", async () => {
    const { lease: granted } = await world.run(a.register(declare("s", ["one"]), alice));
    const leaseId = granted?.leaseId ?? "";
    for (const stranger of [bob, who("alice", "registrant", ["other-*"])]) {
      expect(await world.run(a.renew("", lease(leaseId), stranger))).toMatchObject([{ state: "unknown-lease" }]);
      expect(await world.run(a.deregister("", { kind: "lease", leaseId }, stranger))).toEqual({
        position: undefined,
        removed: false,
      });
      for (const target of [
        { kind: "server", serverId: "s" },
        { kind: "tool", toolId: "s/one" },
      ] as const)
        await expect(world.run(b.deregister("", target, stranger))).rejects.toMatchObject({
          reason: "FORBIDDEN",
          status: "PERMISSION_DENIED",
        });
    }
    expect((await stubsOf(a)).map((s) => s.toolId)).toEqual(["s/one"]);
    expect(await world.run(a.renew("", lease(leaseId), alice))).toMatchObject([{ state: "ok" }]);
    expect(await world.run(a.renew("", lease(leaseId), operator))).toMatchObject([{ state: "ok" }]);
    expect((await world.run(a.deregister("", { kind: "server", serverId: "s" }, operator))).removed).toBe(true);
  });
});
