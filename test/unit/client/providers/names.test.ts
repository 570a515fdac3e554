import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NAME_PATTERN, nameTools } from "../../../../src/client/providers/index.js";
import { nameKeys } from "../../../../src/client/providers/names.js";
import { EXPORTS, tool } from "./tool-sets.js";

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789_.-".split("");
const toolName = fc.oneof(
  fc.string({ unit: fc.constantFrom(...LETTERS), minLength: 1, maxLength: 128 }),
  // Equal after replacing, and equal but for case.
  fc.constantFrom("a.b", "a_b", "a-b", "a..b", "a__b", "A.B", "A_B", "get.item", "get_item", "Get_Item", "_x", "x_"),
  // Sixty-seven characters and more, that differ at the start, in the middle or at the end alone.
  fc.nat({ max: 66 }).map((i) => `${"n".repeat(i)}m${"n".repeat(66 - i)}`),
  // What a hashed name looks like.
  fc.constantFrom("a_b_0123456789ab", "x_0123456789abcdef01234567", "deadbeefdead"),
);
const serverId = fc.oneof(
  fc.constantFrom("s", "a", "a_", "a__b", "a.b", "a-b", "0day", "x".repeat(63), "a_b_0123456789ab"),
  fc.string({ unit: fc.constantFrom(..."abc019._-".split("")), minLength: 1, maxLength: 63 }),
);
const toolIds = fc.uniqueArray(
  fc.tuple(serverId, toolName).map(([server, name]) => `${server}/${name}`),
  { maxLength: 60 },
);

describe("names of tools", () => {
  it("are distinct, fit every provider and lead back, whatever the tools are called", () => {
    fc.assert(
      fc.property(toolIds, (ids) => {
        const names = nameTools(ids);
        expect(names.size).toBe(ids.length);
        expect(new Set(names.values()).size).toBe(ids.length);
        for (const name of names.values()) expect(name).toMatch(NAME_PATTERN);
      }),
      { numRuns: 2_000 },
    );
  });

  it("stay the same when other tools come and go, in any order", () => {
    fc.assert(
      fc.property(toolIds, toolIds, (some, others) => {
        const alone = nameTools(some);
        const among = nameTools([...others, ...[...some].reverse()]);
        for (const id of some) expect(among.get(id)).toBe(alone.get(id));
      }),
      { numRuns: 1_000 },
    );
  });

  it("are readable where nothing stands against it, and keep both ends of a long one", () => {
    const long = `${"very_long_".repeat(6)}tool_of`;
    expect(long).toHaveLength(67);
    const names = nameTools(["git/add", "a.b/c.d", "a_b/c_d", `server/${long}`, "a__b/c", "a/b__c", "9s/t", "plain"]);
    expect(names.get("git/add")).toBe("git__add");
    expect(names.get("a_b/c_d")).toBe("a_b__c_d");
    expect(names.get("a.b/c.d")).toMatch(/^a_b__c_d_[0-9a-f]{12}$/);
    expect(names.get(`server/${long}`)).toMatch(/^server__very_long.*tool_of_[0-9a-f]{12}$/);
    expect(names.get("a/b__c")).toBe("a__b__c");
    expect(names.get("a__b/c")).toMatch(/^a__b__c_[0-9a-f]{12}$/);
    expect(names.get("9s/t")).toMatch(/^_9s__t_[0-9a-f]{12}$/);
    expect(names.get("plain")).toMatch(/^plain_[0-9a-f]{12}$/);
  });

  it("leave the caller's own names alone", () => {
    const name = nameTools(["git/add"], ["git__add"]).get("git/add");
    expect(name).toMatch(/^git__add_[0-9a-f]{12}$/);
    expect(nameTools(["git/add"], ["git__add", name as string]).get("git/add")).toMatch(/^git__add_[0-9a-f]{24}$/);
  });

  it.each(Object.keys(EXPORTS))("%s maps every nasty name back", (kind) => {
    fc.assert(
      fc.property(toolIds, (ids) => {
        const { box, problems, read } = (EXPORTS[kind] as (typeof EXPORTS)[string])(
          ids.map((id) => tool(id, { type: "object", properties: {} })),
        );
        expect(problems).toEqual([]);
        expect(box.report.refused).toBe(0);
        for (const id of ids) {
          const name = box.nameOf(id) as string;
          expect(box.toolIdOf(name)).toBe(id);
          expect(read(name, {})).toMatchObject({ ok: true, call: { toolId: id } });
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("names of property keys", () => {
  const rule = { pattern: /^[A-Za-z_][A-Za-z0-9_]{0,63}$/, length: 64 };
  const key = fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.constantFrom("$filter", "_filter", "If-Match", "If_Match", "a.b", "a_b", "__proto__", "constructor", "", "ü", "x".repeat(65)),
  );

  it("are distinct and fit, and keys that fit stay", () => {
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 30 }), (keys) => {
        const names = nameKeys(keys, rule);
        expect([...names.keys()]).toEqual(keys);
        expect(new Set(names.values()).size).toBe(keys.length);
        for (const [from, to] of names) {
          expect(to).toMatch(rule.pattern);
          if (rule.pattern.test(from)) expect(to).toBe(from);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it.each(Object.keys(EXPORTS))("%s maps them back, __proto__ included", (kind) => {
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 12 }), (keys) => {
        const properties = Object.fromEntries(keys.map((k) => [k, { type: "string" }]));
        const { box, problems, read } = (EXPORTS[kind] as (typeof EXPORTS)[string])([
          tool("s/t", { type: "object", properties, required: keys, additionalProperties: false }),
        ]);
        expect(problems).toEqual([]);
        const args = Object.fromEntries(keys.map((k) => [k, `of ${k}`]));
        const answer = read(box.nameOf("s/t") as string, box.argumentsFor("s/t", args) as object);
        expect(answer).toEqual({ ok: true, call: expect.objectContaining({ toolId: "s/t" }) });
        if (answer.ok) expect(Object.entries(answer.call.arguments)).toEqual(Object.entries(args));
      }),
      { numRuns: 200 },
    );
  });
});
