/** Who may take servers out and put them back: operators of that namespace and that server, and nobody else; both listeners. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IdentityTarget, type Refused } from "./identity-support.js";

let target: IdentityTarget;
beforeAll(async () => {
  target = await IdentityTarget.start();
});
afterAll(() => target.stop());

const FORBIDDEN = { code: "PERMISSION_DENIED", reason: "FORBIDDEN" } as const;
const METHODS = ["isolateServer", "resumeServer", "refreshServer"] as const;
const WHY = { why: "drops rows" };
const requestFor = (method: string, namespace: string, serverId: string) =>
  method === "isolateServer" ? { namespace, serverId, ...WHY } : { namespace, serverId };

describe.each(METHODS)("%s", (method) => {
  type Row = readonly [what: string, who: keyof IdentityTarget["tokens"], namespace: string, serverId: string, says: RegExp];
  const rows: readonly Row[] = [
    ["a reader", "reader", "a", "bob-one", /^reader may not operate server bob-one in namespace a: .*operator/],
    ["a registrant, though the server is its own", "alice", "a", "alice-one", /^alice may not operate server alice-one/],
    ["a registrant, of another's server", "bob", "a", "alice-one", /^bob may not operate server alice-one/],
    ["an operator of another namespace", "operator", "b", "secret", /^operator may not operate server secret in namespace b/],
  ];
  it.each(rows)("is refused to %s", async (_what, who, namespace, serverId, says) => {
    const expected: Refused = { ...FORBIDDEN, says };
    await target.refuses(method, requestFor(method, namespace, serverId), `Bearer ${target.tokens[who]}`, expected);
  });

  it("tells a stranger the same of a server that is there, one that is not, and a namespace that is not (P9)", async () => {
    const told = [];
    for (const [namespace, serverId] of [["b", "secret"], ["b", "absent"], ["nowhere", "secret"]] as const) {
      const error = await target
        .call(method, requestFor(method, namespace, serverId), target.tokens.operator)
        .catch((e: { details: string }) => e.details.replaceAll(serverId, "S").replaceAll(`namespace ${namespace}`, "namespace N"));
      told.push(error);
    }
    expect(new Set(told).size, told.join("\n")).toBe(1);
  });

  it("names what is absent or wrong to an operator, and changes nothing", async () => {
    const authorization = `Bearer ${target.tokens.operator}`;
    await target.refuses(method, requestFor(method, "a", "absent"), authorization, { code: "NOT_FOUND", reason: "NOT_FOUND", says: /no such server in this namespace: absent/ });
    await target.refuses(method, requestFor(method, "a", "Not Valid"), authorization, { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST", says: /server_id/ });
    await target.refuses(method, requestFor(method, "a", "absent"), undefined, { code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED", says: /no credential/ });
  });
});

it("an operator isolates another's server, everybody reads by whom and why, and its owner cannot undo it", async () => {
  const { tokens } = target;
  const namespace = "a";
  const watch = target.watch({ namespace }, tokens.reader);
  await watch.ready();
  const { server } = await target.call("isolateServer", requestFor("isolateServer", namespace, "alice-one"), tokens.operator);
  const isolated = { availability: "AVAILABILITY_UNAVAILABLE", breaker: "BREAKER_STATE_ISOLATED" };
  const detail = { isolatedBy: "operator", isolatedWhy: WHY.why };
  expect(server).toMatchObject({ ...isolated, owner: "alice", breakerDetail: detail });
  await expect.poll(() => watch.told).toEqual(["AVAILABILITY_CHANGED alice-one"]);
  await target.seed("alice", namespace, "alice-one");
  const read = async () => (await target.call("getServer", { namespace, serverId: "alice-one" }, tokens.reader)).server;
  expect(await read()).toMatchObject({ ...isolated, breakerDetail: detail });
  await target.refuses("resumeServer", { namespace, serverId: "alice-one" }, `Bearer ${tokens.alice}`, { ...FORBIDDEN, says: /operator/ });
  await target.refuses("refreshServer", { namespace, serverId: "alice-one" }, `Bearer ${tokens.operator}`, { code: "UNAVAILABLE", reason: "SERVER_ISOLATED", says: /isolated by operator .*drops rows/ });

  // Over HTTP, as curl would; this one has no endpoint, so nothing has to answer first.
  const response = await target.post("resumeServer", { namespace, serverId: "alice-one" }, `Bearer ${tokens.root}`);
  expect(await response.json()).toMatchObject({ resumed: true, server: { availability: "AVAILABILITY_AVAILABLE" } });
  await expect.poll(() => watch.told).toEqual(["AVAILABILITY_CHANGED alice-one", "AVAILABILITY_CHANGED alice-one"]);
  const logged = () => target.registry.logs().filter((l) => /^a server was (isolated|resumed)$/.test(String(l["msg"])));
  await expect.poll(logged).toMatchObject([
    { namespace, server: "alice-one", by: "operator", why: WHY.why },
    { namespace, server: "alice-one", by: "root" },
  ]);
});
