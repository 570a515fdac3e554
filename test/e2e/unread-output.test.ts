import { expect, it } from "vitest";
import { RemoteRegistry, startRegistry } from "../support/registry.js";

it("found by a stranger: a registry whose output nobody reads any more serves on, and SIGTERM ends it", async () => {
  const registry = await startRegistry({ store: "memory" });
  registry.child.stdout?.destroy();
  registry.child.stderr?.destroy();
  const api = new RemoteRegistry(registry.grpc);
  // A refused call writes a line, which goes nowhere.
  await expect(api.call("register", { serverId: "Not A Name" })).rejects.toMatchObject({ code: 3 });
  expect(await api.toolIds()).toEqual([]);
  expect(await registry.stop()).toBe(0);
});
