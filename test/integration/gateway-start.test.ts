/** A gateway whose registry is not there when it starts; what it waits for while it comes is in test/unit/gateway/catalogue-arrives.test.ts. */
import { expect, it } from "vitest";
import { connectClient, testGateway } from "../support/gateway.js";

it("a gateway whose registry is away does not keep its first question waiting for it", { timeout: 60_000 }, async () => {
  const gateway = await testGateway("127.0.0.1:9");
  await expect.poll(() => gateway.log.some(({ message }) => message.startsWith("the registry is away")), { timeout: 20_000 }).toBe(true);
  const client = await connectClient("sdk v2, negotiating", gateway.url);
  const { isError, text } = await client.call("find_tools", { category: "any" });
  expect(isError).toBe(true);
  expect(text).toMatch(/registry/);
});
