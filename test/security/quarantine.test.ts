/** Who may withhold a tool and release it: operators of that namespace and that server, and nobody else; both listeners. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IdentityTarget } from "./identity-support.js";

let target: IdentityTarget;
beforeAll(async () => {
  target = await IdentityTarget.start();
});
afterAll(() => target.stop());

const METHODS = ["quarantineTool", "approveTool"] as const;
const requestFor = (method: (typeof METHODS)[number], namespace: string, toolId: string) =>
  method === "quarantineTool" ? { namespace, toolId, reason: "test" } : { namespace, toolId };

describe.each(METHODS)("%s", (method) => {
  const rows = [
    ["a reader", "reader", "a", "bob-one/tool"],
    ["a registrant, though the server is its own", "alice", "a", "alice-one/tool"],
    ["an operator of another namespace", "operator", "b", "secret/tool"],
    ["a reader, for a name that is none", "reader", "a", "no tool"],
  ] as const;
  it.each(rows)("is refused to %s", async (_what, who, namespace, toolId) => {
    const says = new RegExp(`^${who} may not .* in namespace ${namespace}: .*operator`);
    await target.refuses(method, requestFor(method, namespace, toolId), `Bearer ${target.tokens[who]}`, { code: "PERMISSION_DENIED", reason: "FORBIDDEN", says });
  });

  it("is refused to somebody unknown", async () => {
    const expected = { code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED", says: /no credential/ } as const;
    await target.refuses(method, requestFor(method, "a", "alice-one/tool"), undefined, expected);
  });
});

it("a quarantined tool is out of its registrant's reach, names who withheld it, and is another tenant's business not at all", async () => {
  const { tokens } = target;
  const namespace = "a";
  const stubs = async (token = tokens.reader) => (await target.call("getStubs", { namespace, filter: { serverIds: ["alice-one"] } }, token)).stubs;
  const [before] = await stubs();
  await target.call("quarantineTool", { namespace, toolId: before.toolId, reason: "looks hacked" }, tokens.operator);
  expect((await stubs()).map((s: { toolId: string }) => s.toolId)).not.toContain(before.toolId);
  // Registering again, and leaving and coming back, releases nothing.
  await target.seed("alice", namespace, "alice-one");
  await target.call("deregister", { namespace, serverId: "alice-one" }, tokens.alice);
  await target.seed("alice", namespace, "alice-one");
  expect((await stubs()).map((s: { toolId: string }) => s.toolId)).not.toContain(before.toolId);
  const { server } = await target.call("getServer", { namespace, serverId: "alice-one" }, tokens.reader);
  expect(server.quarantinedTools).toMatchObject([{ toolId: before.toolId, reason: "looks hacked", quarantinedBy: "operator" }]);
  const others = await target.call("getStubs", { namespace: "b", filter: { serverIds: ["alice-one"] } }, tokens.root);
  expect(others.stubs, "the other tenant's server of the same name is another one").toMatchObject([{ toolId: before.toolId }]);
  await target.call("approveTool", { namespace, toolId: before.toolId }, tokens.operator);
  expect((await stubs())[0]).toEqual(before);
});
