import { Command } from "commander";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withRegistry } from "./options.js";

export function deregisterCommand(io: Io): Command {
  const command = new Command("deregister")
    .description("remove a server with all of its instances, one declared tool, or one lease")
    .argument("[what]", "a server_id, or a tool_id such as memory/create_entities")
    .option("--lease <id>", "end this lease only");
  return withRegistry(command).action((what: string | undefined, options: RegistryOptions & { lease?: string }) =>
    withConnection(options, async (registry, namespace) => {
      const target = targetOf(what, options.lease);
      const { removed } = await registry.deregister({ namespace, target });
      const name = options.lease ? `lease ${options.lease}` : what;
      line(io.stdout, removed ? `Removed ${name}.` : `There was no ${name}: nothing to remove.`);
    }),
  );
}

function targetOf(what: string | undefined, lease: string | undefined) {
  if (lease !== undefined && what === undefined) return { case: "leaseId", value: lease } as const;
  if (lease !== undefined) throw new CommandError("Give either what to remove or --lease, not both.", 2);
  if (what === undefined) throw new CommandError("Say what to remove: a server_id, a tool_id, or --lease <id>.", 2);
  return what.includes("/") ? ({ case: "toolId", value: what } as const) : ({ case: "serverId", value: what } as const);
}
