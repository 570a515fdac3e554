/** The built command line as a process. */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const BIN = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

export interface Run {
  readonly process: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
}

/** Starts `toolcrib …`; it is killed when the test ends, if it still runs. */
export function toolcrib(args: readonly string[], env: Record<string, string> = {}): Run {
  const child = spawn(process.execPath, [BIN, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    err += chunk.toString();
  });
  const exit = once(child, "close") as Run["exit"];
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exit;
  });
  return { process: child, stdout: () => out, stderr: () => err, exit };
}

/** Runs to the end. */
export async function toolcribDone(args: readonly string[], env: Record<string, string> = {}) {
  const run = toolcrib(args, env);
  const [code] = await run.exit;
  return { code, stdout: run.stdout(), stderr: run.stderr() };
}

/** Pids of live processes whose command line holds the text. Linux. */
export function processesWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return false;
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").includes(text);
      } catch {
        return false; // It ended while we looked.
      }
    })
    .map(Number);
}
