/** What a gateway tells of itself: on its own ops listener, and among the registry's metrics. */
import { describe, expect, it } from "vitest";
import { toolcrib } from "../support/cli.js";
import { connectClient } from "../support/gateway.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

async function used(url: string): Promise<void> {
  const client = await connectClient("sdk v1", url);
  await client.call("find_tools", { intent: "greet somebody by name", limit: 1 });
  expect((await client.call("one__greet", { text: "hi" })).text).toBe("hi");
  expect((await fetch(url, { method: "PUT", body: "{}" })).status).toBe(405);
}

async function metricsOf(ops: string): Promise<string> {
  return (await fetch(`${ops}/metrics`)).text();
}

const COUNTED = [
  'toolcrib_gateway_calls_total{outcome="ok"} 1',
  "toolcrib_gateway_call_duration_seconds_count 1",
  'toolcrib_gateway_finds_total{by="search"} 1',
  'toolcrib_gateway_toolsets_total{what="session"} 1',
  "toolcrib_gateway_streams 1",
  'toolcrib_gateway_refused_total{reason="malformed"} 1',
];

describe("the metrics of a gateway", () => {
  it("are on its own ops listener, and with serve --gateway among the registry's", async () => {
    const registry = await startRegistry({ store: "memory", args: ["--gateway", "--gateway-address", "127.0.0.1:0"] });
    const remote = new RemoteRegistry(registry.grpc);
    const server = await startFixture("sdk-server.mjs", ["--sdk", "v2"]);
    await remote.call("register", { serverId: "one", endpoint: server.url, transport: "TRANSPORT_STREAMABLE_HTTP", standing: true, introspect: {} });
    await eventually(() => remote.toolIds(), (ids) => ids.length === 3);
    const inside = /MCP (\S+\/mcp)/.exec(registry.output())?.[1] ?? "";
    await used(inside);
    for (const line of COUNTED) await expect.poll(() => metricsOf(registry.ops)).toContain(line);

    const run = toolcrib(["gateway", "--registry", registry.grpc, "--gateway-address", "127.0.0.1:0", "--gateway-ops-address", "127.0.0.1:0"]);
    const [, url = "", ops = ""] = await eventually(() => /MCP (\S+\/mcp), registry \S+, ops (\S+)/.exec(run.stdout()) ?? [], (found) => found.length > 0);
    await eventually(async () => (await fetch(`${ops}/readyz`)).status, (status) => status === 200);
    await used(url);
    for (const line of COUNTED) await expect.poll(() => metricsOf(ops)).toContain(line);
    expect(await metricsOf(ops)).toContain("toolcrib_build_info{version=");
  });
});
