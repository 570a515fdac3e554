/** Servers under test as processes of their own, each ended when its bench ends. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const START_MS = 30_000;

/** As `npm start` has them; both sides of a comparison get them. */
const NODE_FLAGS = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"))
  .scripts.start.split(" ")
  .filter((word) => word.startsWith("--"));

/** Kernel ticks of a second, in which /proc counts CPU time; 100 on every Linux of today. */
const TICKS = 100;

/** Things to undo, last first. */
export class Scope {
  #undo = [];

  defer(undo) {
    this.#undo.push(undo);
  }

  async close() {
    for (const undo of this.#undo.reverse()) await undo();
    this.#undo = [];
  }

  folder() {
    const path = mkdtempSync(join(tmpdir(), "toolcrib-bench-"));
    this.defer(() => rmSync(path, { recursive: true, force: true }));
    return path;
  }
}

export function onPath(command) {
  return spawnSync("sh", ["-c", `command -v ${command}`]).status === 0;
}

/** Starts a program and waits for a line of its output. `stop` ends it with SIGTERM and waits. */
async function start(scope, command, args, line) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  let stopped = false;
  const stop = async () => {
    if (!stopped && child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    stopped = true;
    await exited;
  };
  scope.defer(stop);
  let text = "";
  const found = await new Promise((resolve, reject) => {
    const give = (why) => reject(new Error(`${command} ${args[0]} ${why}:\n${text}`));
    const timer = setTimeout(() => give(`did not start within ${START_MS} ms`), START_MS);
    const look = (chunk) => {
      // Only the start is of interest; the pipes are read on so that the program never waits for them.
      if (text.length < 100_000) text += chunk.toString();
      const match = line.exec(text);
      if (!match) return;
      clearTimeout(timer);
      resolve(match);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    exited.then((code) => {
      clearTimeout(timer);
      give(`ended with code ${code}`);
    });
  });
  return { found, stop, cpuMs: () => cpuMs(child.pid) };
}

/** CPU time that a process has used so far, ms; undefined where there is no /proc. */
function cpuMs(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS;
  } catch {
    return undefined;
  }
}

/** A registry on free ports, ready. `startMs` is the time from spawn to ready. */
export async function startRegistry(scope, { store = "memory", dataDir = scope.folder(), args = [] } = {}) {
  const began = performance.now();
  const all = ["--grpc-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0", "--http-address", "off", "--store", store, "--data-dir", dataDir, ...args];
  const { found, stop, cpuMs } = await start(scope, process.execPath, [...NODE_FLAGS, join(ROOT, "dist/main.js"), ...all], /gRPC (\S+), ops (\S+), store/);
  const [, address, ops] = found;
  while (!(await isReady(ops))) await new Promise((resolve) => setTimeout(resolve, 2));
  return { address, ops, stop, cpuMs, startMs: performance.now() - began };
}

async function isReady(ops) {
  const answer = await fetch(`${ops}/readyz`, { headers: { connection: "close" } });
  await answer.arrayBuffer();
  return answer.status === 200;
}

/** The bare pass-through. `unaryBytes` is the length of each unary answer; `event` what it writes to open streams. */
export async function startPassThrough(scope, { unaryBytes = 0, event = Buffer.alloc(0) } = {}) {
  const script = fileURLToPath(new URL("../passthrough-server.mjs", import.meta.url));
  const { found, stop, cpuMs } = await start(scope, process.execPath, [...NODE_FLAGS, script, String(unaryBytes), event.toString("base64")], /at (\S+)/);
  return { address: found[1], stop, cpuMs };
}

/** A Redis that keeps nothing. Undefined when there is none to start. */
export async function startRedis(scope) {
  if (!onPath("redis-server")) return undefined;
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", scope.folder()];
  await start(scope, "redis-server", args, /Ready to accept connections/);
  return `redis://127.0.0.1:${port}`;
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
