/** Tools that the operators' rules include whatever is asked stand in a session's first list already. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { connectClient, testGateway } from "../support/gateway.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object" } });

it("includes what rules include for every question, and nothing that waits for a scope or a state", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-included-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(
    join(folder, "default.yaml"),
    [
      "rules:",
      "  - { name: clock, include: [post/clock] }",
      "  - { name: guarded, include: [guarded/pay] }",
      "  - { name: asleep, when: { state: [night] }, deny: [post/ship_parcel] }",
      "  - { name: sometimes, when: { intent: [parcel] }, include: [post/ship_parcel] }",
    ].join("\n"),
  );
  const registry = await startRegistry({ store: "memory", args: ["--gate-rules", folder] });
  const remote = new RemoteRegistry(registry.grpc);
  await remote.call("register", declared("post", [tool("clock", "What time it is."), tool("ship_parcel", "Hand a parcel to the carrier.")]));
  const pay = { stub: { name: "pay", briefDescription: "Pay an invoice.", requires: [{ scope: "finance" }] }, definition: Buffer.from(JSON.stringify(tool("pay", "Pay an invoice."))) };
  await remote.call("register", { serverId: "guarded", instanceId: "instance-1", declared: { tools: [pay] } });
  await expect.poll(async () => (await remote.call("getModuleMap")).alwaysIncluded).toEqual(["post/clock"]);

  expect((await remote.call("getModuleMap")).stateFacts).toEqual(["night"]);

  const gateway = await testGateway(registry.grpc);
  const session = await connectClient("sdk v1", gateway.url);
  expect(await session.names()).toEqual(["find_tools", "post__clock"]);
  await session.call("find_tools", { intent: "send a parcel" });
  expect(await session.names()).toEqual(expect.arrayContaining(["find_tools", "post__clock", "post__ship_parcel"]));

  // Rules that wait for a fact are a reason to ask for it, and act on it.
  const [finder] = await session.listed();
  expect(finder.inputSchema.properties.state.description).toContain("night");
  const asleep = await session.call("find_tools", { intent: "send a parcel", state: ["night"] });
  expect(asleep.text).toContain("Not offered: post/ship_parcel");
  expect(await session.names()).not.toContain("post__ship_parcel");

  const modern = await connectClient("sdk v2, negotiating", gateway.url);
  const found = await modern.call("find_tools", { intent: "what time is it" });
  expect(found.text).toContain("post/clock");
});
