/** A gateway that has just started: the first question waits for the catalogue rather than answer of tools that it does not know yet. */
import { expect, it } from "vitest";
import { connectClient, testGateway, toolsetIn } from "../support/gateway.js";
import { declared, RemoteRegistry, startRegistry } from "../support/registry.js";

const SERVERS = 30;
const tools = Array.from({ length: 39 }, (_, i) => ({ name: `thing_${i}_get`, description: `Gets thing ${i}. ${"It has a long story. ".repeat(12)}`, inputSchema: { type: "object" } }));

it("found in corpus-gateway: a category asked for at once was empty", { timeout: 60_000 }, async () => {
  const registry = await startRegistry({ store: "memory" });
  const remote = new RemoteRegistry(registry.grpc);
  for (let i = 0; i < SERVERS; i++) await remote.call("register", declared(`server-${i}`, tools));
  for (let i = 0; i < 5; i++) {
    const gateway = await testGateway(registry.grpc);
    const client = await connectClient("sdk v1", `${gateway.url}?mode=stable`);
    const { text } = await client.call("find_tools", { category: `server-${i}` });
    expect(toolsetIn(text)).toMatch(/^ts-/);
    expect([...text.matchAll(/^- /gm)]).toHaveLength(tools.length);
    await client.close();
    await gateway.stop();
  }
});

it("a gateway whose registry is away does not keep its first question waiting for it", { timeout: 60_000 }, async () => {
  const gateway = await testGateway("127.0.0.1:9");
  await expect.poll(() => gateway.log.some(({ message }) => message.startsWith("the registry is away")), { timeout: 20_000 }).toBe(true);
  const client = await connectClient("sdk v2, negotiating", gateway.url);
  const { isError, text } = await client.call("find_tools", { category: "any" });
  expect(isError).toBe(true);
  expect(text).toMatch(/registry/);
});
