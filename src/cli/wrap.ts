import { Command, InvalidArgumentError } from "commander";
import { registryTarget } from "../client/environment.js";
import { nameReasons } from "../domain/admission/names.js";
import type { Io } from "./io.js";
import { CommandError, aborted, line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, readDuration, withRegistry } from "./options.js";
import { SpawnError } from "./wrap/child.js";
import type { KeepSettings } from "./wrap/keep.js";
import { KeptServer, strangersEnvironment } from "./wrap/keep.js";
import { WrapError } from "./wrap/wrapped.js";

interface WrapOptions extends RegistryOptions {
  readonly id: string;
  readonly title?: string;
  readonly tag?: string[];
  readonly advertise?: string;
  readonly port?: number;
  readonly startTimeout?: number;
  readonly credential?: string;
}

export function wrapCommand(io: Io, version: string, setExitCode: (code: number) => void): Command {
  const command = new Command("wrap")
    .description("run a stdio MCP server, serve it over HTTP on this machine and keep its tools registered")
    .requiredOption("--id <server_id>", "[a-z0-9] then [a-z0-9._-], at most 63 characters")
    .option("--title <text>", "a display name")
    .option("--tag <tag>", "a tag for all of its tools", collect)
    .option("--port <number>", "port of the HTTP endpoint (default: a free one)", readPort)
    .option("--advertise <url>", "the URL at which others reach the endpoint, where a proxy passes it on")
    .option("--credential <name>", "a credential of the registry's --upstream-credentials file, shown at that URL")
    .option("--start-timeout <duration>", "how long the server may take to its first answer (default: 60s)", readDuration)
    .argument("<command...>", "after --, the command that starts the server");
  return withRegistry(command).action(async (words: string[], options: WrapOptions) => {
    setExitCode(await wrap(io, version, words, options));
  });
}

/** Resolves with the exit code: the child's own, or 0 when it was ended from here. */
async function wrap(io: Io, version: string, words: readonly string[], options: WrapOptions): Promise<number> {
  const [command = "", ...args] = words;
  const wrong = nameReasons("server_id", options.id);
  if (wrong.length > 0) throw new CommandError(wrong.map((reason) => `--id ${reason}`).join("\n"), 2);
  const kept = await start(io.ending, {
    target: registryTarget(options.registry),
    serverId: options.id,
    title: options.title ?? "",
    tags: options.tag ?? [],
    namespace: options.namespace ?? "",
    command,
    args,
    env: strangersEnvironment(io.env),
    port: options.port ?? 0,
    startTimeoutMs: options.startTimeout,
    advertise: options.advertise,
    credential: options.credential,
    alsoAllowed: options.advertise === undefined ? undefined : hostOf(options.advertise),
    client: { name: "toolcrib-wrap", version },
    ending: io.ending,
    say: (text) => line(io.stderr, `toolcrib wrap: ${text}`),
  });
  if (!kept) return 0;
  const end = await Promise.race([kept.ended, aborted(io.ending)]);
  await kept.close();
  return end?.code ?? 0;
}

/** Undefined when it was ended before it was up. */
async function start(ending: AbortSignal, settings: KeepSettings): Promise<KeptServer | undefined> {
  try {
    return await KeptServer.start(settings);
  } catch (error) {
    if (ending.aborted) return undefined;
    if (error instanceof WrapError) throw new CommandError(error.message, error.exitCode);
    if (error instanceof SpawnError) throw new CommandError(error.message);
    throw error;
  }
}

function hostOf(url: string): string {
  try {
    return new URL(url).hostname;
  } catch {
    throw new CommandError(`--advertise "${url}" is not a URL, such as https://tools.example.com/memory/mcp`, 2);
  }
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("a port is a number from 0 to 65535.");
  return port;
}
