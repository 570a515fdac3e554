import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { isolateCommand, refreshCommand, resumeCommand } from "./admin.js";
import { deregisterCommand } from "./deregister.js";
import { doctorCommand } from "./doctor.js";
import { enhanceCommand } from "./enhance.js";
import { explain } from "./failure.js";
import { findCommand } from "./find.js";
import { gatewayCommand } from "./gateway.js";
import { getCommand } from "./get.js";
import { importCommand } from "./import.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import { lintCommand } from "./lint.js";
import { lsCommand } from "./ls.js";
import { mapCommand } from "./map.js";
import { approveCommand, quarantineCommand } from "./quarantine.js";
import { registerCommand } from "./register.js";
import { reportCommand } from "./report.js";
import { rulesCommand } from "./rules.js";
import { sampleCommand } from "./sample.js";
import { serversCommand } from "./servers.js";
import { tokenCommand } from "./token.js";
import { topCommand } from "./top.js";
import { watchCommand } from "./watch.js";
import { wrapCommand } from "./wrap.js";

/** Runs one command line (without node and script) and resolves with the exit code. */
export async function runCommand(argv: readonly string[], io: Io): Promise<number> {
  let exitCode = 0;
  const program = buildProgram(io, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const failure = explain(error);
    for (const text of failure.lines) line(io.stderr, text);
    return failure.exitCode;
  }
}

function buildProgram(io: Io, setExitCode: (code: number) => void): Command {
  const version = packageVersion();
  const program = new Command("toolcrib")
    .description("The central tool registry for AI agents. Without a command it starts the registry.")
    .version(version)
    .addHelpText("after", "\nThe registry itself:\n  toolcrib [serve] [options]   see `toolcrib serve --help`")
    .helpCommand(false);
  const commands = [
    wrapCommand(io, version, setExitCode),
    gatewayCommand(io, version, setExitCode),
    registerCommand(io),
    importCommand(io, version, setExitCode),
    lsCommand(io),
    serversCommand(io),
    findCommand(io),
    reportCommand(io),
    mapCommand(io),
    rulesCommand(io),
    getCommand(io),
    lintCommand(io, setExitCode),
    enhanceCommand(io, setExitCode),
    watchCommand(io),
    deregisterCommand(io),
    isolateCommand(io),
    resumeCommand(io),
    refreshCommand(io),
    quarantineCommand(io),
    approveCommand(io),
    doctorCommand(io, version, setExitCode),
    topCommand(io),
    sampleCommand(io),
    tokenCommand(io),
  ];
  for (const command of commands) program.addCommand(command);
  for (const command of [program, ...commands, ...commands.flatMap((c) => c.commands)]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    });
  }
  return program;
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
