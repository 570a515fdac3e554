/** One registry process for a whole file of bad requests, and what every refusal of it must look like. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Metadata } from "@grpc/grpc-js";
import { expect } from "vitest";
import type { ErrorReasonName, StatusName } from "../../src/domain/reasons.js";
import { callRaw, failing, type ReadError, SERVICE } from "../integration/grpc-support.js";
import { declared, RemoteRegistry, type RegistryProcess, type RemoteWatch, startRegistry } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

export const ELSEWHERE = "elsewhere";

export interface Expected {
  readonly code: StatusName;
  readonly reason: ErrorReasonName;
  /** Fields of the violations, all of them, in any order. */
  readonly fields?: readonly string[];
  /** Each must be in the message or in a violation: limits, actual values. */
  readonly says?: readonly (string | RegExp)[];
  readonly metadata?: Readonly<Record<string, string>>;
  /** As the log names it; `unknown` where there is no such method. */
  readonly loggedAs?: string;
}

export const INVALID = { code: "INVALID_ARGUMENT", reason: "INVALID_REQUEST" } as const;
export const REJECTED = { code: "INVALID_ARGUMENT", reason: "TOOLS_REJECTED" } as const;

export type LogLine = Readonly<Record<string, unknown>>;

/** That a server came, changed or left: said of what is accepted, whatever is said of what is not. */
export function isNews({ server, revision }: LogLine): boolean {
  return typeof server === "string" && typeof revision === "number";
}

const LOUD = new Set(["info", "warn", "error", "fatal"]);

export class Target {
  #barriers = 0;

  private constructor(
    readonly registry: RegistryProcess,
    readonly remote: RemoteRegistry,
  ) {}

  /** With `seed/one` and `seed/two` in `default`, and `hidden/secret_tool` in another namespace. Its owner stops it. */
  static async start(args: readonly string[] = []): Promise<Target> {
    const dataDir = await mkdtemp(join(tmpdir(), "toolcrib-bad-"));
    const registry = await startRegistry({ keep: true, dataDir, args });
    const target = new Target(registry, new RemoteRegistry(registry.grpc, true));
    const leaseTtl = { seconds: 3_600 };
    await target.remote.call("register", declared("seed", [tool("one"), tool("two")], { leaseTtl, tags: ["seeded"] }));
    await target.remote.call("register", declared("hidden", [tool("secret_tool")], { leaseTtl, namespace: ELSEWHERE }));
    return target;
  }

  async stop(): Promise<void> {
    this.remote.client.close();
    await this.registry.kill();
    await rm(this.registry.dataDir, { recursive: true, force: true });
  }

  /** Calls a method and holds its refusal against what is expected of it and of every refusal. */
  refuses(method: string, request: object, expected: Expected, metadata?: Metadata): Promise<ReadError> {
    const loggedAs = `${SERVICE}/${method.charAt(0).toUpperCase()}${method.slice(1)}`;
    return this.refusal(() => this.remote.call(method, request, 15_000, metadata), { loggedAs, ...expected });
  }

  /** As `refuses`, with exactly these bytes. */
  refusesBytes(path: string, bytes: Buffer, expected: Expected): Promise<ReadError> {
    return this.refusal(() => callRaw(this.remote.client, path, bytes), { loggedAs: path.slice(1), ...expected });
  }

  async refusal(call: () => Promise<unknown>, expected: Expected): Promise<ReadError> {
    const before = await this.state();
    const { result: error, lines } = await this.logged(() => failing(call()));
    expect(error).toMatchObject({ code: expected.code, reason: expected.reason, domain: "toolcrib" });
    if (expected.fields) expect(error.violations.map((v) => v.field).sort()).toEqual([...expected.fields].sort());
    if (expected.metadata) expect(error.metadata).toMatchObject(expected.metadata);
    const words = [error.message, ...error.violations.map((v) => `${v.field} ${v.description}`)].join("\n");
    for (const said of expected.says ?? []) {
      if (typeof said === "string") expect(words).toContain(said);
      else expect(words).toMatch(said);
    }
    expect(lines, "log lines of this refusal").toHaveLength(1);
    expect(lines[0]).toMatchObject({ level: "info", code: expected.code, reason: expected.reason });
    if (expected.loggedAs) expect(lines[0]?.["method"]).toBe(expected.loggedAs);
    expect(await this.state(), "what the registry holds").toEqual(before);
    return error;
  }

  /** Every line at info or above that was written while `work` ran: a refusal of our own marks the end. */
  async logged<T>(work: () => Promise<T>): Promise<{ result: T; lines: readonly LogLine[] }> {
    const from = await this.#barrier();
    const result = await work();
    const until = await this.#barrier();
    const lines = this.registry.logs();
    const at = (name: string): number => lines.findIndex((l) => String(l["detail"]).endsWith(name));
    return { result, lines: lines.slice(at(from) + 1, at(until)).filter((l) => LOUD.has(String(l["level"])) && !isNews(l)) };
  }

  /** Names a server that is not there, and waits until the log says so: lines keep their order. */
  async #barrier(): Promise<string> {
    const serverId = `barrier-${++this.#barriers}.end`;
    await failing(this.remote.call("getServer", { serverId }));
    await eventually(() => this.registry.output().includes(serverId) && this.registry.output().endsWith("\n"), (seen) => seen);
    return serverId;
  }

  /** The events of a watch once there are as many. */
  async eventsUntil(watch: RemoteWatch, count: number): Promise<RemoteWatch["events"]> {
    return eventually(() => watch.events, (events) => events.length >= count);
  }

  /** Everything a reader can see, in both namespaces. */
  async state(): Promise<unknown> {
    const seen = [];
    for (const namespace of ["", ELSEWHERE]) {
      const { stubs, revision } = await this.remote.call("getStubs", { namespace });
      const { servers } = await this.remote.call("listServers", { namespace });
      seen.push({ revision, stubs, servers });
    }
    return seen;
  }
}

export function tool(name: string, more: object = {}): object {
  return { name, description: `Does ${name.slice(0, 20)}.`, inputSchema: { type: "object" }, ...more };
}

/** A Register with these definitions, as text: for what JSON.stringify would not write. */
export function inline(serverId: string, definitions: readonly (string | Buffer)[], more: object = {}): object {
  const tools = definitions.map((d) => ({ definition: typeof d === "string" ? Buffer.from(d) : d }));
  return { serverId, instanceId: "instance-1", leaseTtl: { seconds: 3_600 }, declared: { tools }, ...more };
}
