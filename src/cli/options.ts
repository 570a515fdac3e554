import type { Command } from "commander";
import { RegistryConnection } from "../client/connection.js";
import { registryTarget } from "../client/environment.js";

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

/** Runs with a connection that is closed afterwards. */
export async function withConnection<T>(
  options: RegistryOptions,
  run: (registry: RegistryConnection, namespace: string) => Promise<T>,
): Promise<T> {
  const registry = new RegistryConnection(registryTarget(options.registry));
  try {
    return await run(registry, options.namespace ?? "");
  } finally {
    registry.close();
  }
}
