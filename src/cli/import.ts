import { readFileSync } from "node:fs";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { agrees } from "./ask.js";
import { readConfigFile } from "./import/config-file.js";
import type { ConsentContext } from "./import/consent.js";
import { CredentialsFile } from "./import/credentials-file.js";
import type { Outcome } from "./import/outcome.js";
import { printOutcomes } from "./import/outcome.js";
import type { Task } from "./import/plan.js";
import { planTasks, selectEntries } from "./import/plan.js";
import type { Started } from "./import/run.js";
import { registerTask, wrapTask } from "./import/run.js";
import type { Io } from "./io.js";
import { CommandError, aborted, line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withConnection, withRegistry } from "./options.js";
import { printable } from "./table.js";
import type { KeptServer } from "./wrap/keep.js";

interface ImportOptions extends RegistryOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly only?: string[];
  readonly credentialsFile?: string;
}

/** Servers that start at the same time: a first run through npx downloads packages. */
const LANES = 4;

export function importCommand(io: Io, version: string, setExitCode: (code: number) => void): Command {
  const command = new Command("import")
    .description(
      "take over the servers of a desktop client or editor: URLs are registered, commands are run and wrapped",
    )
    .argument("<mcp.json>", "the client's file, with mcpServers or servers in it")
    .option("--dry-run", "only tell what would be done")
    .option("--only <name>", "only these servers of the file", collect)
    .option("--credentials-file <file>", "the registry's --upstream-credentials file, for headers that hold secrets")
    .option("--yes", "write these headers to the credentials file without asking");
  return withRegistry(command).action((path: string, options: ImportOptions) =>
    withConnection(options, async (registry, namespace) => {
      const entries = readConfigFile(readText(path), path);
      const tasks = planTasks(entries, selectEntries(entries, options.only ?? []), io.env);
      if (tasks.length === 0) return line(io.stdout, `${path} names no servers.`);
      const secret = secretHeaders(tasks);
      if (secret.length > 0 && options.credentialsFile === undefined) {
        const will = options.dryRun ? "would be" : "are";
        line(
          io.stderr,
          `Headers that hold secrets ${will} left out, because the registry keeps none: ${secret.join(", ")}. To have them sent, give ` +
            "--credentials-file <file>, the file that the registry is started with as --upstream-credentials; you are asked before " +
            "anything is written to it.",
        );
      }
      if (options.dryRun) return printOutcomes(io, tasks.map((task) => foretell(task, options)));
      setExitCode(await run(io, registry, namespace, tasks, options, version));
    }),
  );
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/^\ufeff/, "");
  } catch (error) {
    throw new CommandError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`, 2);
  }
}

/** `Authorization of github`, for each that could become a credential. */
function secretHeaders(tasks: readonly Task[]): string[] {
  return tasks.flatMap((task) =>
    task.kind === "register" && task.secret ? [`${task.secret.header} of ${printable(task.name)}`] : [],
  );
}

function foretell(task: Task, { credentialsFile, yes }: ImportOptions): Outcome {
  const { name, serverId, notes } = task;
  if (task.kind === "skip") return { name, serverId, result: "skipped", notes };
  if (task.kind === "wrap") return { name, serverId, result: "would wrap", notes };
  if (!task.secret) return { name, serverId, result: "would register", notes };
  const { header } = task.secret;
  const becomes =
    credentialsFile === undefined
      ? `its header ${header} would be left out`
      : `its header ${header} would become the credential ${serverId}${yes ? "" : ", if you agree"}`;
  return { name, serverId, result: "would register", notes: [...notes, becomes] };
}

/** Resolves with the exit code; where commands were wrapped, when they ended or were ended. */
async function run(
  io: Io,
  registry: RegistryConnection,
  namespace: string,
  tasks: readonly Task[],
  options: ImportOptions,
  version: string,
): Promise<number> {
  const file = options.credentialsFile === undefined ? undefined : CredentialsFile.open(options.credentialsFile);
  const agreed = async (question: string): Promise<boolean> => options.yes === true || agrees(question, io);
  const consent: ConsentContext = { file, namespace, agrees: agreed };
  const outcomes = new Map<Task, Outcome>();
  for (const task of tasks) {
    if (io.ending.aborted) return 130;
    if (task.kind === "skip") outcomes.set(task, { ...foretell(task, options) });
    if (task.kind === "register") outcomes.set(task, await registerTask(registry, namespace, task, consent));
  }
  const running = new Map<Task, KeptServer>();
  const context = { io, target: registry.target, namespace, version };
  await inLanes(tasks, async (task) => {
    if (task.kind !== "wrap" || io.ending.aborted) return;
    const started: Started = await wrapTask(task, context);
    outcomes.set(task, started.outcome);
    if (started.kept) running.set(task, started.kept);
  });
  printOutcomes(
    io,
    tasks.flatMap((task) => outcomes.get(task) ?? []),
  );
  const failed = [...outcomes.values()].some(({ result }) => result === "failed");
  const allEnded = await keep(io, [...running.values()]);
  return failed || allEnded ? 1 : 0;
}

/** Until Ctrl-C, or until the last of them has ended by itself, which answers true. */
async function keep(io: Io, servers: readonly KeptServer[]): Promise<boolean> {
  if (servers.length === 0) return false;
  line(io.stderr, `${servers.length === 1 ? "1 server runs" : `${servers.length} servers run`} here until Ctrl-C.`);
  const ends = servers.map(async (server) => {
    await server.ended;
    await server.close();
  });
  await Promise.race([Promise.all(ends), aborted(io.ending)]);
  await Promise.all(servers.map((server) => server.close()));
  return !io.ending.aborted;
}

async function inLanes<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const lane = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await run(item);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
