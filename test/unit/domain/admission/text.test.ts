import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cleanText, findHidden, quoted, textViolation } from "../../../../src/domain/admission/text.js";

describe("declared text", () => {
  it.each([
    ["a newline and a tab", "a\n\tb"],
    ["Chinese, Japanese, Cyrillic", "关闭工单。データを取得する。Закрыть"],
    ["an emoji with its selector", "\u2764\ufe0f"],
    ["a family held by joiners", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}"],
    ["a skin tone and a joiner", "\u{1f469}\u{1f3fd}\u200d\u{1f4bb}"],
    ["a selector before a joiner", "\u{1f3f3}\ufe0f\u200d\u{1f308}"],
    ["combining marks", "e\u0301"],
    ["an ideographic variation", "\u845b\u{e0100}"],
  ])("may hold %s", (_, value) => {
    expect(textViolation("f", value, 100)).toBeUndefined();
    expect(cleanText(value)).toBe(value);
  });

  it.each([
    ["\u0000", "U+0000 (control)"],
    ["\r", "U+000D (control)"],
    ["\u001b", "U+001B (control)"],
    ["\u0085", "U+0085 (control)"],
    ["\u202e", "U+202E (bidi control)"],
    ["\u2066", "U+2066 (bidi control)"],
    ["\u200f", "U+200F (bidi control)"],
    ["\u061c", "U+061C (bidi control)"],
    ["\u200b", "U+200B (zero-width)"],
    ["\u200d", "U+200D (zero-width)"],
    ["\u200c", "U+200C (zero-width)"],
    ["\u2060", "U+2060 (zero-width)"],
    ["\ufeff", "U+FEFF (zero-width)"],
    ["\u2028", "U+2028 (line separator)"],
    ["\u{e0001}", "U+E0001 (tag character)"],
    ["\u{e0061}", "U+E0061 (tag character)"],
    ["\ud800", "U+D800 (lone surrogate)"],
    ["\udc00", "U+DC00 (lone surrogate)"],
    ["\ufe0f\ufe0f", "U+FE0F (variation selector)"],
  ])("may not hold %j", (hidden, named) => {
    const position = hidden.length === 2 && hidden[0] === hidden[1] ? 5 : 4;
    expect(textViolation("stub.title", `\u{1f600}bc${hidden}d`, 100)).toEqual({
      field: "stub.title",
      description: `holds the hidden character ${named} at character ${position}: remove it`,
    });
  });

  it("is measured in code points, and every reason is given", () => {
    expect(textViolation("f", "\u{1f600}".repeat(10), 10)).toBeUndefined();
    expect(textViolation("f", `\u200b${"x".repeat(10)}`, 10)?.description).toBe(
      "is 11 characters long, the limit is 10: shorten it; holds the hidden character U+200B (zero-width) at character 1: remove it",
    );
  });
});

describe("cleaned text", () => {
  it("loses what is hidden and keeps lines", () => {
    expect(cleanText("a\u202eb\u200bc\r\nd\re\u2028f\u{e0041}g\ud800h\u0007")).toBe("abc\nd\ne\nfgh");
  });

  it("holds nothing hidden, and cleaning it again changes nothing", () => {
    const nasty = fc.constantFrom("\ufe0f", "\u200d", "\u{1f600}", "\u200b", "a", " ", "\ud800", "\udc00", "\r", "\u{e0100}");
    fc.assert(
      fc.property(fc.array(fc.oneof(nasty, fc.string({ unit: "binary", maxLength: 2 }))), (parts) => {
        const cleaned = cleanText(parts.join(""));
        expect(findHidden(cleaned)).toBeUndefined();
        expect(cleanText(cleaned)).toBe(cleaned);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("quoted", () => {
  it("shows hidden characters and is cut", () => {
    expect(quoted("a\u202e\n\ud800")).toBe('"a\\u{202E}\\u{A}\\u{D800}"');
    expect(quoted("x".repeat(100), 5)).toBe('"xxxxx…"');
  });
});
