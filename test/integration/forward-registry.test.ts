/** Forwarding with a real registry, and with servers that nobody here wrote. */
import { describe, expect, it, onTestFinished } from "vitest";
import { RegistryConnection } from "../../src/client/connection.js";
import { parseTarget } from "../../src/client/target.js";
import { startEverything } from "../support/everything.js";
import { echoed, refusalOf, resultOf, startForwarder } from "../support/forward.js";
import { RemoteRegistry, startRegistry } from "../support/registry.js";
import { startFixture } from "../support/servers.js";
import { eventually } from "../support/upstream.js";

async function withRegistry() {
  const registry = await startRegistry({ store: "memory" });
  const connection = new RegistryConnection(parseTarget(registry.grpc));
  onTestFinished(() => connection.close());
  const remote = new RemoteRegistry(registry.grpc);
  const register = (serverId: string, endpoint: string, more: object = {}) =>
    remote.call("register", { serverId, endpoint, standing: true, introspect: {}, ...more });
  const definition = async (namespace: string, toolId: string) => {
    const { schema } = await connection.getFullSchema({ namespace, key: { case: "toolId", value: toolId } });
    return schema && { digest: schema.digest, bytes: schema.definition, freshness: "current" as const };
  };
  return { registry, remote, register, connection, ...startForwarder({ registry: connection, definition }) };
}

const call = (toolId: string, args: object = {}) => ({ namespace: "default", toolId, args });

describe.each(["streamableHttp", "sse"] as const)("server-everything over %s", (transport) => {
  it("is called like by its own client", { timeout: 60_000 }, async () => {
    const server = await startEverything(transport);
    const { forwarder, register } = await withRegistry();
    await register("every", server.url);
    expect(resultOf(await forwarder.call(call("every/echo", { message: "hello" })))["content"]).toEqual([{ type: "text", text: "Echo: hello" }]);
    expect(resultOf(await forwarder.call(call("every/get-sum", { a: 2, b: 40 })))["content"][0].text).toContain("42");
    const image = resultOf(await forwarder.call(call("every/get-tiny-image")))["content"].find(({ type }: { type: string }) => type === "image");
    expect(image).toMatchObject({ mimeType: "image/png", data: expect.stringMatching(/^[A-Za-z0-9+/]+=*$/) });
    const weather = resultOf(await forwarder.call(call("every/get-structured-content", { location: "New York" })));
    expect(weather["structuredContent"]).toMatchObject({ temperature: expect.any(Number) });
    const linked = resultOf(await forwarder.call(call("every/get-resource-links", { count: 2 })));
    expect(linked["content"].filter(({ type }: { type: string }) => type === "resource_link")).toHaveLength(2);
    const steps: unknown[] = [];
    const long = call("every/trigger-long-running-operation", { duration: 1, steps: 3 });
    resultOf(await forwarder.call({ ...long, meta: { progressToken: "p" }, onProgress: (params) => void steps.push(params) }));
    expect(steps).toMatchObject([1, 2, 3].map((progress) => ({ progressToken: "p", progress, total: 3 })));
    const wrong = refusalOf(await forwarder.call(call("every/get-sum", { a: "2", b: 40 })));
    expect(wrong.text).toContain("/a must be number");
    expect(wrong.text).toContain("give 2 without quotes");
    await server.kill();
    expect(refusalOf(await forwarder.call(call("every/echo", { message: "?" })))).toMatchObject({ ran: "not-run" });
  });
});

describe("what the registry knows decides", () => {
  it("isolation, deregistration, and a registry that is gone", { timeout: 60_000 }, async () => {
    const server = await startFixture("calling-server.mjs");
    const { registry, remote, register, connection, forwarder } = await withRegistry();
    await register("srv", server.url);
    await register("gone", server.url);
    expect(echoed(await forwarder.call(call("srv/echo", { text: "1" }))).args).toEqual({ text: "1" });
    await connection.isolateServer({ serverId: "srv", why: "under repair" });
    const isolated = await eventually(
      () => forwarder.call(call("srv/echo", { text: "2" })),
      (answer) => answer.kind === "refused",
    );
    expect(refusalOf(isolated)).toMatchObject({ reason: "isolated", text: expect.stringContaining("under repair") });
    await connection.resumeServer({ serverId: "srv" });
    await eventually(() => forwarder.call(call("srv/echo", { text: "3" })), ({ kind }) => kind === "result");
    await remote.call("deregister", { serverId: "gone" });
    await eventually(
      () => forwarder.call(call("gone/echo", { text: "4" })),
      (answer) => answer.kind === "refused" && answer.reason === "unknown-server",
    );
    await registry.kill();
    const stale = await eventually(() => forwarder.call(call("srv/echo", { text: "5" })), (answer) => answer.stale);
    expect(stale.kind).toBe("result");
    expect(refusalOf(await forwarder.call(call("never/x")))).toMatchObject({ reason: "registry-away", ran: "not-run" });
  });
});
