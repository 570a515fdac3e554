/** One replica of the registry: a real process that is killed, frozen, ended and started again at the same address. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { sleep } from "./redis-side.js";

/** libfaketime of Debian; undefined where it is not installed, and then no clock is moved. */
export function clockLibrary(): string | undefined {
  const found = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"].map((folder) =>
    join(folder, "faketime/libfaketimeMT.so.1"),
  );
  return found.find((path) => existsSync(path));
}

export interface ReplicaOptions {
  readonly name: string;
  /** Where `dist` lies. */
  readonly root: string;
  /** For logs and the clock's file. */
  readonly folder: string;
  readonly store: string;
  readonly partitions: number;
  readonly clock: string | undefined;
}

const READY_MS = 60_000;

export class ReplicaProcess {
  readonly name: string;
  readonly #options: ReplicaOptions;
  readonly #grpc: number;
  readonly #ops: number;
  readonly #log: string;
  #child: ChildProcess | undefined;

  private constructor(options: ReplicaOptions, ports: readonly [number, number]) {
    this.name = options.name;
    this.#options = options;
    [this.#grpc, this.#ops] = ports;
    this.#log = join(options.folder, `replica-${options.name}.log`);
    this.moveClock(0);
  }

  static async create(options: ReplicaOptions): Promise<ReplicaProcess> {
    return new ReplicaProcess(options, [await steadyPort(), await steadyPort()]);
  }

  /** host:port of gRPC, the same for good. */
  get address(): string {
    return `127.0.0.1:${this.#grpc}`;
  }

  /** Resident, MiB; 0 where there is no /proc. */
  get memoryMb(): number {
    try {
      const text = readFileSync(`/proc/${this.#child?.pid ?? 0}/status`, "utf8");
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(text)?.[1] ?? 0) / 1_024);
    } catch {
      return 0;
    }
  }

  /** Started and ready. */
  async start(): Promise<void> {
    const { root, folder, name, store, partitions, clock } = this.#options;
    const args = [
      ...["--max-semi-space-size=64", "--max-old-space-size=512", join(root, "dist/main.js"), "--store", store, "--partitions", String(partitions)],
      ...["--grpc-address", this.address, "--ops-address", `127.0.0.1:${this.#ops}`, "--http-address", "off"],
      // Short, so that health takes part in a run of minutes.
      ...["--data-dir", join(folder, `data-${name}`), "--probe-interval", "2000", "--probe-timeout", "1000"],
    ];
    const log = openSync(this.#log, "a");
    const child = spawn(process.execPath, args, { stdio: ["ignore", log, log], env: { ...process.env, ...this.#clockEnvironment(clock) } });
    closeSync(log);
    guard(child);
    this.#child = child;
    const until = performance.now() + READY_MS;
    while (!(await this.ready())) {
      if (child.exitCode !== null) throw new Error(`replica ${name} ended with ${child.exitCode}; its log is ${this.#log}`);
      if (this.#child !== child) return;
      if (performance.now() > until) throw new Error(`replica ${name} was not ready within ${READY_MS} ms; its log is ${this.#log}`);
      await sleep(50);
    }
  }

  async ready(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.#ops}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
    return answer?.status === 200;
  }

  /** kill -9. */
  kill(): Promise<number | null> {
    return this.#end("SIGKILL");
  }

  /** SIGTERM; answers the exit code. */
  stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Whether it ended though nobody here ended it. */
  get died(): boolean {
    return this.#child !== undefined && this.#child.exitCode !== null;
  }

  /** By so many seconds from the machine's. */
  moveClock(seconds: number): void {
    writeFileSync(this.#clockFile, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  }

  get #clockFile(): string {
    return join(this.#options.folder, `clock-${this.name}`);
  }

  #clockEnvironment(library: string | undefined): Record<string, string> {
    if (library === undefined) return {};
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: this.#clockFile,
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      // Seconds until a change of the file is noticed.
      FAKETIME_CACHE_DURATION: "1",
    };
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null;
    const gone = once(child, "exit");
    child.kill("SIGCONT");
    child.kill(signal);
    const [code] = (await gone) as [number | null];
    return code;
  }
}

/** The process must not outlive this one, however this one ends: the guard's input ends with it. */
export function guard(child: ChildProcess): void {
  const sentry = spawn("sh", ["-c", 'read _; kill -9 "$0"', String(child.pid)], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  sentry.unref();
  child.once("exit", () => sentry.kill("SIGKILL"));
}

let next = 20_000 + (process.pid % 1_000) * 10;

/** Free, and below the ports that the system gives to outgoing connections: a replica that was killed finds it free again. */
async function steadyPort(): Promise<number> {
  for (; next < 32_000; next++) {
    const port = next++;
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw new Error("no port between 20000 and 32000 is free");
}
