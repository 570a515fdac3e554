/** Which tools are described so that agents choose or call them wrongly, and what to do about it. */
import { toJson } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError } from "commander";
import { LIMITS } from "../domain/limits.js";
import {
  type LintToolsResponse,
  LintToolsResponseSchema,
  QualityWarning_Kind as Kind,
} from "../gen/toolcrib/v1/registry_service_pb.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import { type RegistryOptions, withConnection, withJson, withRegistry } from "./options.js";
import { grouped, printable } from "./table.js";

interface LintOptions extends RegistryOptions {
  readonly top: number;
  readonly fail?: boolean;
  readonly json?: boolean;
}

export function lintCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = new Command("lint")
    .description("which tools are described badly, the worst first, and what to do about each")
    .argument("[server_id...]", "only tools of these servers")
    .option("--top <count>", "show at most this many", upTo, LIMITS.lintToolsDefault)
    .option("--fail", "exit code 1 where anything is found, for pipelines");
  return withJson(withRegistry(command)).action((serverIds: string[], options: LintOptions) =>
    withConnection(options, async (registry, namespace) => {
      const answer = await registry.lintTools({ namespace, serverIds, maxTools: options.top });
      if (options.json) line(io.stdout, JSON.stringify(toJson(LintToolsResponseSchema, answer), null, 2));
      else for (const text of lintLines(answer)) line(io.stdout, text);
      if (answer.stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
      if (options.fail && answer.warnedCount > 0) setExitCode(1);
    }),
  );
}

function upTo(text: string): number {
  const count = Number(text);
  if (!/^\d{1,9}$/.test(text) || count < 1 || count > LIMITS.lintTools)
    throw new InvalidArgumentError(`1 to ${LIMITS.lintTools} is expected.`);
  return count;
}

const KIND: Readonly<Record<Kind, string>> = {
  [Kind.UNSPECIFIED]: "",
  [Kind.NO_PURPOSE]: "no purpose",
  [Kind.ONE_WORD]: "one word",
  [Kind.UNDESCRIBED_PARAMETERS]: "parameters undescribed",
  [Kind.NO_EXAMPLE]: "no example",
  [Kind.DUPLICATE_TEXT]: "same text as another",
  [Kind.TOO_LONG]: "too long",
};

/** For people. */
export function lintLines(answer: LintToolsResponse): string[] {
  const { tools, counts, toolCount, warnedCount, unknownCount } = answer;
  if (toolCount === 0) return ["No tools."];
  const lines = tools.flatMap(({ toolId, warnings, definitionUnknown }) => [
    `${printable(toolId)}${definitionUnknown ? " (definition not known yet)" : ""}`,
    ...warnings.map(({ message }) => `  ${printable(message)}`),
  ]);
  const hidden = warnedCount - tools.length;
  if (hidden > 0) lines.push(`… and ${grouped(hidden)} more: --top shows them.`);
  if (lines.length > 0) lines.push("");
  const all = `${grouped(toolCount)} ${toolCount === 1 ? "tool" : "tools"}`;
  lines.push(warnedCount === 0 ? `Nothing to mend in ${all}.` : `${grouped(warnedCount)} of ${all} to mend: ${countsLine(counts)}.`);
  if (unknownCount > 0)
    lines.push(`Parameters of ${grouped(unknownCount)} were not judged: their definitions are not known until somebody asks for them.`);
  return lines;
}

function countsLine(counts: LintToolsResponse["counts"]): string {
  return [...counts]
    .sort((a, b) => b.tools - a.tools || a.kind - b.kind)
    .map(({ kind, tools }) => `${grouped(tools)} ${KIND[kind] ?? "other"}`)
    .join(", ");
}
