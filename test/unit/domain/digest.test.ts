import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalise, definitionDigest, digestOf, setDigest } from "../../../src/domain/digest.js";

describe("canonical form", () => {
  it("is RFC 8785 on its own example, but for the one number that no double holds exactly", () => {
    const source = `{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`;
    expect(canonicalise(source)).toBe(
      `{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],` +
        `"string":"€$\\u000f\\nA'B\\"\\\\\\\\\\"/"}`,
    );
  });

  it("sorts keys by UTF-16 code units, as RFC 8785 section 3.2.3", () => {
    const source = `{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
      "\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}`;
    expect(Object.values(JSON.parse(canonicalise(source).replace('"1"', '"x"')) as object)).toEqual([
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh",
    ]);
  });

  it.each([
    ["0", "0"],
    ["-0", "0"],
    ["0e99999999999999999999", "0"],
    ["1.0", "1"],
    ["1E0", "1"],
    ["10e-1", "1"],
    ["-1.50", "-1.5"],
    ["5e-324", "5e-324"],
    ["1.7976931348623157e308", "1.7976931348623157e+308"],
    ["9007199254740992", "9007199254740992"],
    ["295147905179352830000", "295147905179352830000"],
    ["1e21", "1e+21"],
    ["999999999999999900000", "999999999999999900000"],
    ["1e-7", "1e-7"],
    ["0.000001", "0.000001"],
  ])("writes %s as %s", (source, canonical) => {
    expect(canonicalise(source)).toBe(canonical);
  });

  it.each([
    "9007199254740993",
    "-9007199254740993",
    "1e400",
    "-1e400",
    "1e-400",
    "0.1000000000000000055511151231257827",
    "1e99999999999999999999999",
  ])("keeps %s, which does not survive a double", (source) => {
    expect(canonicalise(`[${source}]`)).toBe(`[${source}]`);
  });

  it("keeps lone surrogates as escapes instead of throwing", () => {
    expect(canonicalise('"\\uD800x"')).toBe('"\\ud800x"');
    expect(canonicalise('"\ud800x"')).toBe('"\\ud800x"');
    expect(canonicalise('{"\\uDC00":1}')).toBe('{"\\udc00":1}');
  });

  it("keeps __proto__ and number-like keys as data", () => {
    expect(canonicalise('{"b":1,"__proto__":{"x":1},"10":2,"9":3}')).toBe('{"10":2,"9":3,"__proto__":{"x":1},"b":1}');
  });

  it("refuses deep nesting and repeated keys with a clear error", () => {
    expect(() => canonicalise("[".repeat(200_000))).toThrow(/nests deeper than 128 levels/);
    expect(() => canonicalise('{"a":1,"a":2}')).toThrow(/repeats the key a/);
    expect(() => canonicalise("{a:1}")).toThrow(/no canonical form/);
  });

  it("takes linear time for long numbers", () => {
    const digits = `1${"0".repeat(500_000)}1`;
    expect(canonicalise(`[${digits},1${"0".repeat(200)}]`)).toBe(`[${digits},1e+200]`);
  });
});

/** JSON values whose keys may be anything, as text with shuffled keys and odd spacing. */
function spelled(value: unknown, shuffle: (keys: string[]) => string[]): string {
  if (Array.isArray(value)) return `[ ${value.map((v) => spelled(v, shuffle)).join(" ,")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = shuffle(Object.keys(value)).map(
    (key) => `${JSON.stringify(key)} :${spelled((value as Record<string, unknown>)[key], shuffle)}`,
  );
  return `{\n${members.join(",\t")}}`;
}

describe("canonical form, for any JSON", () => {
  it("is its own canonical form and keeps the value", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const canonical = canonicalise(text);
        expect(canonicalise(canonical)).toBe(canonical);
        const kept = JSON.stringify(JSON.parse(text), (_, v: unknown) => (Object.is(v, -0) ? 0 : v));
        expect(JSON.parse(canonical)).toEqual(JSON.parse(kept));
      }),
    );
  });

  it("does not depend on key order or white space", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const forward = definitionDigest(spelled(value, (keys) => keys));
        expect(definitionDigest(spelled(value, (keys) => [...keys].reverse()))).toBe(forward);
      }),
    );
  });

  it("changes with the last digit of any integer over 2^53", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 2n ** 53n, max: 2n ** 70n }), (n) => {
        expect(definitionDigest(`{"n":${n}}`)).not.toBe(definitionDigest(`{"n":${n + 1n}}`));
      }),
    );
  });

  it("agrees with ES for every double that was written by ES", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (n) => {
        expect(canonicalise(n.toExponential())).toBe(String(n === 0 ? 0 : n));
      }),
    );
  });
});

describe("digests", () => {
  it("are sha256 in hex", () => {
    expect(digestOf(new Uint8Array())).toBe("sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });

  const member = (name: string, stub: string, definitionDigest = "") => ({
    name,
    stub: Buffer.from(stub),
    definitionDigest,
  });

  it("of a set do not depend on the order of arrival", () => {
    const a = member("a", "one");
    const b = member("b", "two");
    expect(setDigest([a, b])).toBe(setDigest([b, a]));
    expect(setDigest([a])).not.toBe(setDigest([a, b]));
    expect(setDigest([])).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it("of a set change with every part, and no part can pass for another", () => {
    const sets = [
      [member("a", "bc")],
      [member("ab", "c")],
      [member("a", "b", "c")],
      [member("a", "b"), member("c", "")],
      [member("a", "bc", "sha256:1")],
    ];
    expect(new Set(sets.map(setDigest)).size).toBe(sets.length);
  });
});
