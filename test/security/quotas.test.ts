/** Quotas on a real registry: code, reason, facts, unchanged revision, one log line; and nobody else is touched (P9). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { declared } from "../support/registry.js";
import { ELSEWHERE, type Expected, Target, tool } from "./support.js";

let target: Target;
beforeAll(async () => {
  target = await Target.start(["--max-servers", "2", "--max-tools", "5", "--max-watchers", "1"]);
  await target.remote.call("register", declared("second", [tool("a")], { leaseTtl: { seconds: 3_600 } }));
});
afterAll(() => target.stop());

const FULL = { code: "RESOURCE_EXHAUSTED", reason: "QUOTA_EXCEEDED" } as const;
const leaseTtl = { seconds: 3_600 };

describe("a namespace that is full", () => {
  type Row = readonly [what: string, request: object, expected: Expected];
  const rows: readonly Row[] = [
    ["takes no further server", declared("third", [tool("a")], { leaseTtl }), { ...FULL, says: [/may hold 2 servers.*would make it 3.*--max-servers/], metadata: { quota: "servers", limit: "2", actual: "3", namespace: "default" } }],
    ["takes no further tools", declared("second", ["a", "b", "c", "d"].map((n) => tool(n)), { leaseTtl }), { ...FULL, says: [/may hold 5 tools.*would make it 6.*--max-tools/], metadata: { quota: "tools", limit: "5", actual: "6", namespace: "default" } }],
    ["says so when it is only asked", declared("third", [tool("a")], { leaseTtl, validateOnly: true }), { ...FULL, metadata: { quota: "servers", limit: "2", actual: "3", namespace: "default" } }],
  ];
  it.each(rows)("%s", async (_what, request, expected) => {
    const error = await target.refuses("register", request, expected);
    expect(error.retryMs).toBe(30_000);
  });

  it("leaves others as they are, and what is in it may be registered again", async () => {
    await target.remote.call("register", declared("there", [tool("a")], { leaseTtl, namespace: ELSEWHERE }));
    await target.remote.call("register", declared("second", [tool("b")], { leaseTtl }));
  });
});

it("a replica that has its watchers says so, and when to come back", async () => {
  const first = target.remote.watch();
  await first.ready();
  const watch = target.remote.watch();
  await expect.poll(() => watch.error?.code).toBe(8);
  await expect.poll(() => target.registry.logs().filter((l) => l["reason"] === "QUOTA_EXCEEDED" && String(l["method"]).endsWith("/Watch"))).toHaveLength(1);
  first.cancel();
  await expect.poll(async () => {
    const next = target.remote.watch();
    await expect.poll(() => next.snapshotEnded || next.error !== undefined).toBe(true);
    return next.error;
  }).toBeUndefined();
});
