import { describe, expect, it } from "vitest";
import { textLength } from "../../../src/domain/admission/text.js";
import { readDefinition } from "../../../src/domain/definition.js";
import { briefOf, cutText, deriveLabel, labelWithoutDefinition, mergeLabel } from "../../../src/domain/label.js";
import { LIMITS } from "../../../src/domain/limits.js";
import { EMPTY_STUB } from "../../../src/domain/stub.js";

function labelOf(more: object) {
  const read = readDefinition(Buffer.from(JSON.stringify({ name: "t", inputSchema: { type: "object" }, ...more })));
  if (!read.ok) throw new Error(read.reasons.join());
  return deriveLabel(read.definition);
}

describe("a brief description", () => {
  it.each([
    ["", ""],
    ["One", "One"],
    ["One. Two! Three?", "One. Two!"],
    ["Reads v1.2 of a file, e.g. a.txt vs. b.txt. Then stops. More.", "Reads v1.2 of a file, e.g. a.txt vs. b.txt. Then stops."],
    ["Hard\nwrapped line. Next\nline. Third.", "Hard wrapped line. Next line."],
    ["First paragraph without a stop\n\nSecond one. More.", "First paragraph without a stop"],
    ["Does things:\n- one.\n- two.", "Does things:"],
    ["\n\n  Leading space. ", "Leading space."],
    ["关闭工单。删除工单。更多。", "关闭工单。删除工单。"],
    ["データを取得する（例：顧客）。次！最後", "データを取得する（例：顧客）。次！"],
    ['He said "stop." Then went. On.', 'He said "stop." Then went.'],
    ["Hidden \u202etext\u200b here.\u{e0041}", "Hidden text here."],
  ])("of %j is %j", (description, brief) => {
    expect(briefOf(description)).toBe(brief);
  });

  it("drops a second sentence that does not fit, and cuts a first one at a word", () => {
    const long = `${"word ".repeat(110).trim()}.`;
    expect(briefOf(`${long} ${long}`)).toBe(long);
    const cut = briefOf("word ".repeat(1_000));
    expect(cut).toMatch(/word…$/);
    expect(textLength(cut)).toBeLessThanOrEqual(LIMITS.briefLength);
    expect(textLength(briefOf("字".repeat(2_000)))).toBe(LIMITS.briefLength);
  });

  it("takes linear time, whatever the text", () => {
    expect(textLength(briefOf("e.g. ".repeat(200_000)))).toBeLessThanOrEqual(LIMITS.briefLength);
    expect(textLength(briefOf(".".repeat(1_000_000)))).toBeLessThanOrEqual(LIMITS.briefLength);
    expect(briefOf(" ".repeat(1_000_000))).toBe("");
  });
});

describe("cutText", () => {
  it("never splits a character from its marks", () => {
    expect(cutText("abcdefghi\u{1f468}\u200d\u{1f469}", 12)).toBe("abcdefghi\u{1f468}\u200d\u{1f469}");
    expect(cutText("abcdefghi\u{1f468}\u200d\u{1f469}xyz", 12)).toBe("abcdefghi…");
    expect(cutText("abcdefghe\u0301xyz", 10)).toBe("abcdefgh…");
  });
});

describe("labels", () => {
  it("take title, hints, digest and size from the definition; absent stays absent", () => {
    const label = labelOf({ title: " A\n\tB\u200b ", annotations: { readOnlyHint: false } });
    expect(label).toMatchObject({ name: "t", title: "A B", hints: { readOnly: false }, keywords: [], tags: [] });
    expect(Object.keys(label.hints)).toEqual(["readOnly"]);
    expect(label.digest).toMatch(/^sha256:/);
    expect(label.sizeBytes).toBeGreaterThan(30);
    expect(textLength(labelOf({ title: "word ".repeat(100) }).title)).toBeLessThanOrEqual(LIMITS.titleLength);
  });

  it("keep what was declared where it is not empty", () => {
    const derived = labelOf({ title: "Derived", description: "Derived.", annotations: { readOnlyHint: true, destructiveHint: false } });
    const declared = { ...EMPTY_STUB, name: "t", title: "Mine", keywords: ["k"], hints: { destructive: true, readOnly: undefined } as object };
    expect(mergeLabel(declared, derived)).toEqual({
      ...derived,
      title: "Mine",
      keywords: ["k"],
      hints: { readOnly: true, destructive: true },
    });
    expect(labelWithoutDefinition({ ...EMPTY_STUB, name: "t", digest: "sha256:x" })).toEqual({ ...EMPTY_STUB, name: "t", digest: "sha256:x" });
  });
});
