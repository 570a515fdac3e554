import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import type { Follower } from "../client/follower/follower.js";
import { follow } from "./follow.js";
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
  const listen = (follower: Follower): void => {
    follower.on("relist", () => say("changes were missed: the list is read again, and how it differs is told instead"));
    follower.on("change", (change) => {
      if (change.source !== "registry") say(`watching ${grouped(follower.stubs().length)} tools`);
      if (change.source === "snapshot") return;
      for (const text of eventLines(change, options.json === true)) line(io.stdout, text);
    });
    sayTrouble(follower, say);
  };
  return follow(registry, { namespace, filter }, listen, io.ending);
}

/** Each trouble once, and its end. */
function sayTrouble(follower: Follower, say: (text: string) => void): void {
  let trouble: "none" | "away" | "unsure" = "none";
  follower.on("state", (state) => {
    if (state.kind === "live") {
      if (trouble !== "none") say(trouble === "away" ? "connected again" : "up to date again");
      trouble = "none";
    } else if (state.kind === "stale" && (state.why === "disconnected" || state.why === "silent")) {
      if (trouble !== "away") say(`${state.error?.message ?? "the connection was lost"}; trying again`);
      trouble = "away";
    } else if (state.kind === "stale" && (state.why === "unconfirmed" || state.why === "registry")) {
      if (trouble === "none") say("the registry does not say that this is current: its store may be away");
      if (trouble === "none") trouble = "unsure";
    }
  });
}
