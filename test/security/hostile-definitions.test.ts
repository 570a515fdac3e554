/** Definitions made to break a parser, a walk, a digest or a cache. Sent inline; what is accepted comes back byte for byte. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SERVICE } from "../integration/grpc-support.js";
import { inline, REJECTED, Target, tool } from "./support.js";

let target: Target;
beforeAll(async () => void (target = await Target.start()));
afterAll(() => target.stop());

const MIB = 1024 * 1024;
const good = JSON.stringify(tool("good"));
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const withSchema = (schema: string): string => `{"name":"hostile","inputSchema":{"type":"object",${schema}}}`;
const padded = (bytes: number): string => {
  const empty = JSON.stringify(tool("padded", { description: "" }));
  return JSON.stringify(tool("padded", { description: "x".repeat(bytes - empty.length) }));
};

describe("too much of it", () => {
  it("5 MB of schema do not fit into a message", async () => {
    const request = inline("big", [padded(5_000_000)]);
    const error = await target.refuses("register", request, { code: "RESOURCE_EXHAUSTED", reason: "MESSAGE_TOO_LARGE", says: ["4194304"] });
    expect(error.metadata).toMatchObject({ limit: "4194304", part: "message" });
    expect(Number(error.metadata["actual"])).toBeGreaterThan(5_000_000);
    expect(error.message).toContain(error.metadata["actual"] as string);
  });

  it.each([MIB + 1, 1_500_000])("%i bytes are more than one definition may have", async (bytes) => {
    const says = [`${bytes} bytes`, "the limit is 1048576"];
    await target.refuses("register", inline("big", [padded(bytes)]), { ...REJECTED, fields: ["declared.tools[0]"], says: ["padded", ...says] });
    const { tools } = await target.remote.call("register", inline("big", [good, padded(bytes)]));
    expect(tools).toMatchObject([{ outcome: "OUTCOME_ACCEPTED" }, { name: "padded", outcome: "OUTCOME_REJECTED" }]);
    await target.remote.call("deregister", { serverId: "big" });
  });

  it("1 MiB is not", async () => {
    const definition = padded(MIB);
    await target.remote.call("register", inline("big", [definition]));
    await comesBack("big/padded", definition);
    await target.remote.call("deregister", { serverId: "big" });
  });

  it.each([
    ["65 levels", withSchema(`"properties":${nested(63)}`), "nests 65 levels deep"],
    ["10,000 levels of objects", withSchema(`"x":${nested(10_000)}`), "nests 10002 levels deep"],
    ["10,000 levels of arrays", withSchema(`"x":${"[".repeat(10_000)}${"]".repeat(10_000)}`), "nests 10002 levels deep"],
    ["400,000 brackets that never close", `{"name":"hostile","inputSchema":${"[".repeat(400_000)}`, "levels deep"],
  ])("%s are too deep", async (_what, definition, says) => {
    await rejects(definition, [says, "the limit is 64"]);
  });

  it("64 levels are not", async () => {
    const definition = withSchema(`"x":${nested(62)}`);
    await target.remote.call("register", inline("deep", [definition]));
    await comesBack("deep/hostile", definition);
    await target.remote.call("deregister", { serverId: "deep" });
  });

  it("100,000 faults in one definition are counted, not listed", async () => {
    const error = await rejects(withSchema(`"allOf":[${Array(100_000).fill("1").join()}]`), ["and 99980 more reasons of 100000"]);
    expect(error.detailBytes).toBeLessThan(6_000);
  });
});

describe("no tool, or no JSON", () => {
  it.each([
    ["noise", Buffer.from([0xff, 0x00, 0xfe, 0x80]), "not valid UTF-8"],
    ["text in another encoding", Buffer.from(good, "utf16le"), "not valid JSON"],
    ["a byte-order mark in front", Buffer.from(`\ufeff${good}`), "not valid JSON"],
    ["invalid UTF-8 inside a string", Buffer.concat([Buffer.from('{"name":"hostile","description":"'), Buffer.from([0xc3, 0x28]), Buffer.from('","inputSchema":{"type":"object"}}')]), "not valid UTF-8"],
    ["half of one", Buffer.from(good.slice(0, 20)), "not valid JSON"],
    ["two of them", Buffer.from(good + good), "nothing may follow"],
    ["a trailing comma", Buffer.from('{"name":"hostile","inputSchema":{"type":"object"},}'), "not valid JSON"],
    ["NaN", Buffer.from(withSchema('"minimum":NaN')), "not valid JSON"],
    ["null", Buffer.from("null"), "must be one MCP tool object, but is null"],
    ["an array of them", Buffer.from(`[${good}]`), "must be one MCP tool object, but is an array"],
    ["a string", Buffer.from('"tool"'), "must be one MCP tool object, but is a string"],
    ["no inputSchema", Buffer.from('{"name":"hostile"}'), "/inputSchema is missing"],
    ["a null inputSchema", Buffer.from('{"name":"hostile","inputSchema":null}'), "but is null"],
    ["a boolean inputSchema", Buffer.from('{"name":"hostile","inputSchema":true}'), "but is a boolean"],
    ["a schema of another type", Buffer.from('{"name":"hostile","inputSchema":{"type":"int"}}'), '"int"'],
    ["a name that is a number", Buffer.from('{"name":1,"inputSchema":{"type":"object"}}'), "/name must be a string, but is a number"],
  ])("%s", async (_what, definition, says) => {
    await rejects(definition, [says]);
  });

  it.each([
    ["at the top", '{"name":"hostile","name":"other","inputSchema":{"type":"object"}}', "/name is given twice"],
    ["one spelled with an escape", '{"name":"hostile","n\\u0061me":"other","inputSchema":{"type":"object"}}', "/name is given twice"],
    ["deep inside", withSchema('"properties":{"a":{"type":"string","type":"null"}}'), "/inputSchema/properties/a/type is given twice"],
    ["__proto__ twice", withSchema('"__proto__":{},"__proto__":{}'), "/inputSchema/__proto__ is given twice"],
  ])("duplicate keys %s", async (_what, definition, says) => {
    await rejects(definition, [says]);
  });

  it.each([
    ["another host", "https://evil.example/schema.json"],
    ["a file", "file:///etc/passwd"],
    ["a relative place", "other.json#/a"],
    ["nothing", ""],
  ])("a $ref to %s is never followed, and refused", async (_what, ref) => {
    await rejects(withSchema(`"properties":{"a":{"$ref":${JSON.stringify(ref)}}}`), ["/inputSchema/properties/a/$ref", "references must stay inside"]);
  });

  it("a regular expression that would take for ever is kept and never run", async () => {
    const definition = withSchema('"properties":{"a":{"type":"string","pattern":"(a+)+$","default":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}}');
    await target.remote.call("register", inline("regex", [definition]));
    await comesBack("regex/hostile", definition);
    await target.remote.call("deregister", { serverId: "regex" });
  });
});

describe("what JavaScript would lose is kept", () => {
  it.each([
    ["integers over 2^53", withSchema('"properties":{"a":{"maximum":9007199254740993,"minimum":-123456789012345678901234567890}}')],
    ["numbers that no double holds", withSchema('"x":[1e400,0.1000000000000000055511151231257827,1E2,-0,1.0]')],
    ["__proto__, constructor and prototype as keys", withSchema('"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"properties":{"__proto__":{"type":"string"}}')],
    ["number-like keys in their order", withSchema('"properties":{"10":{},"9":{},"b":{},"1":{}}')],
    ["lone surrogates, NUL, bidi and tag characters as escapes", withSchema('"description":"\\ud800 \\u0000 \\u202e \\udb40\\udc41"')],
    ["bidi and tag characters as they are", withSchema('"description":"\u202e\u{e0041}\u200b"')],
    ["every kind of white space", `\t\r\n ${withSchema(' "x" :\n[ 1 ,\t2 ]')}\n`],
  ])("%s", async (_what, definition) => {
    const { tools } = await target.remote.call("register", inline("kept", [definition]));
    expect(tools).toMatchObject([{ name: "hostile", outcome: "OUTCOME_ACCEPTED", reasons: [] }]);
    await comesBack("kept/hostile", definition);
    await target.remote.call("deregister", { serverId: "kept" });
    expect((await target.remote.call("getStubs")).stubs.length).toBe(2);
  });

  it.each([
    ["the last digit of an integer over 2^53", "9007199254740992", "9007199254740993"],
    ["the last digit of a long fraction", "0.10000000000000000001", "0.10000000000000000002"],
    ["a number beyond any double", "1e400", "1e401"],
  ])("%s changed is one SCHEMA_INVALIDATED", async (_what, before, after) => {
    const definition = (n: string): string => withSchema(`"properties":{"n":{"maximum":${n}}}`);
    const [first, second] = [definition(before), definition(after)];
    const others = [JSON.stringify(tool("other"))];
    const one = await target.remote.call("register", inline("digits", [first, ...others]));
    const watch = target.remote.watch({ filter: { serverIds: ["digits"] } });
    await watch.ready();
    const turned = `{"inputSchema":${first.slice(first.indexOf(":{") + 1, -1)},"name":"hostile"}`;
    const again = await target.remote.call("register", inline("digits", [turned, ...others]));
    expect(again).toMatchObject({ revision: one.revision, setDigest: one.setDigest });
    await comesBack("digits/hostile", first);
    const two = await target.remote.call("register", inline("digits", [second, ...others]));
    const [oldDigest, newDigest] = [one.tools[0].digest, two.tools[0].digest];
    expect(newDigest).not.toBe(oldDigest);
    await comesBack("digits/hostile", second);
    const { schema } = await target.remote.call("getFullSchema", { digest: oldDigest });
    expect(schema.definition.toString()).toBe(first);
    await target.remote.call("deregister", { serverId: "digits" });
    const told = await target.eventsUntil(watch, 3);
    expect(told).toMatchObject([
      { type: "SCHEMA_INVALIDATED", toolId: "digits/hostile", oldDigest, newDigest },
      { type: "DEREGISTERED", toolId: "digits/hostile" },
      { type: "DEREGISTERED", toolId: "digits/other" },
    ]);
  });

  it("none of it reached Object.prototype, and the process still answers", async () => {
    expect((await fetch(`${target.registry.ops}/readyz`)).status).toBe(200);
    const { servers } = await target.remote.call("listServers");
    expect(servers.map((s: { serverId: string }) => s.serverId)).toEqual(["seed"]);
    expect(target.registry.logs().filter((l) => l["level"] === "error")).toEqual([]);
  });
});

async function rejects(definition: string | Buffer, says: readonly string[]) {
  const loggedAs = `${SERVICE}/Register`;
  return target.refuses("register", inline("hostile", [definition]), { ...REJECTED, says: ["declared.tools[0]", ...says], loggedAs });
}

async function comesBack(toolId: string, definition: string): Promise<void> {
  const { schema } = await target.remote.call("getFullSchema", { toolId });
  expect(schema.definition.equals(Buffer.from(definition))).toBe(true);
  const input = await target.remote.call("getFullSchema", { toolId, view: "SCHEMA_VIEW_INPUT_ONLY" });
  const text: string = input.schema.definition.toString();
  expect(definition).toContain(text);
  expect(text.startsWith("{") && text.endsWith("}")).toBe(true);
  expect(input.schema.digest).toBe(schema.digest);
}
