import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import { Follower } from "./follow.js";
import type { Io } from "./io.js";
import { line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { collect, withConnection, withJson, withRegistry } from "./options.js";
import { grouped } from "./table.js";
import { eventLines } from "./watch-lines.js";

interface WatchOptions extends RegistryOptions {
  readonly tag?: string[];
  readonly server?: string[];
  readonly prefix?: string;
  readonly json?: boolean;
}

export function watchCommand(io: Io): Command {
  const command = new Command("watch")
    .description("print every change of the list as it happens")
    .option("--tag <tag>", "only tools with every one of these tags", collect)
    .option("--server <id>", "only tools of these servers", collect)
    .option("--prefix <text>", "only tools whose name begins like this");
  return withJson(withRegistry(command)).action((options: WatchOptions) =>
    withConnection(options, (registry, namespace) => watch(io, registry, namespace, options)),
  );
}

function watch(io: Io, registry: RegistryConnection, namespace: string, options: WatchOptions): Promise<void> {
  const say = (text: string): void => line(io.stderr, text);
  const filter = { tagsAll: options.tag ?? [], serverIds: options.server ?? [], namePrefix: options.prefix ?? "" };
  const follower = new Follower(
    registry,
    { namespace, filter },
    {
      onSnapshot: (tools) => say(`watching ${grouped(tools)} tools`),
      onChange(parts) {
        for (const part of parts) for (const text of eventLines(part, options.json === true)) line(io.stdout, text);
      },
      onTrouble(trouble, error) {
        if (trouble === "away") say(`${error.message}; trying again`);
        else say("changes were missed, and the list was read again: compare it with `toolcrib ls`");
      },
      onRecovery: () => say("connected again"),
    },
  );
  return follower.run(io.ending);
}
