/** What an operator reads in the log: one line for each coming and going, by the replica that wrote it, and none for renewals. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Registry } from "../../../src/catalogue/registry.js";
import { declare, World } from "../../support/replica.js";

let world: World;
let a: Registry;
let b: Registry;
beforeEach(async () => {
  world = new World();
  a = await world.replica();
  b = await world.replica();
  world.news.length = 0;
});
afterEach(() => world.stop());

const register = (registry: Registry, instanceId: string, ...tools: string[]) =>
  world.run(registry.register(declare("s", tools, { instanceId, retention: { kind: "leased", ttlMs: 10_000 } })));
const told = () => world.news.splice(0);

it("a server comes, changes and goes: a line each", async () => {
  const { lease } = await register(a, "instance-1", "one", "two");
  expect(told()).toMatchObject([
    ["a server registered", { namespace: "default", server: "s", instance_id: "instance-1", instances: 1, tools_added: 2 }],
  ]);
  await register(a, "instance-1", "one", "two");
  for (let i = 0; i < 5; i++) {
    await world.clock.advance(3_000);
    await world.run(b.renew("", [{ leaseId: lease?.leaseId ?? "", setDigest: "" }]));
  }
  expect(told()).toEqual([]);

  await register(b, "instance-1", "two", "three");
  expect(told()).toMatchObject([["a server registered other content", { tools_added: 1, tools_removed: 1 }]]);
  const second = await register(b, "instance-2", "two", "three");
  expect(told()).toMatchObject([["an instance of a server registered", { instance_id: "instance-2", instances: 2 }]]);
  await world.run(a.deregister("", { kind: "lease", leaseId: second.lease?.leaseId ?? "" }));
  expect(told()).toMatchObject([["an instance of a server was deregistered", { server: "s", instances: 1 }]]);
  await world.run(a.deregister("", { kind: "tool", toolId: "s/three" }));
  expect(told()).toMatchObject([["a tool was deregistered", { tools_removed: 1 }]]);
  await world.run(a.deregister("", { kind: "server", serverId: "s" }));
  expect(told()).toMatchObject([["a server was deregistered", { server: "s", instances: 0 }]]);
});

it("leases that run out are told of as leaving", async () => {
  await register(a, "instance-1", "one");
  await world.clock.advance(6_000);
  await register(a, "instance-2", "one");
  told();
  await world.clock.advance(7_000);
  expect(told()).toMatchObject([["an instance of a server left: its lease expired", { server: "s", instances: 1 }]]);
  await world.clock.advance(10_000);
  expect(told()).toMatchObject([["a server left: its last lease expired", { server: "s", instances: 0, tools_removed: 1 }]]);
});
