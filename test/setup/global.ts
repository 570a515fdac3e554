/** Once before all tests: builds `dist` when it is older than the sources, and looks for redis-server. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** Path of redis-server; empty when there is none, and tests that need it are skipped by name. */
    redisServer: string;
  }
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export default function setup(project: TestProject): void {
  if (needsDist(process.argv)) buildWhenStale();
  project.provide("redisServer", findRedis());
}

/** Tests in these folders start no registry as a process, so a run of them alone needs no build. */
const IN_PROCESS = ["test/unit", "test/conformance", "test/validators", "test/model"];

function needsDist(argv: readonly string[]): boolean {
  const named = argv.filter((a) => a.startsWith("test/") && !a.endsWith("vitest.config.ts"));
  return named.length === 0 || named.some((a) => !IN_PROCESS.some((folder) => a.startsWith(folder)));
}

function newest(directory: string): number {
  const entries = readdirSync(directory, { withFileTypes: true, recursive: true });
  const times = entries.filter((e) => e.isFile()).map((e) => statSync(join(e.parentPath, e.name)).mtimeMs);
  return Math.max(0, ...times);
}

function buildWhenStale(): void {
  const stamp = join(ROOT, "dist/.built");
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= newest(join(ROOT, "src"))) return;
  const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: ROOT, encoding: "utf8", stdio: "pipe" });
  if (built.status === 0) return;
  const text = `dist could not be built; tests that start the built registry see an old one or none:\n${built.stdout}${built.stderr}`;
  if (inCi()) throw new Error(text);
  process.stderr.write(`${text}\n`);
}

function findRedis(): string {
  const found = onPath() || installed();
  if (found === "") {
    const text =
      "redis-server was found neither on PATH nor by apt-get; tests that need it are skipped. Install redis-server to run them.";
    if (inCi()) throw new Error(text);
    process.stderr.write(`${text}\n`);
  }
  return found;
}

function onPath(): string {
  const found = spawnSync("sh", ["-c", "command -v redis-server"], { encoding: "utf8" });
  return found.status === 0 ? found.stdout.trim() : "";
}

function installed(): string {
  if (process.getuid?.() !== 0 || spawnSync("sh", ["-c", "command -v apt-get"]).status !== 0) return "";
  process.stderr.write("Installing redis-server by apt-get, for the tests of the Redis store.\n");
  const script = "apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server";
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync("sh", ["-c", script], { env, stdio: ["ignore", "ignore", "inherit"], timeout: 300_000 });
  return onPath();
}

function inCi(): boolean {
  return process.env["CI"] === "true";
}
