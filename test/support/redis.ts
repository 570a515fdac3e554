/** A redis-server of the test's own, on a free port of this machine, without files. */
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  /** An ordinary connection for the test's own looks and changes. */
  readonly admin: Redis;
  flush(): Promise<void>;
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
  const port = await freePort();
  const url = `redis://127.0.0.1:${port}`;
  let child = await launch(port, args);
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
    kill,
    async restart() {
      await kill();
      child = await launch(port, args);
      await admin.ping();
    },
    async stop() {
      admin.disconnect();
      await kill();
    },
  };
}

async function launch(port: number, args: readonly string[]): Promise<ChildProcess> {
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", [...settings, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  // The server must not outlive a test run that ends early.
  const reap = (): void => void child.kill("SIGKILL");
  process.once("exit", reap);
  child.once("exit", () => process.off("exit", reap));
  let output = "";
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.includes("Ready to accept connections")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`redis-server ended with ${String(code)}: ${output}`)));
  });
  child.stdout?.removeAllListeners("data").resume();
  return child;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
