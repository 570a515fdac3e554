import type { ChildProcessByStdio } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { LIMITS } from "../../domain/limits.js";
import { Watchdog } from "./watchdog.js";

/** How a child ended: its exit code, or 128 + the signal's number, as shells say it. */
export interface ChildEnd {
  readonly code: number;
  /** A clause such as `exited with code 3`. */
  readonly how: string;
}

export interface ChildHandlers {
  /** One line of standard output, without its line break, byte for byte. */
  onLine(line: Buffer): void;
  /** The child closed its output: nothing more will come, even if it goes on running. */
  onOutputEnd(): void;
  /** A line passed the limit: the child cannot be understood any more. */
  onOverflow(bytes: number): void;
}

/** Where and with which variables a child runs; by default as this process does. */
export interface ChildPlace {
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
}

/** After closing its input a well-behaved MCP server ends by itself within this time. */
const POLITE_MS = 500;
const TERM_GRACE_MS = 3_000;
const POLL_MS = 25;

/** The command cannot be run at all. */
export class SpawnError extends Error {
  constructor(command: string, cause: NodeJS.ErrnoException) {
    const why =
      cause.code === "ENOENT" ? "no such command" : cause.code === "EACCES" ? "not executable" : cause.message;
    super(`cannot run ${command}: ${why}`, { cause });
    this.name = "SpawnError";
  }
}

/**
 * A stdio MCP server as a process group of its own, which never outlives this process: stop() ends all of it, and a
 * watchdog does when this process is killed without being asked.
 */
export class Child {
  /** Resolves when the process ended; never rejects. */
  readonly ended: Promise<ChildEnd>;
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #pid: number;
  readonly #watchdog: Watchdog;
  #alive = true;
  #stopping: Promise<ChildEnd> | undefined;

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>, pid: number, handlers: ChildHandlers) {
    this.#process = child;
    this.#pid = pid;
    this.#watchdog = new Watchdog(pid);
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        this.#alive = false;
        resolve(endOf(code, signal));
      });
    });
    readLines(child.stdout, handlers);
    // A child that closed its input says so by ending; the write that failed has nobody to tell.
    child.stdin.on("error", () => undefined);
  }

  /** Rejects with SpawnError when the command cannot be run. */
  static async spawn(
    command: string,
    args: readonly string[],
    handlers: ChildHandlers,
    place: ChildPlace = {},
  ): Promise<Child> {
    const child = spawn(command, args, {
      env: place.env,
      cwd: place.cwd,
      stdio: ["pipe", "pipe", "inherit"],
      detached: process.platform !== "win32",
    });
    try {
      await once(child, "spawn");
    } catch (error) {
      throw new SpawnError(command, error as NodeJS.ErrnoException);
    }
    return new Child(child, child.pid ?? 0, handlers);
  }

  /** Sends one message; a line break inside the JSON becomes a space, which only white space can hold. */
  send(message: Buffer): void {
    if (!this.#process.stdin.writable) return;
    const line = Buffer.alloc(message.length + 1, "\n");
    for (let i = 0; i < message.length; i++) {
      const byte = message[i] ?? 0;
      line[i] = byte === 0x0a || byte === 0x0d ? 0x20 : byte;
    }
    this.#process.stdin.write(line);
  }

  /** Ends the whole process group: input closed, then SIGTERM, then SIGKILL. */
  stop(): Promise<ChildEnd> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<ChildEnd> {
    this.#process.stdin.end();
    if (!(await this.#goneWithin(POLITE_MS))) {
      this.#signal("SIGTERM");
      if (!(await this.#goneWithin(TERM_GRACE_MS))) this.#signal("SIGKILL");
    }
    const end = await this.ended;
    this.#watchdog.release();
    return end;
  }

  async #goneWithin(ms: number): Promise<boolean> {
    const deadline = performance.now() + ms;
    while (this.#alive || this.#groupExists()) {
      if (performance.now() >= deadline) return false;
      await delay(POLL_MS);
    }
    return true;
  }

  #groupExists(): boolean {
    return process.platform !== "win32" && this.#signal(0);
  }

  /** Whether there was anybody to hear it. */
  #signal(signal: NodeJS.Signals | 0): boolean {
    try {
      process.kill(process.platform === "win32" ? this.#pid : -this.#pid, signal);
      return true;
    } catch {
      return false;
    }
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): ChildEnd {
  if (code !== null) return { code, how: `exited with code ${code}` };
  return { code: 128 + (signal ? constants.signals[signal] : 0), how: `was ended by ${signal ?? "a signal"}` };
}

function readLines(stdout: Readable, handlers: ChildHandlers): void {
  let parts: Buffer[] = [];
  let held = 0;
  stdout.once("end", () => handlers.onOutputEnd());
  stdout.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
      parts.push(chunk.subarray(from, at));
      const line = parts.length === 1 ? chunk.subarray(from, at) : Buffer.concat(parts);
      parts = [];
      held = 0;
      from = at + 1;
      handlers.onLine(line.at(-1) === 0x0d ? line.subarray(0, -1) : line);
    }
    if (from === chunk.length) return;
    parts.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > LIMITS.upstreamBytes) {
      handlers.onOverflow(held);
      parts = [];
      held = 0;
    }
  });
}
