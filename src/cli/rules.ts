/** Rule files, looked at before a registry reads them. */
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { problemText, RULE_LIMITS, type RuleFile } from "../gate/rules/model.js";
import { type NamedTool, type Overlap, overlapsOf, type Unmatched, unmatchedOf } from "../gate/rules/overlaps.js";
import { readRules } from "../gate/rules/parse.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import { type RegistryOptions, withConnection, withJson, withRegistry } from "./options.js";
import { printable } from "./table.js";

interface CheckOptions extends RegistryOptions {
  readonly live?: boolean;
  readonly json?: boolean;
}

export function rulesCommand(io: Io): Command {
  const check = new Command("check")
    .description("what is wrong with a rule file, which categories overlap, and which selectors match no tool")
    .argument("<file>", "such as rules/default.yaml")
    .option("--live", "hold it against the tools of a running registry, too");
  const command = withJson(withRegistry(check)).action(async (path: string, options: CheckOptions) => {
    const read = readRules(contentOf(path));
    if (!read.ok) throw new CommandError([`${path} cannot be used:`, ...read.problems.map((p) => `  ${printable(problemText(p))}`)].join("\n"));
    const live = options.live === true || options.registry !== undefined;
    const tools = live ? await withConnection(options, (registry, namespace) => toolsOf(registry, namespace)) : undefined;
    const report = { overlaps: overlapsOf(read.file, tools ?? []), unmatched: tools ? unmatchedOf(read.file, tools) : [] };
    if (options.json) return line(io.stdout, JSON.stringify({ ...countsOf(read.file), tools: tools?.length, ...report }, null, 2));
    for (const text of checkLines(path, read.file, tools, report.overlaps, report.unmatched)) line(io.stdout, text);
  });
  return new Command("rules").description("categories and rules that FindTools keeps to (--gate-rules)").addCommand(command);
}

/** A pipe or a device is none, and more than is taken is not read. */
function contentOf(path: string): Buffer {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new CommandError(`${path} is no file`, 2);
    if (stats.size > RULE_LIMITS.bytes) throw new CommandError(`${path} has ${stats.size} bytes, at most ${RULE_LIMITS.bytes} are taken`);
    return readFileSync(file);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, 2);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

async function toolsOf(registry: RegistryConnection, namespace: string): Promise<readonly NamedTool[]> {
  const tools: NamedTool[] = [];
  let pageToken = "";
  do {
    const page = await registry.getStubs({ namespace, pageToken });
    tools.push(...page.stubs.map(({ serverId, name, tags }) => ({ serverId, tool: { name, tags } })));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return tools;
}

function countsOf({ categories, rules }: RuleFile): { readonly categories: number; readonly rules: number } {
  return { categories: categories.length, rules: rules.length };
}

/** For people. */
export function checkLines(
  path: string,
  file: RuleFile,
  tools: readonly NamedTool[] | undefined,
  overlaps: readonly Overlap[],
  unmatched: readonly Unmatched[],
): string[] {
  const { categories, rules } = countsOf(file);
  const seen = tools ? `, held against ${counted(tools.length, "tool")}` : "";
  const head = `${printable(path)} is well: ${counted(rules, "rule")}, ${counted(categories, "category", "categories")}${seen}.`;
  const shared = overlaps.map(({ categories: [one, other], selectors, tools: ids }) => `  ${printable(`${one} and ${other}: ${sharedWords(selectors, ids)}`)}`);
  const idle = unmatched.map(({ of, line: at, selector }) => `  ${printable(`line ${at}, ${of}: ${selector}`)}`);
  return [
    head,
    ...(shared.length > 0 ? ["", "Categories that share tools:", ...shared] : []),
    ...(idle.length > 0 ? ["", "Selectors that match no tool now:", ...idle] : []),
  ];
}

/** Examples that are shown. */
const SHOWN = 5;

function sharedWords(selectors: Overlap["selectors"], ids: readonly string[]): string {
  const texts = selectors.map(([one, other]) => (one === other ? one : `${one} ~ ${other}`));
  const all = ids.length > 0 ? ids : texts;
  const more = all.length > SHOWN ? `, and ${all.length - SHOWN} more` : "";
  return `${ids.length > 0 ? `${counted(ids.length, "tool")}: ` : ""}${all.slice(0, SHOWN).join(", ")}${more}`;
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
