import { Command, InvalidArgumentError } from "commander";
import { registryTarget } from "../client/environment.js";
import type { RegistrationEvent } from "../client/events.js";
import { describeRejected } from "../client/events.js";
import { declareTools } from "../client/offer.js";
import type { Registration } from "../client/registration.js";
import { keepRegistered } from "../client/keep.js";
import type { Target } from "../client/target.js";
import { explain } from "./failure.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withRegistry } from "./options.js";
import { grouped } from "./table.js";
import { SpawnError } from "./wrap/child.js";
import { WrapError, Wrapped } from "./wrap/wrapped.js";

interface WrapOptions extends RegistryOptions {
  readonly id: string;
  readonly title?: string;
  readonly tag?: string[];
  readonly advertise?: string;
  readonly port?: number;
}

export function wrapCommand(io: Io, version: string, setExitCode: (code: number) => void): Command {
  const command = new Command("wrap")
    .description("run a stdio MCP server, serve it over HTTP on this machine and keep its tools registered")
    .requiredOption("--id <server_id>", "[a-z0-9] then [a-z0-9._-], at most 63 characters")
    .option("--title <text>", "a display name")
    .option("--tag <tag>", "a tag for all of its tools", collect)
    .option("--port <number>", "port of the HTTP endpoint (default: a free one)", readPort)
    .option("--advertise <url>", "the URL at which others reach the endpoint, where a proxy passes it on")
    .argument("<command...>", "after --, the command that starts the server");
  return withRegistry(command).action(async (words: string[], options: WrapOptions) => {
    setExitCode(await wrap(io, version, words, options));
  });
}

/** Resolves with the exit code: the child's own, or 0 when it was ended from here. */
async function wrap(io: Io, version: string, words: readonly string[], options: WrapOptions): Promise<number> {
  const target = registryTarget(options.registry);
  const say = (text: string): void => line(io.stderr, `toolcrib wrap: ${text}`);
  let registration: Registration | undefined;
  const wrapped = await start(words, options, version, say, io.ending, () => registration?.changed());
  if (!wrapped) return 0;
  say(`${options.id} is served at ${wrapped.url}`);
  registration = keepRegistered(target, async () => declareTools(await wrapped.listTools(), "inline"), {
    serverId: options.id,
    title: options.title ?? "",
    tags: options.tag ?? [],
    namespace: options.namespace ?? "",
    endpoint: endpointFor(target, wrapped.url, options.advertise),
    // Here the order of leaving is ours: the registry first, then the server.
    deregisterOnExit: false,
    onEvent: narrator(options.id, target, say),
  });
  const end = await Promise.race([wrapped.ended, aborted(io.ending)]);
  if (end) say(`the server ${end.how}`);
  await registration.close();
  await wrapped.stop();
  return end?.code ?? 0;
}

/** What the registry may dial: loopback means this machine to it only if it runs here. Empty: the definitions suffice. */
export function endpointFor(target: Target, url: string, advertised: string | undefined): string {
  return advertised ?? (target.loopback ? url : "");
}

/** Undefined when it was ended before it was up. */
async function start(
  words: readonly string[],
  options: WrapOptions,
  version: string,
  say: (text: string) => void,
  ending: AbortSignal,
  onToolsChanged: () => void,
): Promise<Wrapped | undefined> {
  const [command = "", ...args] = words;
  const alsoAllowed = options.advertise === undefined ? undefined : hostOf(options.advertise);
  const client = { name: "toolcrib-wrap", version };
  try {
    const port = options.port ?? 0;
    return await Wrapped.start({ command, args, port, alsoAllowed, client, ending, onToolsChanged, onOddity: say });
  } catch (error) {
    if (ending.aborted) return undefined;
    if (error instanceof WrapError) throw new CommandError(error.message, error.exitCode);
    if (error instanceof SpawnError) throw new CommandError(error.message);
    throw error;
  }
}

/** Says what changes, once: a registry that stays away is not worth a line a second. */
function narrator(id: string, target: Target, say: (text: string) => void): (event: RegistrationEvent) => void {
  let away = false;
  let listed = -1;
  return (event) => {
    switch (event.type) {
      case "registered":
        if (away || event.listed !== listed) {
          say(`${grouped(event.listed)} tools of ${id} are registered at ${target.address}`);
        }
        if (event.rejected.length > 0) say(describeRejected(id, event.rejected));
        away = false;
        listed = event.listed;
        return;
      case "retrying":
        if (!away) say(`${event.error.message}; trying again until it works`);
        away = true;
        return;
      case "refused":
        for (const text of explain(event.error).lines) say(text);
        return;
      case "superseded":
        return say("a newer instance registered other tools; its tools are the server's now");
      case "deregistered":
        return say(`${id} was deregistered at the registry: it stays served here, and out of the registry`);
      case "closed":
        if (!event.removed) say("the registry did not hear that the server left; its lease ends by itself");
        return;
      case "again":
    }
  };
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
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
