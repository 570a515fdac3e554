import { type Command, InvalidArgumentError } from "commander";
import { RegistryConnection } from "../client/connection.js";
import { registryTarget } from "../client/environment.js";
import { RegistryError } from "../client/registry-error.js";
import { explainNoAnswer } from "./doctor/connection.js";
import { isRefused, isUnanswered } from "./failure.js";
import { CommandError } from "./io.js";

/** Options of every command that speaks to a registry. */
export interface RegistryOptions {
  readonly registry?: string;
  readonly namespace?: string;
}

export function withRegistry(command: Command): Command {
  return command
    .option("--registry <address>", "the registry, as host:port (default: $TOOLCRIB_URL, else 127.0.0.1:7850)")
    .option("--namespace <name>", "the tenant (default: default)");
}

export function withJson(command: Command): Command {
  return command.option("--json", "print JSON for programs");
}

/** For options that may be given several times or as `a,b`. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [
    ...before,
    ...value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== ""),
  ];
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const LONGEST_MS = 24 * 3_600_000;

/** `500ms`, `90s`, `2m`, `1h` → ms. */
export function readDuration(text: string): number {
  const [, amount, unit = ""] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(amount) * (UNIT_MS[unit] ?? Number.NaN);
  if (!(ms > 0 && ms <= LONGEST_MS)) {
    throw new InvalidArgumentError("a duration is a number and its unit, such as 500ms, 90s or 2m, at most 24h.");
  }
  return ms;
}

/**
 * Runs with a connection that is closed afterwards. Where something listens at its address and no call gets through, the
 * error says what that is.
 */
export async function withConnection<T>(
  options: RegistryOptions,
  run: (registry: RegistryConnection, namespace: string) => Promise<T>,
): Promise<T> {
  const registry = new RegistryConnection(registryTarget(options.registry));
  try {
    return await run(registry, options.namespace ?? "");
  } catch (error) {
    if (!(error instanceof RegistryError) || !isUnanswered(error) || isRefused(error)) throw error;
    const { text, todo } = await explainNoAnswer(registry.target.address, error);
    throw new CommandError(`${text}\n→ ${todo ?? "`toolcrib doctor` says more"}`, 1);
  } finally {
    registry.close();
  }
}
