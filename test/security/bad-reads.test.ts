/** Reads, renewals and removals that ask for too much, for nothing, or for somebody else's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ELSEWHERE, type Expected, inline, INVALID, Target, tool } from "./support.js";

let target: Target;
beforeAll(async () => void (target = await Target.start()));
afterAll(() => target.stop());

const many = (count: number, make: (i: number) => string): string[] => Array.from({ length: count }, (_, i) => make(i));
const NOT_FOUND: Expected = { code: "NOT_FOUND", reason: "NOT_FOUND" };

describe("lists", () => {
  it.each([
    ["getStubs", -1, "1000"],
    ["getStubs", 1_001, "1000"],
    ["getStubs", -2_147_483_648, "1000"],
    ["listServers", -1, "500"],
    ["listServers", 501, "500"],
  ])("%s with page_size %i", async (method, pageSize, limit) => {
    await target.refuses(method, { pageSize }, { ...INVALID, fields: ["page_size"], says: [limit, String(pageSize)] });
  });

  const filters: readonly (readonly [what: string, filter: object, expected: Expected])[] = [
    ["a category", { category: "files" }, { code: "UNIMPLEMENTED", reason: "CATEGORY_UNSUPPORTED", says: ["category"] }],
    ["33 tags", { tagsAny: many(33, (i) => `t${i}`) }, { ...INVALID, fields: ["filter.tags_any"], says: ["32", "33"] }],
    ["33 tags, all of them", { tagsAll: many(33, (i) => `t${i}`) }, { ...INVALID, fields: ["filter.tags_all"], says: ["32", "33"] }],
    ["101 servers", { serverIds: many(101, (i) => `s${i}`) }, { ...INVALID, fields: ["filter.server_ids"], says: ["100", "101"] }],
    ["a prefix of 129 characters", { namePrefix: "p".repeat(129) }, { ...INVALID, fields: ["filter.name_prefix"], says: ["128", "129"] }],
    ["an availability that is none", { availability: 9 }, { ...INVALID, fields: ["filter.availability"], says: ["9"] }],
    ["a tag of 64 characters", { tagsAny: ["t".repeat(64)] }, { ...INVALID, fields: ["filter.tags_any[0]"], says: ["64", "63"] }],
    ["a tag with a bidi control", { tagsAll: ["fine", "t\u202e"] }, { ...INVALID, fields: ["filter.tags_all[1]"], says: ["U+202E (bidi control) at character 2"] }],
    [
      "all of that at once",
      { tagsAny: ["UP"], tagsAll: [""], serverIds: ["a/b"], namePrefix: "p".repeat(200) },
      { ...INVALID, fields: ["filter.tags_any[0]", "filter.tags_all[0]", "filter.server_ids[0]", "filter.name_prefix"], says: ["200"] },
    ],
  ];
  it.each(filters)("a filter with %s", async (_what, filter, expected) => {
    await target.refuses("getStubs", { filter }, expected);
    await target.refusal(async () => {
      const watch = target.remote.watch({ filter });
      await new Promise((resolve) => watch.stream.once("error", resolve));
      throw watch.error;
    }, expected);
  });

  it("a view that is none", async () => {
    await target.refuses("getStubs", { view: 9 }, { ...INVALID, fields: ["view"], says: ["9"] });
  });
});

describe("definitions", () => {
  it("a view that this replica does not know", async () => {
    const expected: Expected = { code: "UNIMPLEMENTED", reason: "VIEW_UNSUPPORTED", says: ["9", "FULL"] };
    await target.refuses("getFullSchema", { toolId: "seed/one", view: 9 }, expected);
    await target.refuses("batchGetFullSchemas", { toolIds: ["seed/one"], view: 9 }, expected);
  });

  it("none, 101, and ids that can name nothing", async () => {
    await target.refuses("getFullSchema", {}, { ...INVALID, fields: ["key"] });
    await target.refuses("batchGetFullSchemas", {}, { ...INVALID, fields: ["tool_ids"] });
    await target.refuses("batchGetFullSchemas", { toolIds: many(101, () => "seed/one") }, { ...INVALID, fields: ["tool_ids"], says: ["100", "101"] });
    const toolIds = ["seed/one", "noslash", "seed/a b", "/one", "seed/", `seed/${"n".repeat(129)}`];
    const fields = [1, 2, 3, 4, 5].map((i) => `tool_ids[${i}]`);
    await target.refuses("batchGetFullSchemas", { toolIds }, { ...INVALID, fields, says: ["noslash", "U+0020 (space)", "129"] });
  });

  it.each(["noslash", "", "/", "seed/", "seed/../one", "../seed/one", "seed/one\0", "seed/on\u202ee", "SEED/one"])("tool_id %j", async (toolId) => {
    const error = await target.refuses("getFullSchema", { toolId }, { ...INVALID, says: ["tool_id"] });
    expect(JSON.stringify(error.violations)).not.toMatch(/[\0\u202e]/);
  });

  it.each(["", "sha256:", `sha256:${"A".repeat(64)}`, `md5:${"0".repeat(32)}`, `sha256:${"0".repeat(65)}`, "x".repeat(5_000)])("digest %j", async (digest) => {
    const error = await target.refuses("getFullSchema", { digest }, { ...INVALID, fields: ["digest"], says: ["64"] });
    expect(error.message.length).toBeLessThan(300);
  });

  it("of another tenant answers as if it were nowhere", async () => {
    const { schema } = await target.remote.call("getFullSchema", { namespace: ELSEWHERE, toolId: "hidden/secret_tool" });
    const there = { tool: { toolId: "hidden/secret_tool" }, digest: { digest: schema.digest }, server: { serverId: "hidden" } };
    const nowhere = { tool: { toolId: "hidden/absent_tool" }, digest: { digest: `sha256:${"0".repeat(64)}` }, server: { serverId: "absent" } };
    const same = (text: string): string => text.replace(/hidden\/\w+|sha256:\w+|hidden|absent/g, "X");
    for (const [method, key] of [["getFullSchema", "tool"], ["getFullSchema", "digest"], ["getServer", "server"]] as const) {
      const one = await target.refuses(method, there[key], NOT_FOUND);
      const two = await target.refuses(method, nowhere[key], NOT_FOUND);
      expect(same(one.message)).toBe(same(two.message));
      expect(Object.keys(one.metadata)).toEqual(Object.keys(two.metadata));
    }
    const { results } = await target.remote.call("batchGetFullSchemas", { toolIds: ["hidden/secret_tool", "hidden/absent_tool", "seed/one"] });
    expect(results).toMatchObject([{ error: { code: 5, reason: "NOT_FOUND" } }, { error: { code: 5, reason: "NOT_FOUND" } }, { schema: {} }]);
    expect(same(results[0].error.message)).toBe(same(results[1].error.message));
  });

  it("a namespace that nobody registered in is empty, and not made by looking", async () => {
    const namespace = "nobody-here";
    expect(await target.remote.call("getStubs", { namespace })).toMatchObject({ stubs: [], nextPageToken: "" });
    expect(await target.remote.call("listServers", { namespace })).toMatchObject({ servers: [] });
    await target.refuses("getFullSchema", { namespace, toolId: "seed/one" }, { ...NOT_FOUND, says: ["seed/one"] });
  });
});

describe("renewals", () => {
  it("1,001 leases", async () => {
    const leases = many(1_001, (i) => `l0-${i}`).map((leaseId) => ({ leaseId }));
    await target.refuses("renew", { leases }, { ...INVALID, fields: ["leases"], says: ["1000", "1001"] });
  });

  it("leases that nobody gave are unknown, one by one, and no error", async () => {
    const before = await target.state();
    const ids = ["", "noise", "\0", "../..", "l0-0", `l0-${"0".repeat(32)}`, `l7-${"0".repeat(32)}`, "l".repeat(10_000), "__proto__", "l0-\u202e"];
    const { result, lines } = await target.logged(() => target.remote.call("renew", { leases: ids.map((leaseId) => ({ leaseId })) }));
    expect(result.results.map((r: { leaseId: string }) => r.leaseId)).toEqual(ids);
    expect(result.results.every((r: { state: string }) => r.state === "STATE_UNKNOWN_LEASE")).toBe(true);
    expect(lines).toEqual([]);
    expect(await target.state()).toEqual(before);
  });

  it("another tenant's lease is unknown, lives on unrenewed, and is ended by nobody here", async () => {
    const { lease } = await target.remote.call("register", inline("kept", [JSON.stringify(tool("t"))], { namespace: ELSEWHERE }));
    const before = await target.state();
    const { results } = await target.remote.call("renew", { leases: [{ leaseId: lease.leaseId }] });
    expect(results[0].state).toBe("STATE_UNKNOWN_LEASE");
    expect(results[0].renewAfter.seconds).toBeLessThan(30);
    expect(await target.remote.call("deregister", { leaseId: lease.leaseId })).toEqual({ revision: "", removed: false });
    expect(await target.state()).toEqual(before);
    await target.remote.call("deregister", { namespace: ELSEWHERE, leaseId: lease.leaseId });
  });
});

describe("removals", () => {
  it.each([
    ["nothing", {}, ["target"]],
    ["a lease that is noise", { leaseId: "noise" }, ["lease_id"]],
    ["an empty lease", { leaseId: "" }, ["lease_id"]],
    ["a server that is noise", { serverId: "a b" }, ["server_id"]],
    ["an empty server", { serverId: "" }, ["server_id"]],
    ["a tool without a server", { toolId: "noslash" }, ["tool_id"]],
    ["a tool that is noise", { toolId: "seed/a b" }, ["tool_id"]],
    ["all tools of a server, by a wildcard", { toolId: "seed/*" }, ["tool_id"]],
    ["nothing, nowhere", { namespace: "NO" }, ["namespace", "target"]],
  ])("%s", async (_what, request, fields) => {
    await target.refuses("deregister", request, { ...INVALID, fields });
  });

  it.each([{ leaseId: `l0-${"0".repeat(32)}` }, { serverId: "absent" }, { toolId: "seed/absent" }, { toolId: "absent/one" }, { serverId: "hidden" }, { toolId: "hidden/secret_tool" }])(
    "what is not there is already removed: %j",
    async (request) => {
      const before = await target.state();
      const { result, lines } = await target.logged(() => target.remote.call("deregister", request));
      expect(result).toEqual({ revision: "", removed: false });
      expect(lines).toEqual([]);
      expect(await target.state()).toEqual(before);
    },
  );
});
