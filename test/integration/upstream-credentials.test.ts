/** From a desktop client's file to a server that wants a header: import writes the credential, the registry reads and shows it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { toolcribDone } from "../support/cli.js";
import { startGuarded } from "../support/guarded-server.js";
import { RemoteRegistry, startRegistry, temporaryFolder } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

it("import makes a credential of a header, and the server behind it is listed", { timeout: 60_000 }, async () => {
  const SECRET = "planted-93bd17c2";
  const folder = await temporaryFolder();
  const credentials = join(folder, "credentials.json");
  writeFileSync(credentials, JSON.stringify({ credentials: [] }));
  const registry = await startRegistry({ store: "memory", args: ["--upstream-credentials", credentials] });
  const server = await startGuarded(`Bearer ${SECRET}`);
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { guarded: { url: server.url, headers: { Authorization: `Bearer ${SECRET}` } } } }));

  const args = ["import", config, "--yes", "--registry", registry.grpc, "--credentials-file", credentials];
  const done = await toolcribDone(args);
  expect(done, done.stdout + done.stderr).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/^guarded +guarded +registered +1$/m);
  const remote = new RemoteRegistry(registry.grpc);
  expect(await remote.toolIds()).toEqual(["guarded/guarded_tool"]);
  expect((await remote.call("getServer", { serverId: "guarded" })).server.instances).toMatchObject([{ credential: "guarded" }]);
  expect(registry.output() + done.stdout + done.stderr).not.toContain(SECRET);
});

it("a server that comes to want a credential keeps its tools and says what it wants", { timeout: 60_000 }, async () => {
  const registry = await startRegistry({ store: "memory" });
  const server = await startGuarded("");
  const remote = new RemoteRegistry(registry.grpc);
  await remote.call("register", { serverId: "guarded", endpoint: server.url, standing: true, introspect: {} });
  expect(await remote.toolIds()).toEqual(["guarded/guarded_tool"]);
  await eventually(() => server.seen.some((s) => s.method === "subscriptions/listen"), (is) => is);
  server.wants = "Bearer from-now-on";
  const reasons = async (): Promise<string[]> => {
    server.notify();
    const { server: known } = await remote.call("getServer", { serverId: "guarded" });
    return known.conditions.map((c: { reason: string }) => c.reason);
  };
  await eventually(reasons, (found) => found.includes("AUTH_REQUIRED"));
  expect(await remote.toolIds()).toEqual(["guarded/guarded_tool"]);
});
