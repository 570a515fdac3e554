/** A registry, gateways and MCP servers as processes of their own, for as long as a run lasts. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { RegistryConnection } from "../../src/client/connection.js";
import { parseTarget } from "../../src/client/target.js";
import type { Listing } from "./listings.js";

const READY_MS = 120_000;
/** Server processes that start at one time. */
const AT_ONCE = 4;
/** Written when it is up. */
const REGISTRY_UP = /gRPC (\S+), HTTP \S+, ops (\S+), store/;
const GATEWAY_UP = /MCP (\S+), registry/;

export class World {
  readonly #children: ChildProcess[] = [];
  /** Listing's id → URL; a server is started once. */
  readonly #urls = new Map<string, Promise<string>>();
  readonly registry: RegistryConnection;

  private constructor(
    readonly root: string,
    readonly address: string,
    private readonly ops: string,
    child: ChildProcess,
  ) {
    this.#children.push(child);
    this.registry = new RegistryConnection(parseTarget(address));
  }

  /** Built `dist` of `root`. */
  static async start(root: string): Promise<World> {
    const child = spawn(
      process.execPath,
      [
        `${root}/dist/main.js`,
        ...["--store", "memory", "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--ops-address", "127.0.0.1:0"],
        // The demo's own servers share the processors with the registry, which is no overload that it should shed.
        ...["--max-lateness", "0", "--log-level", "error"],
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const [, address = "", ops = ""] = await written(child, REGISTRY_UP);
    const world = new World(root, address, ops, child);
    await until(async () => (await fetch(`${ops}/readyz`)).ok, "the registry is ready");
    return world;
  }

  /** Where a script of this folder listens, with these arguments. */
  async serve(key: string, script: string, args: readonly string[]): Promise<string> {
    const known = this.#urls.get(key);
    if (known) return known;
    const child = spawn(process.execPath, [`${this.root}/test/demo/${script}`, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.#children.push(child);
    const url = written(child, /"url":"(\S+)"/).then(([, at = ""]) => at);
    this.#urls.set(key, url);
    return url;
  }

  /** Starts the servers of these listings, registers them, and waits until the gate holds all of their tools. Answers their URLs. */
  async offer(namespace: string, listings: readonly Listing[]): Promise<Map<string, string>> {
    const urls = new Map<string, string>();
    const left = [...listings];
    const lane = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift()) urls.set(next.id, await this.serve(next.id, "listing-server.mjs", [next.file]));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    for (const { id } of listings) await this.register(namespace, id, urls.get(id) ?? "");
    await this.complete(namespace, listings.reduce((sum, { tools }) => sum + tools.length, 0));
    return urls;
  }

  /** The registry lists the server itself. */
  async register(namespace: string, serverId: string, endpoint: string): Promise<void> {
    const request = { namespace, serverId, endpoint, retention: { case: "standing", value: true }, offer: { case: "introspect", value: {} } } as const;
    await this.registry.register(request, { timeoutMs: READY_MS });
  }

  async complete(namespace: string, tools: number): Promise<void> {
    await until(async () => (await this.registry.findTools({ namespace, intent: "anything" })).catalogueTools === tools, `${tools} tools are found`);
    // The gauges are looked at once a second.
    await sleep(1_500);
    await until(async () => /^toolcrib_gate_definitions_waiting 0$/m.test(await (await fetch(`${this.ops}/metrics`)).text()), "the gate has read all");
  }

  /** `toolcrib gateway` of one namespace. */
  async gateway(namespace: string): Promise<Gateway> {
    const args = ["gateway", "--registry", this.address, "--namespace", namespace, "--gateway-address", "127.0.0.1:0", "--log-level", "error"];
    const child = spawn(process.execPath, [`${this.root}/dist/cli/bin.js`, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    this.#children.push(child);
    const [, url = ""] = await written(child, GATEWAY_UP);
    const ready = new URL("/readyz", url);
    await until(async () => (await fetch(ready)).status !== 503, "the gateway knows its tools");
    return { url, stop: () => ended(child) };
  }

  async stop(): Promise<void> {
    this.registry.close();
    await Promise.all(this.#children.map(ended));
  }
}

export interface Gateway {
  /** The MCP endpoint. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Waits for a line that a process writes; what it writes later is read, too, so that it never blocks. */
async function written(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  if (!child.stdout) throw new Error("nothing of the process can be read");
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      const found = pattern.exec(line);
      if (found) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`a process ended with ${code} before it was up: ${child.spawnargs.join(" ")}`)));
  });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

/** Fails with the last error once it took too long. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, ms = READY_MS): Promise<void> {
  const last = performance.now() + ms;
  for (let error: unknown; ; await sleep(20)) {
    try {
      if (await holds()) return;
    } catch (caught) {
      error = caught;
    }
    if (performance.now() > last) throw new Error(`waited ${ms / 1_000} s in vain until ${what}`, { cause: error });
  }
}
