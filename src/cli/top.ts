import { setTimeout as delay } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { Command } from "commander";
import type { RegistryConnection } from "../client/connection.js";
import type { Io } from "./io.js";
import { CommandError, line } from "./io.js";
import { opsBase } from "./ops.js";
import type { RegistryOptions } from "./options.js";
import { withConnection, withRegistry } from "./options.js";
import { frame } from "./top/frame.js";
import { Screen } from "./top/screen.js";
import { Source } from "./top/source.js";
import { WIDTH } from "./table.js";

interface TopOptions extends RegistryOptions {
  readonly ops?: string;
  readonly once?: boolean;
}

const EVERY_MS = 1_000;
/** Where the output is no terminal: the width of the other tables, and every row. */
const PIPE = { columns: WIDTH, rows: Number.POSITIVE_INFINITY };

export function topCommand(io: Io): Command {
  const command = new Command("top")
    .description("a live view: calls, revision, servers, leases, last changes; q ends it")
    .option("--ops <host:port>", "the ops listener (default: the registry's host, two above its port)")
    .option("--once", "print one frame and end");
  return withRegistry(command).action((options: TopOptions) =>
    withConnection(options, (registry, namespace) => {
      const base = opsBase(registry.target, options.ops);
      return options.once ? once(io, registry, namespace, base) : live(io, registry, namespace, base);
    }),
  );
}

/** Two readings of the metrics make rates. */
async function once(io: Io, registry: RegistryConnection, namespace: string, base: string): Promise<void> {
  const source = new Source(registry, namespace, base, io.ending);
  await source.refresh();
  if (source.trouble) throw source.trouble;
  await pause(io.ending);
  await source.refresh();
  const terminal = io.stdout as WriteStream;
  const { columns, rows } = terminal.isTTY ? terminal : PIPE;
  for (const { text } of frame(source.view(), columns, rows)) line(io.stdout, text);
}

async function live(io: Io, registry: RegistryConnection, namespace: string, base: string): Promise<void> {
  const terminal = io.stdout as WriteStream;
  if (!terminal.isTTY) throw new CommandError("The output is no terminal: use `toolcrib top --once`.", 2);
  const screen = new Screen(terminal);
  const done = new AbortController();
  const ending = AbortSignal.any([io.ending, screen.quit, done.signal]);
  const source = new Source(registry, namespace, base, ending);
  const paint = (): void => screen.paint(frame(source.view(), screen.width, screen.height));
  terminal.on("resize", paint);
  try {
    await Promise.race([source.follow(), paintEverySecond(source, paint, ending)]);
  } finally {
    done.abort();
    terminal.off("resize", paint);
    screen.close();
  }
}

async function paintEverySecond(source: Source, paint: () => void, ending: AbortSignal): Promise<void> {
  while (!ending.aborted) {
    await source.refresh();
    if (ending.aborted) return;
    paint();
    await pause(ending);
  }
}

async function pause(ending: AbortSignal): Promise<void> {
  await delay(EVERY_MS, undefined, { signal: ending }).catch(() => undefined);
}
