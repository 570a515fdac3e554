/** A server of 2026-07-28 that asks for input in the middle of a call, through the gateway: its question and the answer pass as they are. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { expect, it, onTestFinished } from "vitest";
import { connectClient, testGateway, toolsetIn } from "../support/gateway.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { type Fixture, startFixture } from "../support/servers.js";

async function world(): Promise<{ url: string; server: Fixture }> {
  const registry = await startRegistry({ store: "memory" });
  const server = await startFixture("faulty-calls.mjs", ["--fault", "input-required", "--era", "modern"]);
  await new RemoteRegistry(registry.grpc).call("register", { serverId: "asks", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} }, 15_000);
  return { url: (await testGateway(registry.grpc, { always: ["asks/work"] })).url, server };
}

it("a client that can be asked answers, and the call goes on from where it was", async () => {
  const { url, server } = await world();
  const client = new Client({ name: "able", version: "1" }, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } });
  onTestFinished(() => client.close());
  const asked: unknown[] = [];
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { name: "Ann" } };
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
  const found = await client.callTool({ name: "find_tools", arguments: { intent: "work" } });
  const toolset = toolsetIn((found.content as { text: string }[])[0]?.text ?? "");
  const result = (await client.callTool({ name: "call_tool", arguments: { toolset, tool: "asks/work", arguments: {} } })) as Record<string, unknown>;
  expect(asked).toEqual(["Who?"]);
  expect(result["got"]).toMatchObject({ requestState: "s1", inputResponses: { who: { action: "accept", content: { name: "Ann" } } } });
  const calls = (await server.requests()).filter(({ method }) => method === "tools/call");
  expect(calls.map(({ params }) => params?.["requestState"])).toEqual([undefined, "s1"]);
  expect(calls[0]?.params?.["_meta"]).toMatchObject({ "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } });
});

it("a client of an older era cannot be asked, and is told so", async () => {
  const { url } = await world();
  const client = await connectClient("sdk v1", url);
  const { isError, text } = await client.call("asks__work");
  expect(isError).toBe(true);
  expect(text).toMatch(/asks\/work asks for input that its caller did not offer to give/);
});

it("a client that offers no input is told so, too", async () => {
  const { url } = await world();
  const client = await connectClient("sdk v2, negotiating", url);
  const toolset = toolsetIn((await client.call("find_tools", { intent: "work" })).text);
  const answer = await client.call("call_tool", { toolset, tool: "asks/work", arguments: {} }).catch((error: unknown) => ({ isError: true, text: String(error) }));
  expect(answer.isError).toBe(true);
  expect(answer.text).toMatch(/input|elicitation/i);
});
