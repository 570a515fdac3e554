/** Tells the registry what came of a call. */
import { toJson } from "@bufbuild/protobuf";
import { Command, Option } from "commander";
import { ErrorKind, ReportOutcomeResponseSchema } from "../gen/toolcrib/v1/gate_service_pb.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import { collect, readDuration, type RegistryOptions, withConnection, withJson, withRegistry } from "./options.js";

const KINDS = {
  timeout: ErrorKind.TIMEOUT,
  unreachable: ErrorKind.UNREACHABLE,
  "invalid-arguments": ErrorKind.INVALID_ARGUMENTS,
  unauthorized: ErrorKind.UNAUTHORIZED,
  "tool-error": ErrorKind.TOOL_ERROR,
  "wrong-tool": ErrorKind.WRONG_TOOL,
  cancelled: ErrorKind.CANCELLED,
  other: ErrorKind.UNSPECIFIED,
} as const;

interface ReportOptions extends RegistryOptions {
  readonly intent?: string;
  readonly failed?: keyof typeof KINDS;
  readonly latency?: number;
  readonly after?: string[];
  readonly json?: boolean;
}

export function reportCommand(io: Io): Command {
  const command = new Command("report")
    .description("tell what came of a call, so that the right tool is found sooner next time")
    .argument("<tool_id>", "the tool that was called")
    .option("--intent <text>", "what you were trying to do, as you said it to `toolcrib find`")
    .addOption(new Option("--failed <how>", "the call failed, and how (default: it succeeded)").choices(Object.keys(KINDS)))
    .option("--latency <duration>", "how long it took, such as 120ms", latency)
    .option("--after <tool_id>", "tools called with success just before it for the same task, the latest first", collect);
  return withJson(withRegistry(command)).action((toolId: string, options: ReportOptions) =>
    withConnection(options, async (registry, namespace) => {
      if (options.intent?.trim() === "") throw new CommandError("say what you were trying to do, or leave --intent out", 2);
      const answer = await registry.reportOutcome({
        namespace,
        toolId,
        intent: options.intent ?? "",
        success: options.failed === undefined,
        errorKind: options.failed === undefined ? ErrorKind.UNSPECIFIED : KINDS[options.failed],
        precedingTools: options.after ?? [],
        ...(options.latency !== undefined && { latency: durationOf(options.latency) }),
      });
      if (options.json) line(io.stdout, JSON.stringify(toJson(ReportOutcomeResponseSchema, answer), null, 2));
      else line(io.stdout, said(answer.remembered, options));
    }),
  );
}

function said(remembered: boolean, { intent, failed }: ReportOptions): string {
  if (remembered) return "Remembered: intents like this one will find it.";
  if (intent === undefined || failed !== undefined) return "Reported.";
  return "Reported; the intent was not remembered: it says too little, the registry remembers none, or you hold your share.";
}

function latency(text: string): number {
  return text === "0" ? 0 : readDuration(text);
}

function durationOf(ms: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: Math.round((ms % 1_000) * 1e6) };
}
