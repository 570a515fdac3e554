/** The options by which a server is looked after in its own way. */
import type { Command } from "commander";
import { InvalidArgumentError } from "commander";
import type { ProbeOptions } from "../client/probe.js";
import { CommandError } from "./io.js";
import { readDuration } from "./options.js";

/** As commander reads them. */
export interface ProbeFlags {
  readonly probeInterval?: number;
  readonly probeTimeout?: number;
  readonly probeFall?: number;
  readonly probeRise?: number;
  /** False by `--no-probe`. */
  readonly probe: boolean;
}

export function withProbe(command: Command): Command {
  return command
    .option("--probe-interval <duration>", "time between two probes while it is well, 2s to 1h", readDuration)
    .option("--probe-timeout <duration>", "how long a probe may take, 100ms to 30s", readDuration)
    .option("--probe-fall <number>", "failed probes in a row until its tools are unavailable, 1 to 10", readCount)
    .option("--probe-rise <number>", "good probes in a row until they are available again, 1 to 10", readCount)
    .option("--no-probe", "never probe it: its tools are available for as long as it is registered");
}

/** Undefined when nothing was asked for. Throws a CommandError where the options contradict each other. */
export function probeOf(flags: ProbeFlags): ProbeOptions | undefined {
  const { probeInterval: intervalMs, probeTimeout: timeoutMs, probeFall: fall, probeRise: rise, probe } = flags;
  const given = [intervalMs, timeoutMs, fall, rise].some((value) => value !== undefined);
  if (!probe && given)
    throw new CommandError("--no-probe means that it is never probed: leave out the other --probe options, or --no-probe.", 2);
  if (intervalMs !== undefined && timeoutMs !== undefined && timeoutMs > intervalMs)
    throw new CommandError("--probe-timeout is longer than --probe-interval: a probe has to end before the next one.", 2);
  const asked = { intervalMs, timeoutMs, fall, rise, off: probe ? undefined : true };
  return Object.values(asked).some((value) => value !== undefined) ? asked : undefined;
}

function readCount(text: string): number {
  if (!/^\d{1,2}$/.test(text) || Number(text) < 1) throw new InvalidArgumentError("a number from 1 to 10.");
  return Number(text);
}
