/** One bad tool is rejected by name and hides no other; alone it refuses the Register. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REJECTED, Target, tool } from "./support.js";

let target: Target;
beforeAll(async () => void (target = await Target.start()));
afterAll(() => target.stop());

interface Offered {
  readonly stub?: object;
  readonly definition?: Buffer;
}

function register(tools: readonly Offered[], more: object = {}): object {
  return { serverId: "offers", instanceId: "instance-1", leaseTtl: { seconds: 3_600 }, declared: { tools }, ...more };
}

const good: Offered = { definition: Buffer.from(JSON.stringify(tool("good"))) };
const defined = (name: string): Buffer => Buffer.from(JSON.stringify(tool(name)));

/** Alone: refused. With `strict`: refused. Beside a good one: rejected alone, with one log line. */
async function isRejected(bad: Offered, says: readonly string[]): Promise<void> {
  await target.refuses("register", register([bad]), { ...REJECTED, fields: says.map(() => "declared.tools[0]"), says });
  const strictly = { ...REJECTED, fields: says.map(() => "declared.tools[1]"), says: [...says, "strict"] };
  await target.refuses("register", register([good, bad], { strict: true }), strictly);

  const { result, lines } = await target.logged(() => target.remote.call("register", register([good, bad])));
  expect(result.tools.map((t: { outcome: string }) => t.outcome)).toEqual(["OUTCOME_ACCEPTED", "OUTCOME_REJECTED"]);
  const reasons: string[] = result.tools[1].reasons;
  expect(reasons).toHaveLength(says.length);
  for (const said of says) expect(reasons.join("\n")).toContain(said);
  expect(JSON.stringify(result.tools[1])).not.toMatch(HIDDEN);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ level: "info", namespace: "default", server: "offers", rejected: 1 });
  expect(JSON.stringify(lines[0])).not.toMatch(HIDDEN);

  expect(await target.remote.toolIds({ filter: { serverIds: ["offers"] } })).toEqual(["offers/good"]);
  const { server } = await target.remote.call("getServer", { serverId: "offers" });
  expect(server).toMatchObject({ rejectedCount: 1, rejectedTools: [{ reasons }] });
  await target.remote.call("deregister", { serverId: "offers" });
}

const HIDDEN = /[\0\u200b\u200d\u202e\u2066\ufeff\u{e0041}]/u;

describe("tool names", () => {
  const cases: readonly (readonly [what: string, name: string, says: string])[] = [
    ["129 characters", "n".repeat(129), "is 129 characters long: a tool name has 1 to 128"],
    ["a space", "read file", "U+0020 (space) at character 5"],
    ["a slash", "fs/read", "U+002F (/) at character 3"],
    ["nothing but dots", "..", "nothing but dots"],
    ["a path upwards", "../seed/one", "U+002F (/) at character 3"],
    ["NUL", "one\0", "U+0000 (NUL) at character 4"],
    ["a newline", "one\n", "U+000A (newline) at character 4"],
    ["a Cyrillic а", "re\u0430d", "U+0430 (looks like a) at character 3"],
    ["a Greek ο", "f\u03bfo", "U+03BF (looks like o) at character 2"],
    ["a hyphen that is none", "read\u2010file", "U+2010 (looks like -) at character 5"],
    ["a zero-width space", "re\u200bad", "U+200B (zero-width) at character 3"],
    ["a right-to-left override", "re\u202ead", "U+202E (bidi control) at character 3"],
    ["a tag character", "read\u{e0041}", "U+E0041 (tag character) at character 5"],
    ["nothing", "", "is empty: a tool name has 1 to 128"],
  ];
  it.each(cases)("%s, in the definition", async (_what, name, says) => {
    await isRejected({ definition: defined(name) }, [says]);
  });

  it.each(cases)("%s, in the label", async (_what, name, says) => {
    const register = { serverId: "offers", instanceId: "instance-1", endpoint: "http://127.0.0.1:3999/mcp", declared: { tools: [{ stub: { name } }] } };
    await target.refuses("register", register, { ...REJECTED, fields: ["declared.tools[0]"], says: [says] });
  });

  it("one name in the label, another in the definition", async () => {
    await isRejected({ stub: { name: "one" }, definition: defined("two") }, ['stub.name is "one", but the definition is of "two"']);
  });
});

describe("texts of a label", () => {
  const marks: readonly (readonly [what: string, char: string, says: string])[] = [
    ["a zero-width space", "\u200b", "U+200B (zero-width)"],
    ["a byte-order mark", "\ufeff", "U+FEFF (zero-width)"],
    ["a joiner outside an emoji", "\u200d", "U+200D (zero-width)"],
    ["a right-to-left override", "\u202e", "U+202E (bidi control)"],
    ["an isolate", "\u2066", "U+2066 (bidi control)"],
    ["a tag character", "\u{e0041}", "U+E0041 (tag character)"],
    ["NUL", "\0", "U+0000 (control)"],
  ];
  it.each(marks)("%s in title, brief_description, use_when, keywords, requires: all five are named", async (_what, char, says) => {
    const text = `ab${char}c`;
    const stub = { title: text, briefDescription: text, useWhen: text, keywords: ["fine", text], requires: [{ scope: "fine" }, { state: text }] };
    const at = `${says} at character 3`;
    await isRejected(
      { stub, definition: defined("marked") },
      ["title", "brief_description", "use_when", "keywords[1]", "requires[1]"].map((part) => `stub.${part} holds the hidden character ${at}`),
    );
  });

  it.each(marks)("%s in schema_uri, tags, substitutes, requires.tool", async (_what, char) => {
    const text = `ab${char}c`;
    const stub = { schemaUri: `urn:${text}`, tags: [text], substitutes: [text], requires: [{ tool: text }] };
    const code = `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
    await isRejected({ stub, definition: defined("marked") }, [
      `stub.schema_uri holds ${code}`,
      ...["tags[0]", "substitutes[0]", "requires[0]"].map((part) => `stub.${part} "ab`),
    ]);
  });

  it.each(marks)("%s in the server's title", async (_what, char, says) => {
    const request = register([good], { title: `ab${char}c` });
    await target.refuses("register", request, { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST", fields: ["title"], says: [says, "character 3"] });
  });

  it.each([
    ["title", { title: "t".repeat(201) }, ["is 201 characters long, the limit is 200"]],
    ["brief_description", { briefDescription: "字".repeat(601) }, ["is 601 characters long, the limit is 600"]],
    ["use_when", { useWhen: "w".repeat(401) }, ["is 401 characters long, the limit is 400"]],
    ["keywords", { keywords: Array(33).fill("k") }, ["holds 33 entries, the limit is 32"]],
    ["a keyword", { keywords: ["k".repeat(65)] }, ["is 65 characters long, the limit is 64"]],
    ["tags", { tags: Array.from({ length: 33 }, (_, i) => `t${i}`) }, ["holds 33 entries, the limit is 32"]],
    ["requires", { requires: Array(17).fill({ scope: "s" }) }, ["holds 17 entries, the limit is 16"]],
    ["substitutes", { substitutes: Array(9).fill("t") }, ["holds 9 entries, the limit is 8"]],
    ["a substitute with two slashes", { substitutes: ["a/b/c"] }, ["U+002F (/)"]],
    ["a requirement of no known kind", { requires: [{}] }, ["requires[0] is empty"]],
    ["a digest", { digest: "sha256:ABC" }, ["a digest is sha256: and 64", "the definition sent along has sha256:"]],
    ["another definition's digest", { digest: `sha256:${"0".repeat(64)}` }, ["the definition sent along has sha256:"]],
    ["a schema_uri with a password", { schemaUri: "https://me:hunter2@example.com/s.json" }, ["a user name or password"]],
    ["a schema_uri of 2,049 characters", { schemaUri: `urn:${"x".repeat(2_045)}` }, ["is 2049 characters long, the limit is 2048"]],
  ])("%s over its limit or out of form", async (_what, stub, says) => {
    await isRejected({ stub, definition: defined("marked") }, says);
  });

  it("neither label nor definition", async () => {
    await target.refuses("register", register([{}], { endpoint: "http://127.0.0.1:3999/mcp" }), { ...REJECTED, says: ["neither stub nor definition"] });
  });
});

describe("names that JavaScript knows", () => {
  it.each(["constructor", "tostring", "valueof", "hasownproperty"])("%s is a server, a namespace and a tag like any other", async (name) => {
    const [label] = [{ title: name, tags: [name], keywords: [name] }];
    const request = { ...register([{ stub: label, definition: defined("constructor") }]), namespace: name, serverId: name };
    const { lease } = await target.remote.call("register", request);
    const filter = { serverIds: [name], tagsAll: [name], namePrefix: "constructor" };
    expect(await target.remote.toolIds({ namespace: name, filter })).toEqual([`${name}/constructor`]);
    expect(await target.remote.toolIds({ filter })).toEqual([]);
    const { schema } = await target.remote.call("getFullSchema", { namespace: name, toolId: `${name}/constructor` });
    expect(schema.definition.equals(defined("constructor"))).toBe(true);
    expect((await target.remote.call("renew", { namespace: name, leases: [{ leaseId: lease.leaseId }] })).results[0].state).toBe("STATE_OK");
    expect((await target.remote.call("deregister", { namespace: name, serverId: name })).removed).toBe(true);
  });

  it("__proto__, constructor, toString are tools like any other", async () => {
    const names = ["__proto__", "constructor", "hasOwnProperty", "toString"];
    await target.remote.call("register", register(names.map((n) => ({ definition: defined(n) }))));
    expect(await target.remote.toolIds({ filter: { serverIds: ["offers"] } })).toEqual(names.map((n) => `offers/${n}`));
    const ids = names.map((n) => `offers/${n}`);
    const { results } = await target.remote.call("batchGetFullSchemas", { toolIds: ids });
    expect(results.map((r: { schema: { definition: Buffer } }) => JSON.parse(r.schema.definition.toString()).name)).toEqual(names);
    for (const id of ids) expect((await target.remote.call("deregister", { toolId: id })).removed, id).toBe(true);
    await target.remote.call("deregister", { serverId: "offers" });
  });

  it("a server that nobody registered is not there under such a name", async () => {
    for (const serverId of ["constructor", "tostring"]) {
      await target.refuses("getServer", { serverId }, { code: "NOT_FOUND", reason: "NOT_FOUND", says: [serverId] });
      await target.refuses("getFullSchema", { toolId: `${serverId}/x` }, { code: "NOT_FOUND", reason: "NOT_FOUND", says: [serverId] });
      await target.refuses("getFullSchema", { toolId: "seed/__proto__" }, { code: "NOT_FOUND", reason: "NOT_FOUND", says: ["__proto__"] });
    }
  });
});
