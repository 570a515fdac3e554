#!/usr/bin/env node
import type { Sources } from "../config/config.js";
import { endWithNpx } from "./parent.js";
import { runCommand } from "./program.js";

const AGAIN_MS = 1_000;
const ENDINGS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** What main.ts exports for this file; composing the registry is its business alone, and costs nothing here until it is asked for. */
interface Main {
  serve(sources: Sources): Promise<number>;
}

async function main(argv: readonly string[]): Promise<void> {
  const [first, ...rest] = argv;
  if (first === "serve") return startRegistry(rest);
  const ours =
    first === undefined ? false : !first.startsWith("-") || ["-h", "--help", "-V", "--version"].includes(first);
  if (!ours) return startRegistry(argv);
  const ending = new AbortController();
  let askedAt = 0;
  for (const signal of ENDINGS) {
    process.on(signal, () => {
      if (!ending.signal.aborted) askedAt = performance.now();
      // Asked again, the user does not want to wait; what is left to end ends by its watchdog. One Ctrl-C can arrive twice,
      // from the terminal and from npx, so the second asking has to come later.
      else if (performance.now() - askedAt > AGAIN_MS) process.exit(130);
      ending.abort();
    });
  }
  // A reader such as `head` that has seen enough closes the pipe: that is an end, not an error.
  process.stdout.on("error", () => process.exit(0));
  process.exitCode = await runCommand(argv, {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    ending: ending.signal,
  });
  // As for the registry: nothing that lingers may hold a gateway that was stopped.
  if (first === "gateway") process.exit();
}

async function startRegistry(argv: readonly string[]): Promise<void> {
  const { serve } = (await import(new URL("../main.js", import.meta.url).href)) as Main;
  // As when main.ts is run itself: nothing that lingers may hold a stopped registry.
  process.exit(await serve({ argv, env: process.env }));
}

endWithNpx(process.env);
await main(process.argv.slice(2));
