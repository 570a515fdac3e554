/** A redis-server of the test's own, on a free port of this machine, without files. */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort } from "./ports.js";

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** An ordinary connection for the test's own looks and changes. */
  readonly admin: Redis;
  flush(): Promise<void>;
  /** It keeps its connections and answers nothing, until `resume`. */
  pause(): void;
  resume(): void;
  /** As a crash: SIGKILL. Nothing is kept. */
  kill(): Promise<void>;
  /** Starts again, empty, on the same port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Why there is no redis-server, or undefined when there is one. */
export function redisMissing(): string | undefined {
  const found = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  if (found.status === 0) return undefined;
  return "redis-server is not on the PATH";
}

export async function startRedis(...args: string[]): Promise<TestRedis> {
  // A replica's first copy is a file, and a server started beside one would load it.
  const folder = await mkdtemp(join(tmpdir(), "toolcrib-redis-"));
  const { port, child: first } = await launchAnywhere(folder, args);
  const url = `redis://127.0.0.1:${port}`;
  let child = first;
  const admin = new Redis(url, { protocol: 2, maxRetriesPerRequest: 50, retryStrategy: () => 50 });
  admin.on("error", () => {});
  await admin.ping();
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return {
    url,
    port,
    admin,
    async flush() {
      await admin.flushall();
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    kill,
    async restart() {
      await kill();
      await rm(join(folder, "dump.rdb"), { force: true });
      child = await launch(port, folder, args);
      await admin.ping();
    },
    async stop() {
      admin.disconnect();
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Another process may have taken the port since it was found free. */
async function launchAnywhere(folder: string, args: readonly string[]): Promise<{ port: number; child: ChildProcess }> {
  for (let left = 3; ; left--) {
    const port = await freePort();
    try {
      return { port, child: await launch(port, folder, [...args]) };
    } catch (error) {
      if (left === 0 || !String(error).includes("in use")) throw error;
    }
  }
}

function launch(port: number, cwd: string, args: readonly string[]): Promise<ChildProcess> {
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  return spawnRedis(cwd, [...settings, ...args], "Ready to accept connections");
}

/** Answers once it has printed `ready`. It ends with this process at the latest. */
export async function spawnRedis(cwd: string, args: readonly string[], ready: string): Promise<ChildProcess> {
  const child = spawn("redis-server", args, { cwd, stdio: ["ignore", "pipe", "inherit"] });
  // The server must not outlive this process, however it ends: the guard's input ends with it.
  const guard = spawn("sh", ["-c", 'read _; kill -9 "$0"', String(child.pid)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  child.once("exit", () => guard.kill("SIGKILL"));
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes(ready)) resolve();
    });
    child.once("exit", (code) => reject(new Error(`redis-server ended with ${String(code)}: ${output}`)));
  });
  child.stdout?.removeAllListeners("data").resume();
  return child;
}

