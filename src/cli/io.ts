import type { Writable } from "node:stream";

/** What a command may touch of the process. */
export interface Io {
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by SIGINT, SIGTERM or SIGHUP: end in order. */
  readonly ending: AbortSignal;
}

/** A command that ends with a sentence for its user. Exit code 1; 2 where the command line itself is wrong. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
    this.name = "CommandError";
  }
}

export function line(stream: Writable, text = ""): void {
  stream.write(`${text}\n`);
}

export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
