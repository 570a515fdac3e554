import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";

/**
 * `read` returns when this process writes the word, or when it dies and the kernel closes the pipe. In the second case
 * the group is ended; a group whose processes are gone already is not there to be hit.
 */
const SCRIPT = `read -r word; [ "$word" = release ] && exit 0
kill -TERM -"$1" 2>/dev/null; sleep 2; kill -KILL -"$1" 2>/dev/null`;

/** Ends a process group when this process dies, even by SIGKILL. On Windows there is none; a closed input has to do. */
export class Watchdog {
  readonly #process: ChildProcess | undefined;

  constructor(processGroup: number) {
    if (process.platform === "win32") return;
    // A session of its own: a Ctrl-C at the terminal must not end the watchdog before it has done its work.
    this.#process = spawn("/bin/sh", ["-c", SCRIPT, "toolcrib-watchdog", String(processGroup)], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    this.#process.on("error", () => undefined); // Without a shell the closed input still ends most servers.
    this.#process.stdin?.on("error", () => undefined);
    this.#process.unref();
  }

  /** The group ended in order: the watchdog has nothing to do. */
  release(): void {
    this.#process?.stdin?.end("release\n");
  }
}
