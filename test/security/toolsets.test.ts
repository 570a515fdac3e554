/** P9: a toolset is its principal's, and to all others as if it were not. The real process, both listeners. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { newToken } from "../support/identity.js";
import { IdentityTarget } from "./identity-support.js";

let target: IdentityTarget;
let handle: string;
beforeAll(async () => {
  target = await IdentityTarget.start();
  handle = (await target.call("createToolset", { namespace: "a", toolIds: ["alice-one/t"] }, target.tokens.alice)).toolset.handle;
});
afterAll(() => target.stop());

const ABSENT = { code: "NOT_FOUND", reason: "NOT_FOUND", says: /^no such toolset in this namespace: create one/ } as const;

describe("somebody else's toolset is not there", () => {
  const others = ["bob", "reader", "operator", "root", "tenantB"] as const;
  it.each(others)("for %s", async (who) => {
    const authorization = `Bearer ${target.tokens[who]}`;
    for (const method of ["getToolset", "updateToolset"]) {
      await target.refuses(method, { namespace: "a", handle }, authorization, ABSENT);
      await target.refuses(method, { namespace: "b", handle }, authorization, ABSENT);
      await target.refuses(method, { namespace: "nowhere", handle }, authorization, ABSENT);
    }
    expect(await target.call("deleteToolset", { namespace: "a", handle }, target.tokens[who])).toEqual({ deleted: false });
  });

  it("for its own principal under another namespace, and for a guess", async () => {
    const authorization = `Bearer ${target.tokens.alice}`;
    await target.refuses("getToolset", { namespace: "b", handle }, authorization, ABSENT);
    for (const guess of [handle.slice(0, -1), `${handle}0`, handle.toUpperCase(), `ts-00000000-${"0".repeat(32)}`, "../a", "*"])
      await target.refuses("getToolset", { namespace: "a", handle: guess }, authorization, ABSENT);
  });

  it("for nobody at all without a good credential", async () => {
    const unknown = { code: "UNAUTHENTICATED", reason: "UNAUTHENTICATED", says: /credential|token/ } as const;
    for (const method of ["createToolset", "getToolset", "updateToolset", "deleteToolset"])
      for (const authorization of [undefined, `Bearer ${newToken()}`]) await target.refuses(method, { namespace: "a", handle }, authorization, unknown);
  });
});

it("a reader may have toolsets, where it may read and nowhere else", async () => {
  const { toolset } = await target.call("createToolset", { namespace: "a" }, target.tokens.reader);
  expect(toolset.handle).not.toBe(handle);
  const forbidden = { code: "PERMISSION_DENIED", reason: "FORBIDDEN", says: /^reader may not create toolsets in namespace (b|nowhere): it takes a grant there$/ } as const;
  for (const namespace of ["b", "nowhere"]) await target.refuses("createToolset", { namespace }, `Bearer ${target.tokens.reader}`, forbidden);
});

it("handles are in no log and in no two toolsets alike", async () => {
  const made = await Promise.all(Array.from({ length: 200 }, () => target.call("createToolset", { namespace: "a" }, target.tokens.bob)));
  const handles = made.map((m) => m.toolset.handle as string);
  expect(new Set(handles.map((h) => h.slice(-32))).size).toBe(200);
  // Every one of the 32 hex digits varies: 128 bits and none of them fixed.
  for (let at = 0; at < 32; at++) expect(new Set(handles.map((h) => h.slice(-32)[at])).size).toBeGreaterThan(5);
  for (const one of [...handles, handle]) expect(target.registry.output()).not.toContain(one.slice(-32));
});

it("it is still alice's, and as she made it", async () => {
  const { toolset } = await target.call("getToolset", { namespace: "a", handle, touch: true }, target.tokens.alice);
  expect(toolset).toMatchObject({ handle, toolIds: ["alice-one/t"], etag: "1" });
});
