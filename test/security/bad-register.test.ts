import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { declared } from "../support/registry.js";
import { type Expected, INVALID, inline, REJECTED, Target, tool } from "./support.js";

let target: Target;
beforeAll(async () => void (target = await Target.start()));
afterAll(() => target.stop());

const one = [tool("fine")];

describe("a Register that is wrong as a whole", () => {
  const cases: readonly (readonly [what: string, request: object, expected: Partial<Expected>])[] = [
    ["an empty one", {}, { fields: ["server_id", "instance_id", "offer"], says: ["1 to 63", "8 to 64", "is empty", "introspect"] }],
    [
      "one where everything is wrong, each part named",
      {
        namespace: "No Good",
        serverId: "-x",
        instanceId: "short",
        endpoint: "file:///etc/passwd",
        title: "t".repeat(201),
        tags: ["UP"],
        leaseTtl: { seconds: 5 },
        etag: "e".repeat(513),
        requestId: "r".repeat(65),
        transport: 7,
        declared: { tools: [] },
      },
      {
        fields: [
          ...["namespace", "server_id", "instance_id", "endpoint", "title", "tags[0]", "lease_ttl"],
          ...["etag", "request_id", "transport", "declared.tools"],
        ],
        says: ["201", "200", "513", "512", "65", "64", "5 s", "3600 s", '"file"'],
      },
    ],
    ["an empty set", declared("s", []), { fields: ["declared.tools"], says: ["allow_empty"] }],
    [
      "the same tool twice, by definition",
      declared("s", [tool("twin"), tool("other"), tool("twin", { title: "again" })]),
      { fields: ["declared.tools[2].definition"], says: ['"twin"', "declared.tools[0]"] },
    ],
    [
      "the same tool twice, by label and by definition",
      inline("s", [JSON.stringify(tool("twin"))], {
        endpoint: "http://127.0.0.1:3999/mcp",
        declared: { tools: [{ definition: Buffer.from(JSON.stringify(tool("twin"))) }, { stub: { name: "twin" } }] },
      }),
      { fields: ["declared.tools[1].stub.name"], says: ['"twin"', "declared.tools[0]"] },
    ],
    [
      "10,001 tools",
      { serverId: "s", instanceId: "instance-1", endpoint: "http://127.0.0.1:3999", declared: { tools: Array(10_001).fill({ stub: { name: "t" } }) } },
      { fields: ["declared.tools"], says: ["10000", "10001"] },
    ],
    ["33 tags", declared("s", one, { tags: Array.from({ length: 33 }, (_, i) => `t${i}`) }), { fields: ["tags"], says: ["33", "32"] }],
    ["a tag of 64 characters", declared("s", one, { tags: ["t".repeat(64)] }), { fields: ["tags[0]"], says: ["64", "63"] }],
    ["standing without an endpoint", declared("s", one, { standing: true }), { fields: ["endpoint"], says: ["standing"] }],
    ["introspect without an endpoint", { serverId: "s", instanceId: "instance-1", introspect: {} }, { fields: ["endpoint"], says: ["introspect"] }],
    [
      "a label without definition and no endpoint to fetch it from",
      { serverId: "s", instanceId: "instance-1", declared: { tools: [{ stub: { name: "t" } }] } },
      { fields: ["endpoint"], says: ["declared.tools[0]"] },
    ],
  ];
  it.each(cases)("%s is refused", async (_what, request, expected) => {
    await target.refuses("register", request, { ...INVALID, ...expected });
  });

  it.each([
    ["0 s", { seconds: 0 }, "0 s"],
    ["5 s", { seconds: 5 }, "5 s"],
    ["−30 s", { seconds: -30 }, "-30 s"],
    ["an hour and a nanosecond", { seconds: 3_600, nanos: 1 }, "3600"],
    ["ten years", { seconds: 315_360_000 }, "315360000 s"],
    ["the longest a Duration can be", { seconds: 315_576_000_000 }, "315576000000 s"],
  ])("a lease of %s is refused", async (_what, leaseTtl, actual) => {
    const expected = { ...INVALID, fields: ["lease_ttl"], says: [actual, "10 s to 3600 s"] };
    await target.refuses("register", declared("s", one, { leaseTtl }), expected);
  });

  it.each(["none", "r0", "0", "r999999"])("an etag that is not the current one (%s) is refused", async (etag) => {
    const expected: Expected = { code: "ABORTED", reason: "ETAG_MISMATCH", fields: [], says: ["seed", etag] };
    const error = await target.refuses("register", declared("seed", one, { etag }), expected);
    const { server } = await target.remote.call("getServer", { serverId: "seed" });
    expect(error.metadata["etag"]).toBe(server.etag);
  });

  it("a lease of a fraction of a millisecond more than ten seconds is fine, and rounded up", async () => {
    const { lease } = await target.remote.call("register", declared("fraction", one, { leaseTtl: { seconds: 10, nanos: 500 } }));
    expect(lease.ttl).toEqual({ seconds: 10, nanos: 1_000_000 });
    await target.remote.call("deregister", { leaseId: lease.leaseId });
  });

  it("a set that is empty on purpose is accepted", async () => {
    const answer = await target.remote.call("register", declared("bare", [], { allowEmpty: true }));
    expect(answer.tools).toEqual([]);
    expect((await target.remote.call("getServer", { serverId: "bare" })).server.toolCount).toBe(0);
    await target.remote.call("deregister", { serverId: "bare" });
  });

  it("nothing of it is checked more gently when it only validates", async () => {
    await target.refuses("register", { validateOnly: true }, { ...INVALID, fields: ["server_id", "instance_id", "offer"] });
    await target.refuses("register", declared("s", [tool("a b")], { validateOnly: true }), { ...REJECTED });
  });
});

describe("names of servers, instances and namespaces", () => {
  const cases: readonly (readonly [what: string, name: string, says: string])[] = [
    ["64 characters", "a".repeat(64), "is 64 characters long"],
    ["a space", "a b", "U+0020 (space) at character 2"],
    ["a slash", "a/b", "U+002F (/) at character 2"],
    ["two dots", "..", "U+002E (.) at character 1"],
    ["a path upwards", "../../etc/passwd", "U+002E (.) at character 1"],
    ["NUL", "a\0b", "U+0000 (NUL) at character 2"],
    ["a newline", "ab\n", "U+000A (newline) at character 3"],
    ["a Cyrillic а", "p\u0430yments", "U+0430 (looks like a) at character 2"],
    ["a full-width letter", "\uff41bc", "U+FF41 (looks like a) at character 1"],
    ["a capital", "Seed", "U+0053 (S) at character 1"],
    ["__proto__", "__proto__", "U+005F (_) at character 1"],
    ["an emoji", "🔨", "U+1F528 at character 1"],
    ["a zero-width space", "se\u200bed", "U+200B (zero-width) at character 3"],
    ["a right-to-left override", "se\u202eed", "U+202E (bidi control) at character 3"],
  ];
  it.each(cases)("%s is no server_id and no namespace, for writers", async (_what, name, says) => {
    const namespace = await target.refuses("register", declared("s", one, { namespace: name }), { ...INVALID, fields: ["namespace"], says: [says] });
    const server = await target.refuses("register", declared(name, one), { ...INVALID, fields: ["server_id"], says: [says] });
    for (const text of [namespace, server]) expect(JSON.stringify(text.violations)).not.toMatch(/[\0\u200b\u202e]/);
  });

  it.each(cases)("%s is no server_id and no namespace, for readers and removers", async (_what, name) => {
    for (const [method, request, field] of [
      ["getServer", { serverId: name }, "server_id"],
      ["getStubs", { namespace: name }, "namespace"],
      ["getStubs", { filter: { serverIds: [name] } }, "filter.server_ids[0]"],
      ["listServers", { namespace: name }, "namespace"],
      ["getFullSchema", { namespace: name, toolId: "seed/one" }, "namespace"],
      ["renew", { namespace: name }, "namespace"],
      ["deregister", { namespace: name, serverId: "seed" }, "namespace"],
      ["deregister", { serverId: name }, "server_id"],
    ] as const) {
      const error = await target.refuses(method, request, { ...INVALID, fields: [field] });
      expect(JSON.stringify(error.violations), method).not.toMatch(/[\0\u200b\u202e]/);
    }
  });

  it.each([
    ["nothing", "", "8 to 64"],
    ["7 characters", "1234567", "is 7 characters long"],
    ["65 characters", "i".repeat(65), "is 65 characters long"],
    ["a slash", "instance/1", "U+002F (/)"],
    ["a newline", "instance\n1", "U+000A (newline)"],
  ])("%s is no instance_id", async (_what, instanceId, says) => {
    await target.refuses("register", declared("s", one, { instanceId }), { ...INVALID, fields: ["instance_id"], says: [says] });
  });
});

describe("endpoints", () => {
  const cases: readonly (readonly [endpoint: string, says: string])[] = [
    ["file:///etc/passwd", '"file"'],
    ["ftp://127.0.0.1/mcp", '"ftp"'],
    ["javascript:alert(1)", '"javascript"'],
    ["127.0.0.1:3001/mcp", "http://host:port/path"],
    ["localhost:3001", "http:// before"],
    ["http://127.0.0.1:3001/mcp#part", "fragment"],
    ["http://127.0.0.1:99999/mcp", "http or https URL"],
    ["http://127.0.0.1/a b", "U+0020 (space)"],
    ["http://127.0.0.1/\u202emoc", "U+202E (bidi control)"],
    ["http://127.0.0.1\\@example.com/", "backslash"],
    [`http://127.0.0.1/${"a".repeat(2_048)}`, "2065"],
  ];
  it.each(cases)("%s is refused", async (endpoint, says) => {
    for (const offer of [{ introspect: {} }, { declared: { tools: [{ definition: Buffer.from(JSON.stringify(tool("t"))) }] } }]) {
      const request = { serverId: "s", instanceId: "instance-1", endpoint, ...offer };
      await target.refuses("register", request, { ...INVALID, fields: ["endpoint"], says: [says] });
    }
  });

  it.each([
    "http://169.254.169.254/latest/meta-data",
    "http://2852039166/mcp",
    "http://0xa9.0xfe.0xa9.0xfe/mcp",
    "http://[::ffff:169.254.169.254]/mcp",
  ])("%s is never dialled", async (endpoint) => {
    const expected: Expected = { code: "PERMISSION_DENIED", reason: "EGRESS_DENIED", says: [new URL(endpoint).hostname.replace(/[[\]]/g, "")], metadata: { server_id: "s" } };
    await target.refuses("register", { serverId: "s", instanceId: "instance-1", endpoint, introspect: {} }, expected);
    const lazily = { serverId: "s", instanceId: "instance-1", endpoint, declared: { tools: [{ stub: { name: "t" } }] } };
    await target.refuses("register", lazily, expected);
  });
});
