import { Command } from "commander";
import type { Io } from "./io.js";
import { serveSample } from "./sample/server.js";

export function sampleCommand(io: Io): Command {
  return new Command("sample")
    .description("run a small MCP server on stdio, to try things out: toolcrib wrap --id sample -- toolcrib sample")
    .action(() => serveSample(process.stdin, io.stdout, io.ending));
}
