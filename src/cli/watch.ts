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
    sayTrouble(follower, () => isStoreAway(registry, namespace), say);
  };
  return follow(registry, { namespace, filter }, listen, io.ending);
}

type Trouble = "none" | "away" | "store" | "unsure";

/** What is said when it is over. */
const OVER: Readonly<Record<Exclude<Trouble, "none">, string>> = {
  away: "connected again",
  store: "the registry reaches its store again: up to date again",
  unsure: "up to date again",
};
const NO_STORE = "the registry cannot reach its store: this list is the last that it knows; trying again";
const ASK_MS = 3_000;

/**
 * Says each trouble once, and its end. A registry without its store vouches for nothing, so its streams fall silent:
 * `storeAway` asks whether that is why.
 */
export function sayTrouble(
  follower: Pick<Follower, "on">,
  storeAway: () => Promise<boolean>,
  say: (text: string) => void,
): void {
  let trouble: Trouble = "none";
  let turn = 0;
  const become = (next: Exclude<Trouble, "none">, text: string): void => {
    // What nobody is sure of says less than what was told before.
    if (next === trouble || (next === "unsure" && trouble !== "none")) return;
    trouble = next;
    say(text);
  };
  follower.on("state", (state) => {
    const mine = ++turn;
    if (state.kind === "live") {
      if (trouble !== "none") say(OVER[trouble]);
      trouble = "none";
    } else if (state.kind === "stale" && state.why === "registry") become("store", NO_STORE);
    else if (state.kind === "stale" && state.why === "disconnected") {
      become("away", `${state.error?.message ?? "the connection was lost"}; trying again`);
    } else if (state.kind === "stale" && (state.why === "silent" || state.why === "unconfirmed")) {
      const { why, error } = state;
      void storeAway().then((away) => {
        if (mine !== turn) return;
        if (away) become("store", NO_STORE);
        else if (why === "silent") become("away", `${error?.message ?? "nothing is heard"}; trying again`);
        else become("unsure", "the registry does not say that this is current: its store may be away");
      });
    }
  });
}

async function isStoreAway(registry: RegistryConnection, namespace: string): Promise<boolean> {
  try {
    return (await registry.listServers({ namespace, pageSize: 1 }, { timeoutMs: ASK_MS })).stale;
  } catch {
    return false; // It is not known; whoever asks says what else it knows.
  }
}
