/** Which tools fit an intent, as an agent would be told. */
import { toJson } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  type Bundle,
  type FindToolsResponse,
  FindToolsResponseSchema,
  type RankedTool,
  type Reason,
  Reason_Kind,
  SchemaInclusion,
  SideEffect,
  type WithheldTool,
  WithheldTool_Cause,
} from "../gen/toolcrib/v1/gate_service_pb.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import { collect, type RegistryOptions, withConnection, withJson, withRegistry } from "./options.js";
import { firstSentence, formatTable, grouped, printable } from "./table.js";

interface FindOptions extends RegistryOptions {
  readonly top?: number;
  readonly budget?: number;
  readonly category?: string;
  readonly tag?: string[];
  readonly server?: string[];
  readonly scope?: string[];
  readonly state?: string[];
  readonly schemas: keyof typeof SCHEMAS;
  readonly json?: boolean;
}

const SCHEMAS = {
  none: SchemaInclusion.NONE,
  compact: SchemaInclusion.COMPACT,
  "input-only": SchemaInclusion.INPUT_ONLY,
  full: SchemaInclusion.FULL,
  auto: SchemaInclusion.AUTO,
} as const;

export function findCommand(io: Io): Command {
  const command = new Command("find")
    .description("which tools fit what you are trying to do, why, and what they cost")
    .argument("<intent...>", "such as: close the overdue purchase order")
    .option("--top <count>", "at most this many (default: 5)", whole)
    .option("--budget <tokens>", "estimated tokens that they may have together", whole)
    .option("--category <module>", "only tools of this module of `toolcrib map`")
    .option("--tag <tag>", "only tools with every one of these tags", collect)
    .option("--server <id>", "only tools of these servers", collect)
    .option("--scope <scope>", "scopes that the agent has", collect)
    .option("--state <fact>", "facts of its state, as name or name=value", collect)
    .addOption(
      new Option("--schemas <view>", "what comes along of the definitions").choices(Object.keys(SCHEMAS)).default("none"),
    );
  return withJson(withRegistry(command)).action((words: string[], options: FindOptions) =>
    withConnection(options, async (registry, namespace) => {
      const intent = words.join(" ");
      if (intent.trim() === "") throw new CommandError("say what you are trying to do", 2);
      const answer = await registry.findTools({
        namespace,
        intent,
        topK: options.top ?? 0,
        tokenBudget: options.budget ?? 0,
        filter: { category: options.category ?? "", tagsAll: options.tag ?? [], serverIds: options.server ?? [] },
        scopes: options.scope ?? [],
        state: options.state ?? [],
        includeSchemas: SCHEMAS[options.schemas],
      });
      if (options.json) line(io.stdout, JSON.stringify(toJson(FindToolsResponseSchema, answer), null, 2));
      else for (const text of findLines(answer)) line(io.stdout, text);
      if (answer.stale) line(io.stderr, "The registry cannot reach its store: this is the last that it knows.");
    }),
  );
}

/** For options that are counts. */
export function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("a whole number is expected.");
  return Number(text);
}

/** For people. */
export function findLines(answer: FindToolsResponse): string[] {
  const { tools, withheld, weak, bundles } = answer;
  const none = answer.catalogueTools === 0 ? "No tools are registered here." : "No tool has anything of it.";
  const head = tools.length === 0 ? [none] : weak ? ["Nothing really fits; the nearest are:"] : [];
  return [...head, ...ranked(tools), ...bundleLines(bundles), ...schemas(tools), ...withheldLines(withheld), ...saving(answer)];
}

function ranked(tools: readonly RankedTool[]): string[] {
  if (tools.length === 0) return [];
  const columns = [
    { head: "#", right: true },
    { head: "TOOL" },
    { head: "SCORE", right: true },
    { head: "WHY" },
    { head: "TOKENS", right: true },
    { head: "DESCRIPTION", shrink: true },
  ];
  const rows = tools.map((tool, i) => [
    String(i + 1),
    tool.stub?.toolId ?? "",
    tool.score.toFixed(2),
    why(tool),
    grouped(tool.estimatedTokens),
    firstSentence(tool.stub?.briefDescription ?? ""),
  ]);
  return formatTable(columns, rows);
}

/** Words that are shown of a reason; the rarest come first. */
const WORDS = 3;

function why({ reasons, sideEffect }: RankedTool): string {
  const effect = sideEffect === SideEffect.DESTRUCTIVE ? "may destroy" : "";
  return [...reasons.map(reasonWords), effect].filter((text) => text !== "").join(", ");
}

function reasonWords({ kind, words, detail }: Reason): string {
  switch (kind) {
    case Reason_Kind.EXACT_NAME:
      return "named";
    case Reason_Kind.REMEMBERED:
      return "used for this before";
    case Reason_Kind.SERVICE:
      return `of ${detail}`;
    case Reason_Kind.RULE:
      return `rule ${detail}`;
    case Reason_Kind.COMPANION:
      return `goes with ${detail}`;
    case Reason_Kind.SIBLING:
      return `beside ${detail}`;
    case Reason_Kind.MEANING:
      return "by meaning";
    default:
      return words.length > WORDS ? `${words.slice(0, WORDS).join(" ")} +${words.length - WORDS}` : words.join(" ");
  }
}

function bundleLines(bundles: readonly Bundle[]): string[] {
  if (bundles.length === 0) return [];
  const lines = bundles.map(({ toolIds, description, share }) => {
    return `  ${printable(description)} (${Math.round(share * 100)} %): ${toolIds.map(printable).join(" → ")}`;
  });
  return ["", "Often used together:", ...lines];
}

function schemas(tools: readonly RankedTool[]): string[] {
  return tools.flatMap(({ stub, schema }) => {
    const id = stub?.toolId ?? "";
    if (schema.case === "definition") return ["", `${id}:`, Buffer.from(schema.value.definition).toString("utf8")];
    if (schema.case !== "schemaError") return [];
    const { message, substitutes } = schema.value;
    return ["", `${id}: ${printable(message)}${insteadOf(substitutes)}`];
  });
}

function withheldLines(withheld: readonly WithheldTool[]): string[] {
  if (withheld.length === 0) return [];
  const lines = withheld.map(({ toolId, cause, why: reason, substitutes }) => {
    const word = (WithheldTool_Cause[cause] ?? "").toLowerCase();
    return `  ${printable(toolId)}: ${word}, ${printable(reason)}${insteadOf(substitutes)}`;
  });
  return ["", "Withheld:", ...lines];
}

function insteadOf(substitutes: readonly string[]): string {
  return substitutes.length === 0 ? "" : `; instead: ${substitutes.map(printable).join(", ")}`;
}

function saving({ answerTokens, catalogueTokens, catalogueTools }: FindToolsResponse): string[] {
  if (catalogueTools === 0) return [];
  const all = `the whole catalogue (${grouped(catalogueTools)} ${catalogueTools === 1 ? "tool" : "tools"})`;
  return ["", `This answer: ${grouped(answerTokens)} tokens; ${all}: ${grouped(Number(catalogueTokens))} tokens (estimated).`];
}
