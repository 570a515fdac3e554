/** Better labels for tools whose registrants cannot or will not write them: proposed by a model, approved by an operator. */
import { Command } from "commander";
import { approveCommand, showCommand, withdrawCommand } from "./enhance/overlays.js";
import { proposeCommand } from "./enhance/propose.js";
import { reportCommand } from "./enhance/report.js";
import type { Io } from "./io.js";

export function enhanceCommand(io: Io, setExitCode: (code: number) => void): Command {
  return new Command("enhance")
    .description("better labels, proposed by a language model and approved by an operator")
    .helpCommand(false)
    .addCommand(proposeCommand(io, setExitCode))
    .addCommand(approveCommand(io, setExitCode))
    .addCommand(showCommand(io))
    .addCommand(withdrawCommand(io))
    .addCommand(reportCommand(io));
}
