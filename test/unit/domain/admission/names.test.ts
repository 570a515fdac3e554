import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NameKind } from "../../../../src/domain/admission/names.js";
import { keywordReasons, nameReasons, requestIdReasons } from "../../../../src/domain/admission/names.js";
import { INSTANCE_ID_PATTERN, SLUG_PATTERN, TAG_PATTERN, TOOL_NAME_PATTERN } from "../../../../src/domain/ids.js";

describe("names", () => {
  it.each<[NameKind, string, string]>([
    ["tool_name", "", "is empty: a tool name has 1 to 128 characters of A-Z a-z 0-9 _ . -"],
    ["tool_name", "x".repeat(129), "is 129 characters long: a tool name has 1 to 128 characters"],
    ["tool_name", "a b", '"a b" holds U+0020 (space) at character 2'],
    ["tool_name", "a/b", '"a/b" holds U+002F (/) at character 2'],
    ["tool_name", "a\0b", '"a\\u{0}b" holds U+0000 (NUL) at character 2'],
    ["tool_name", "a\nb", '"a\\u{A}b" holds U+000A (newline) at character 2'],
    ["tool_name", "re\u0430d", '"re\u0430d" holds U+0430 (looks like a) at character 3'],
    ["tool_name", "\uff41b", '"\uff41b" holds U+FF41 (looks like a) at character 1'],
    ["tool_name", "a\u2010b", '"a\u2010b" holds U+2010 (looks like -) at character 2'],
    ["tool_name", "a\u202e", '"a\\u{202E}" holds U+202E (bidi control) at character 2'],
    ["tool_name", "工具", '"工具" holds U+5DE5 at character 1'],
    ["tool_name", "..", '".." holds nothing but dots'],
    ["server_id", "..", '".." holds U+002E (.) at character 1: a server_id may hold a-z 0-9 first, then also . _ -'],
    ["server_id", "Memory", '"Memory" holds U+004D (M) at character 1'],
    ["server_id", "a".repeat(64), "is 64 characters long: a server_id has 1 to 63 characters"],
    ["namespace", "-a", '"-a" holds U+002D (-) at character 1: a namespace'],
    ["instance_id", "short", "is 5 characters long: an instance_id has 8 to 64 characters"],
    ["tag", "Tag", '"Tag" holds U+0054 (T) at character 1: a tag'],
  ])("%s %j is refused", (kind, value, reason) => {
    expect(nameReasons(kind, value).join("\n")).toContain(reason);
  });

  it("give every reason at once", () => {
    expect(nameReasons("tool_name", `${"x".repeat(129)} `)).toHaveLength(2);
  });

  it("are accepted exactly where the patterns of ids.ts match", () => {
    const patterns: [NameKind, RegExp][] = [
      ["namespace", SLUG_PATTERN],
      ["server_id", SLUG_PATTERN],
      ["instance_id", INSTANCE_ID_PATTERN],
      ["tool_name", TOOL_NAME_PATTERN],
      ["tag", TAG_PATTERN],
    ];
    const value = fc.oneof(
      fc.string({ unit: fc.constantFrom(..."aZ0._-/: \u0430"), maxLength: 12 }),
      fc.string({ unit: fc.constantFrom("a", "0"), minLength: 60, maxLength: 130 }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...patterns), value, ([kind, pattern], text) => {
        const dots = kind === "tool_name" && /^\.+$/.test(text);
        expect(nameReasons(kind, text).length === 0).toBe(pattern.test(text) && !dots);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("keywords and request ids", () => {
  it("are one visible line within their limits", () => {
    expect(keywordReasons("закрыть заявку")).toEqual([]);
    expect(keywordReasons(" ")).toEqual(["is empty: a keyword has 1 to 64 characters"]);
    expect(keywordReasons("a\nb").join()).toMatch(/line break or tab at character 2/);
    expect(keywordReasons("k".repeat(65)).join()).toMatch(/65 characters long, the limit is 64/);
    expect(requestIdReasons("r".repeat(65)).join()).toMatch(/65 characters long, the limit is 64/);
    expect(requestIdReasons("a\u200bb").join()).toMatch(/U\+200B/);
  });
});
