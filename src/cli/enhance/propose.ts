/** `toolcrib enhance propose`: asks a model for better labels and writes them into a file; the registry is only read. */
import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import type { LabelTexts } from "../../domain/overlay.js";
import type { Io } from "../io.js";
import { CommandError, line } from "../io.js";
import { collect, readDuration, type RegistryOptions, withConnection, withRegistry } from "../options.js";
import { grouped, printable } from "../table.js";
import { askForLabel, type Subject } from "./ask.js";
import { formatProposals, type Proposal } from "./file.js";
import { Model, ModelError, modelKey } from "./model.js";
import { selectSubjects } from "./subjects.js";

interface ProposeOptions extends RegistryOptions {
  readonly url?: string;
  readonly model?: string;
  readonly out: string;
  readonly tool?: string[];
  readonly warned?: boolean;
  readonly most: number;
  readonly atOnce: number;
  readonly timeout: number;
  readonly force?: boolean;
}

export function proposeCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = new Command("propose")
    .description("ask a language model for better labels, and write them into a file to be reviewed; nothing is changed")
    .argument("<server_id...>", "whose tools")
    .option("--url <url>", "an OpenAI-compatible API, such as https://api.example.com/v1 (default: $TOOLCRIB_MODEL_URL)")
    .option("--model <name>", "the model (default: $TOOLCRIB_MODEL)")
    .option("--out <file>", "where to write", "labels.yaml")
    .option("--force", "write over a file that is there")
    .option("--tool <tool_id>", "only these tools", collect)
    .option("--warned", "only tools that `toolcrib lint` has something to say about")
    .option("--most <count>", "ask for at most this many tools", count(1_000), 100)
    .option("--at-once <count>", "requests under way at once", count(32), 4)
    .option("--timeout <duration>", "how long one answer may take", readDuration, 60_000)
    .addHelpText("after", "\nThe key comes from TOOLCRIB_MODEL_KEY, or from the file that TOOLCRIB_MODEL_KEY_FILE names.");
  return withRegistry(command).action(async (serverIds: string[], options: ProposeOptions) => {
    const name = options.model ?? io.env["TOOLCRIB_MODEL"] ?? "";
    const model = modelOf(options, name, io);
    await withConnection(options, async (registry, namespace) => {
      const selection = { namespace, serverIds, only: options.tool ?? [], warned: options.warned === true, most: options.most };
      const { subjects, skipped, leftOut } = await selectSubjects(registry, selection);
      for (const why of skipped) line(io.stderr, `skipped ${printable(why)}`);
      const answers = await askAll(model, subjects, options.atOnce, io);
      if (io.ending.aborted) throw new CommandError("ended before all answers were there; nothing was written");
      const proposals = answers.filter((answer) => "digest" in answer);
      for (const answer of answers) if ("why" in answer) line(io.stderr, `no label for ${printable(`${answer.toolId}: ${answer.why}`)}`);
      if (leftOut > 0) line(io.stderr, `${grouped(leftOut)} more tools were not asked about: see --most and --tool.`);
      if (answers.length > proposals.length || skipped.length > 0) setExitCode(1);
      if (proposals.length === 0) return line(io.stdout, "No labels to propose.");
      write(options, formatProposals(proposals, { model: name, namespace, at: new Date().toISOString() }));
      line(io.stdout, `${grouped(proposals.length)} of ${grouped(subjects.length + skipped.length)} labels proposed in ${options.out}: review them, then \`toolcrib enhance approve ${options.out}\`.`);
    });
  });
}

function modelOf({ url = "", timeout }: ProposeOptions, model: string, { env }: Io): Model {
  const base = url || (env["TOOLCRIB_MODEL_URL"] ?? "");
  if (base === "") throw new CommandError("name the model's API with --url or TOOLCRIB_MODEL_URL", 2);
  if (model === "") throw new CommandError("name the model with --model or TOOLCRIB_MODEL", 2);
  return new Model({ url: base, model, key: modelKey(env), timeoutMs: timeout });
}

type Answer = Proposal | { readonly toolId: string; readonly why: string };

/** When one tool finds the endpoint closed, the others would find it closed, too. */
const FAILURES_IN_A_ROW = 3;

async function askAll(model: Model, subjects: readonly Subject[], atOnce: number, io: Io): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  let failures = 0;
  const worker = async (): Promise<void> => {
    while (!io.ending.aborted && failures < FAILURES_IN_A_ROW) {
      const at = next++;
      const subject = subjects[at];
      if (!subject) return;
      try {
        answers[at] = answerOf(subject, await askForLabel(model, subject, io.ending));
        failures = 0;
      } catch (error) {
        if (!(error instanceof ModelError)) throw error;
        failures++;
        answers[at] = { toolId: subject.toolId, why: error.message };
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const unasked = subjects.length - Object.keys(answers).length;
  if (unasked > 0 && failures >= FAILURES_IN_A_ROW)
    line(io.stderr, `${grouped(unasked)} more tools were not asked about, because the model's API failed ${failures} times in a row.`);
  return Object.values(answers);
}

function answerOf({ toolId, digest, own }: Subject, answer: { readonly texts: LabelTexts } | { readonly why: string }): Answer {
  return "texts" in answer ? { toolId, texts: answer.texts, digest, madeFor: own } : { toolId, why: `the model gave nothing that may be a label: ${answer.why}` };
}

/** A file that an operator has edited must not be lost. */
function write({ out, force }: ProposeOptions, text: string): void {
  try {
    writeFileSync(out, text, { flag: force ? "w" : "wx", mode: 0o644 });
  } catch (error) {
    const { code } = error as { readonly code?: string };
    throw new CommandError(code === "EEXIST" ? `${out} is there already: name another --out, or --force` : `${out} cannot be written (${code ?? "unknown"})`);
  }
}

function count(most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,9}$/.test(text) || value < 1 || value > most) throw new InvalidArgumentError(`1 to ${most} is expected.`);
    return value;
  };
}
