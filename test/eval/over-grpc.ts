import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { RegistryConnection } from "../../src/client/connection.js";
import { RegistryError } from "../../src/client/registry-error.js";
import { Reason_Kind, type RankedTool } from "../../src/gen/toolcrib/v1/gate_service_pb.js";
import type { Finder } from "./finder.js";
import type { RetrievalSet, SetTool } from "./sets.js";

/** What FindTools answers at most; a right tool further down counts as not found. */
const TOP = 50;
const ANSWERED = 5;
const READY_MS = 60_000;

/** The tools of a set in a registry that runs by itself, asked and told over gRPC as an agent does. */
export async function overGrpc(set: RetrievalSet, root: string): Promise<Finder> {
  const [grpc, ops] = await Promise.all([freePort(), freePort()]);
  const child = spawn(
    process.execPath,
    [`${root}/dist/main.js`, "--store", "memory", "--http-address", "off", "--grpc-address", `127.0.0.1:${grpc}`, "--ops-address", `127.0.0.1:${ops}`, "--log-level", "error", "--max-lateness", "0", "--report-rate", "1000000"],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const registry = new RegistryConnection({ address: `127.0.0.1:${grpc}`, loopback: true, tls: false });
  const servers = serversOf(set);
  const toolIds = new Map([...servers].flatMap(([serverId, { tools }]) => [...tools].map(([name, tool]) => [tool.id, `${serverId}/${name}`])));
  const ids = new Map([...toolIds].map(([id, toolId]) => [toolId, id]));
  let runs = 0;
  let namespace = "";

  /** What was reported stays with its namespace: another one knows nothing. */
  async function fresh(): Promise<void> {
    namespace = `eval-${++runs}`;
    for (const [serverId, { title, tools }] of servers) {
      const stubs = [...tools].map(([name, tool]) => ({ definition: Buffer.from(JSON.stringify(definitionOf(name, tool))), tags: tagsOf(tool) }));
      await registry.register({ namespace, serverId, title, instanceId: "evaluation", retention: { case: "leaseTtl", value: { seconds: 3_600n } }, offer: { case: "declared", value: { tools: stubs } } }, { timeoutMs: READY_MS });
    }
    await until(async () => (await registry.findTools({ namespace, intent: "anything" })).catalogueTools === set.tools.length);
    // The gauges are looked at once a second.
    await sleep(1_500);
    await until(async () => /^toolcrib_gate_definitions_waiting 0$/m.test(await metrics(ops)));
  }

  try {
    await until(async () => (await fetch(`http://127.0.0.1:${ops}/readyz`)).ok);
    await fresh();
  } catch (error) {
    registry.close();
    await ended(child);
    throw error;
  }
  return {
    async find({ text, history = [] }) {
      const began = performance.now();
      const { tools, weak } = await registry.findTools({ namespace, intent: text, history: [...history], topK: TOP });
      const ms = performance.now() - began;
      const own = tools.filter(isRanked);
      const tokens = own.slice(0, ANSWERED).reduce((sum, { estimatedTokens }) => sum + estimatedTokens, 0);
      return { ranked: own.map(({ stub }) => ids.get(stub?.toolId ?? "") ?? ""), weak, tokens, ms };
    },
    async report({ text, history = [] }, id) {
      const toolId = toolIds.get(id);
      if (toolId === undefined) return;
      const report = { namespace, toolId, intent: text, history: [...history], success: true };
      for (;;) {
        try {
          await registry.reportOutcome(report);
          return;
        } catch (error) {
          if (!(error instanceof RegistryError) || error.retryAfterMs === undefined) throw error;
          await sleep(error.retryAfterMs);
        }
      }
    },
    forget: fresh,
    async close() {
      registry.close();
      await ended(child);
    },
  };
}

/** Appended ones stand beside others and have no rank of their own. */
function isRanked({ reasons }: RankedTool): boolean {
  return !reasons.every(({ kind }) => kind === Reason_Kind.COMPANION || kind === Reason_Kind.SIBLING);
}

interface Served {
  readonly title: string;
  readonly tools: Map<string, SetTool>;
}

/** Sets name servers and tools as they like: ids are made of that, and the servers keep their names as titles. */
function serversOf({ tools }: RetrievalSet): Map<string, Served> {
  const byName = new Map<string, { serverId: string; served: Served }>();
  for (const tool of tools) {
    const title = tool.server ?? "";
    const known = byName.get(title) ?? { serverId: title === "" ? "s" : `s${byName.size + 1}`, served: { title, tools: new Map() } };
    byName.set(title, known);
    const ascii = tool.name.replace(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 120);
    const name = /[A-Za-z]/.test(ascii) ? ascii : `unnamed${known.served.tools.size}`;
    let free = name;
    for (let n = 2; known.served.tools.has(free); n++) free = `${name}-${n}`;
    known.served.tools.set(free, tool);
  }
  return new Map([...byName.values()].map(({ serverId, served }) => [serverId, served]));
}

/** A name that MCP does not allow stays as the title. */
function definitionOf(name: string, { name: said, description = "", inputSchema }: SetTool): object {
  const title = said === name ? {} : { title: said };
  return { name, ...title, description, inputSchema: { ...(withoutNonsense(inputSchema ?? {}) as object), type: "object" } };
}

/** Some sets have schemas that are none: a property that is a text, for example. */
function withoutNonsense(schema: unknown): unknown {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return {};
  const { description, properties, items, enum: values } = schema as Record<string, unknown>;
  const known = typeof properties === "object" && properties !== null ? Object.entries(properties) : [];
  return {
    ...(typeof description === "string" ? { description } : {}),
    ...(known.length > 0 ? { properties: Object.fromEntries(known.map(([name, value]) => [name, withoutNonsense(value)])) } : {}),
    ...(items === undefined ? {} : { items: withoutNonsense(items) }),
    ...(Array.isArray(values) && values.length > 0 ? { enum: [...new Set(values)] } : {}),
  };
}

function tagsOf({ category }: SetTool): string[] {
  const tag = (category ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  return tag === "" ? [] : [tag];
}

async function metrics(port: number): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const last = performance.now() + READY_MS;
  for (let error: unknown; ; await sleep(50)) {
    try {
      if (await holds()) return;
    } catch (caught) {
      error = caught;
    }
    if (performance.now() > last) throw new Error(`the registry was not ready within ${READY_MS / 1_000} s`, { cause: error });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  await new Promise((resolve) => child.once("exit", resolve));
}
