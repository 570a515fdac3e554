import { describe, expect, it } from "vitest";
import { judgeDefinition } from "../../../src/domain/quality/definition.js";
import { judgeLabel, textKeyOf } from "../../../src/domain/quality/label.js";
import { judgeSet } from "../../../src/domain/quality/set.js";
import { gathered, gravityOf } from "../../../src/domain/quality/warning.js";
import { wordsOf } from "../../../src/domain/quality/words.js";

const label = (name: string, briefDescription: string, useWhen = "") => ({ name, briefDescription, useWhen });
const kindsOf = (name: string, brief: string, useWhen = "") => judgeLabel(label(name, brief, useWhen)).map(({ kind }) => kind);
const judged = (tool: object) => judgeDefinition(Buffer.from(JSON.stringify(tool)));
const parameters = (properties: object, required: string[] = []) =>
  judged({ name: "t", description: "Does a thing", inputSchema: { type: "object", properties, required } });

describe("a label", () => {
  it.each([
    ["list_issues", "", ["no-purpose"]],
    ["list_issues", " \n ", ["no-purpose"]],
    ["list_issues", "TODO", ["no-purpose"]],
    ["list_issues", "N/A", ["no-purpose"]],
    ["list_issues", "No description available.", ["no-purpose"]],
    ["list_issues", "Lists issues", ["no-purpose"]],
    ["deletePlannerBucket", "Delete a planner bucket.", ["no-purpose"]],
    ["list_issues", "Issues", ["one-word"]],
    ["sou", "搜索", ["one-word"]],
    ["search_wiki", "搜索知识库中的文档和页面", []],
    ["list_issues", "Lists the open issues of a repository, newest first", []],
    ["browser_navigate", "Navigate to a URL", []],
    ["read", `${"long".repeat(80)}s`, ["one-word", "too-long"]],
    ["🙂", "🙂 🙂", ["no-purpose"]],
  ])("%s: %j → %j", (name, brief, kinds) => {
    expect(kindsOf(name, brief)).toEqual(kinds);
  });

  it("has a purpose where use_when names it", () => {
    expect(kindsOf("x1", "", "The user wants to cancel an order")).toEqual([]);
    expect(kindsOf("x1", "", "always")).toEqual(["no-purpose"]);
  });

  it("is told what to do, in a sentence, without hidden characters", () => {
    for (const brief of ["", "TODO", "Lists issues", "Issues", "y ".repeat(200)])
      for (const { message } of judgeLabel(label("list_issues", brief))) expect(message).toMatch(/^[A-Z][^\n]*: [^\n]+\.$/);
    expect(judgeLabel(label("a", "n/a \u202e"))[0]?.message).not.toContain("\u202e");
  });

  it("says the same as another one whatever the case and the stops", () => {
    expect(textKeyOf(label("a", "Close an order."))).toBe(textKeyOf(label("b", "close an ORDER")));
    expect(textKeyOf(label("a", "Close an order."))).not.toBe(textKeyOf(label("b", "Close an order.", "It is overdue")));
    expect(textKeyOf(label("a", "…"))).toBe("");
  });

  it("takes identifiers and unspaced scripts apart", () => {
    expect(wordsOf("listIssues_v2")).toEqual(["list", "issues", "v", "2"]);
    expect(wordsOf("获取列表")).toEqual(["获取", "列表"]);
  });
});

describe("a definition", () => {
  it("wants words for required parameters, and for most of the others", () => {
    expect(parameters({ a: { type: "string" } }, ["a"])).toMatchObject([
      { kind: "undescribed-parameters", message: "Its parameter has no description (a): say what each means, its unit and its default." },
    ]);
    expect(parameters({ a: { type: "string", description: "what" }, b: { type: "string" } })).toEqual([]);
    expect(parameters({ a: { type: "string", description: "what" }, b: {}, c: {} })[0]?.message).toContain("2 of 3 parameters have no description (b, c)");
    expect(parameters({ a: { enum: ["on", "off"] } }, ["a"]), "values that are shown need no words").toEqual([]);
    expect(parameters({}, [])).toEqual([]);
  });

  it("looks into groups, lists, unions and references", () => {
    const data = { type: "object", properties: { id: { type: "string", description: "what" } }, required: ["id"] };
    expect(parameters({ data }, ["data"]), "a group is described by what it groups").toEqual([]);
    expect(parameters({ a: { anyOf: [{ type: "string", description: "what" }, { type: "null" }] } }, ["a"])).toEqual([]);
    const schema = { type: "object", properties: { a: { $ref: "#/$defs/A" } }, required: ["a"], $defs: { A: { type: "string", description: "what" } } };
    expect(judged({ name: "t", description: "d", inputSchema: schema })).toEqual([]);
    expect(judged({ name: "t", inputSchema: { type: "object", properties: { a: { $ref: "#/nowhere" } }, required: ["a"] } })).toHaveLength(1);
  });

  it("wants an example where a format is unusual", () => {
    const one = (parameter: object) => parameters({ a: { type: "string", description: "The value", ...parameter } }).map(({ kind }) => kind);
    expect(one({ pattern: "^[A-Z]{2}-\\d{4}$" })).toEqual(["no-example"]);
    expect(one({ description: "A cron expression" })).toEqual(["no-example"]);
    expect(one({ format: "x-colour" })).toEqual(["no-example"]);
    expect(one({ pattern: "^\\d+$" }), "digits are digits").toEqual([]);
    expect(one({ format: "date-time" }), "everybody knows it").toEqual([]);
    expect(one({ pattern: "^[A-Z]{2}-\\d{4}$", examples: ["AB-1234"] })).toEqual([]);
    expect(one({ description: "A cron expression, e.g. 0 9 * * 1" })).toEqual([]);
    expect(one({ description: "日期，例如 2024-01-01", pattern: "^\\d{4}-\\d{2}-\\d{2}$" })).toEqual([]);
    expect(one({ type: "boolean", description: "Whether a is a regex" }), "truth values have no format").toEqual([]);
  });

  it("may be long, but not that long", () => {
    expect(judged({ name: "t", description: "é".repeat(1_200), inputSchema: { type: "object" } })).toEqual([]);
    expect(judged({ name: "t", description: "é".repeat(1_201), inputSchema: { type: "object" } })).toMatchObject([{ kind: "too-long" }]);
  });

  it("is not judged where it cannot be read", () => {
    expect(judgeDefinition(Buffer.from("{"))).toEqual([]);
    expect(judgeDefinition(Buffer.from("[]"))).toEqual([]);
  });

  it("of a thousand parameters names five", () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`p${i}`, {}]));
    expect(parameters(many)[0]?.message).toMatch(/\(p0, p1, p2, p3, p4 and \d+ more\)/);
  });
});

describe("a set", () => {
  it("names the other one with the same text, and judges parameters only where it has the definition", () => {
    const definition = Buffer.from(JSON.stringify({ name: "a", inputSchema: { type: "object", properties: { x: {} }, required: ["x"] } }));
    const found = judgeSet("shop", [
      { label: label("a", "Closes an order for good"), definition },
      { label: label("b", "Closes an order for good."), definition: undefined },
      { label: label("c", "Opens an order that was closed"), definition: undefined },
    ]);
    expect(found.get("a")?.map(({ kind }) => kind)).toEqual(["duplicate-text", "undescribed-parameters"]);
    expect(found.get("b")).toMatchObject([{ kind: "duplicate-text", message: expect.stringContaining("shop/a") as string }]);
    expect(found.has("c")).toBe(false);
  });

  it("puts the gravest first, one of each kind", () => {
    const warnings = gathered([{ kind: "too-long", message: "1" }], [{ kind: "too-long", message: "2" }, { kind: "no-purpose", message: "3" }]);
    expect(warnings.map(({ message }) => message)).toEqual(["3", "1"]);
    expect(gravityOf(warnings)).toBeGreaterThan(gravityOf([{ kind: "one-word", message: "" }]));
  });
});
