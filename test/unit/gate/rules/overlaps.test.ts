import { expect, it } from "vitest";
import { type NamedTool, overlapsOf, unmatchedOf } from "../../../../src/gate/rules/overlaps.js";
import { readRules } from "../../../../src/gate/rules/parse.js";

function fileOf(text: string) {
  const read = readRules(Buffer.from(text));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.file;
}

const FILE = fileOf(`categories:
  files: [files/*, tag:storage]
  office: [files/read_file, mail]
  orders: ["erp/*_order"]
  erp: [server:erp]
  empty: [tag:nowhere]
rules:
  - { name: one, deny: [category:empty, files/*], include: [files/gone, files/read_file] }
  - { name: two, require_scope: { a: ["*/none_*"] } }
`);
const tool = (serverId: string, name: string, tags: string[] = []): NamedTool => ({ serverId, tool: { name, tags } });
const TOOLS = [tool("files", "read_file"), tool("files", "write_file"), tool("erp", "close_order"), tool("office", "mail", ["storage"])];

it("overlaps are told by selectors that take each other's tools, and by the tools that there are", () => {
  expect(overlapsOf(FILE, [])).toEqual([
    { categories: ["files", "office"], selectors: [["files/*", "files/read_file"]], tools: [] },
    { categories: ["orders", "erp"], selectors: [["erp/*_order", "server:erp"]], tools: [] },
  ]);
  expect(overlapsOf(FILE, TOOLS).map(({ categories, tools }) => [...categories, ...tools])).toEqual([
    ["files", "office", "files/read_file", "office/mail"],
    ["orders", "erp", "erp/close_order"],
  ]);
});

it("selectors and tool_ids that match no tool are named with what they are of", () => {
  expect(unmatchedOf(FILE, TOOLS).map(({ of, selector }) => [of, selector])).toEqual([
    ["the category empty", "tag:nowhere"],
    ['the rule "one"', "category:empty"],
    ['the rule "one"', "files/gone"],
    ['the rule "two"', "*/none_*"],
  ]);
});
