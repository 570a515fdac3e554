/** Who may lay other words over labels: operators of that namespace and that server, and nobody else; both listeners. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IdentityTarget } from "./identity-support.js";

let target: IdentityTarget;
beforeAll(async () => {
  target = await IdentityTarget.start();
});
afterAll(() => target.stop());

const METHODS = ["approveOverlays", "withdrawOverlays", "listOverlays"] as const;
const requestFor = (method: (typeof METHODS)[number], namespace: string, serverId: string) =>
  method === "listOverlays" ? { namespace, serverIds: [serverId] } : { namespace, serverId };

describe.each(METHODS)("%s", (method) => {
  const rows = [
    ["a reader", "reader", "a", "bob-one"],
    ["a registrant, though the server is its own", "alice", "a", "alice-one"],
    ["an operator of another namespace", "operator", "b", "secret"],
  ] as const;
  it.each(rows)("is refused to %s", async (_what, who, namespace, serverId) => {
    const says = new RegExp(`^${who} may not .* in namespace ${namespace}: .*operator`);
    await target.refuses(method, requestFor(method, namespace, serverId), `Bearer ${target.tokens[who]}`, { code: "PERMISSION_DENIED", reason: "FORBIDDEN", says });
  });

  it("is refused to somebody unknown", async () => {
    const expected = { code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED", says: /no credential/ } as const;
    await target.refuses(method, requestFor(method, "a", "alice-one"), undefined, expected);
  });
});

it("an operator's overlay is read by everybody, names who approved it, and is out of its registrant's reach", async () => {
  const { tokens } = target;
  const namespace = "a";
  const read = async () => (await target.call("getStubs", { namespace, filter: { serverIds: ["alice-one"] } }, tokens.reader)).stubs[0];
  const before = await read();
  const overlay = {
    toolName: before.name,
    texts: { briefDescription: "Said better" },
    digest: before.digest,
    madeFor: { briefDescription: before.briefDescription, keywords: before.keywords, useWhen: before.useWhen },
  };
  const { overlays } = await target.call("approveOverlays", { namespace, serverId: "alice-one", overlays: [overlay] }, tokens.operator);
  expect(overlays).toMatchObject([{ toolId: before.toolId, approvedBy: "operator", state: "STATE_SHOWN" }]);
  expect(await read()).toEqual({ ...before, briefDescription: "Said better" });
  await target.seed("alice", namespace, "alice-one");
  expect(await read()).toMatchObject({ briefDescription: "Said better", digest: before.digest });
  // What is whose: the other tenant's server of the same name is another one.
  expect((await target.call("listOverlays", { namespace: "b", serverIds: ["alice-one"] }, tokens.root)).overlays).toEqual([]);
  expect((await target.call("lintTools", { namespace: "b" }, tokens.reader)).toolCount, "lint shows a stranger an empty namespace").toBe(0);
  expect((await target.call("lintTools", { namespace }, tokens.reader)).toolCount).toBeGreaterThan(0);
  await target.call("withdrawOverlays", { namespace, serverId: "alice-one" }, tokens.operator);
  expect(await read()).toEqual(before);
});
