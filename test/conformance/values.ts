/** Values for the store's checks: a clock that can be moved, commits, and bytes that text handling would damage. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Clock, Commit, CommitResult, LeaseEffect, Log, Logger, Random } from "../../src/catalogue/ports.js";
import { diffTools } from "../../src/domain/change.js";
import type { Cause } from "../../src/domain/change.js";
import type { Position } from "../../src/domain/revision.js";
import type { Instance, ServerRecord, Tool } from "../../src/domain/server.js";
import { EMPTY_STUB } from "../../src/domain/stub.js";
import { stubCodec } from "../../src/store/codec/stub.js";

/** Real time plus what a test has let pass. */
export class MovableClock implements Clock {
  private aheadMs = 0;

  now(): number {
    return Date.now() + this.aheadMs;
  }

  monotonic(): number {
    return performance.now() + this.aheadMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await delay(ms, undefined, { signal }).catch(() => {});
  }

  advance(ms: number): void {
    this.aheadMs += ms;
  }
}

export const random: Random = {
  next: () => Math.random(),
  id: () => randomBytes(16).toString("hex"),
};

export const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export function recordingLogger(): Logger & { readonly lines: string[] } {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return { lines, debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** NUL, invalid UTF-8, separators of the stores' own rows, and every other byte. */
export const NASTY = Uint8Array.from([
  0,
  0xff,
  0xfe,
  0xc3,
  0x28,
  0xed,
  0xa0,
  0x80,
  0x3a,
  0x0a,
  0x0d,
  0x2c,
  0,
  ...Array.from({ length: 256 }, (_, i) => i),
]);

export function tool(serverId: string, name: string, brief = "", digest = ""): Tool {
  const label = { ...EMPTY_STUB, serverId, name, briefDescription: brief, tags: ["a", `t-${name}`], digest };
  return stubCodec.encode(label, digest !== "");
}

/** A tool whose stub no text handling would let through: an unknown field 1000 with NASTY bytes after the label. */
export function nastyTool(serverId: string, name: string): Tool {
  const plain = tool(serverId, name);
  const prefix = Buffer.from([0xc2, 0x3e, (NASTY.length & 0x7f) | 0x80, NASTY.length >> 7]);
  return { ...plain, stub: Buffer.concat([plain.stub, prefix, NASTY]) };
}

export function instance(instanceId: string, leaseId: string): Instance {
  return {
    instanceId,
    leaseId,
    endpoint: "http://127.0.0.1:1/mcp",
    transport: "streamable-http",
    setDigest: "sha256:00",
    ttlMs: 10_000,
    registeredAtMs: 1_234,
    revision: 0,
    requestId: "r",
    introspect: false,
    credential: "vault",
    sharePrivate: true,
    availability: "unavailable",
    probing: { intervalMs: 60_000, timeoutMs: 700, fall: 4, rise: 3, off: true },
  };
}

export function record(
  serverId: string,
  tools: readonly Tool[],
  instances: readonly Instance[] = [],
): Omit<ServerRecord, "revision"> {
  return {
    header: {
      namespace: "default",
      serverId,
      title: `Server ${serverId}`,
      tags: ["x"],
      source: "declared",
      retention: "leased",
      instances,
      availability: "available",
      breaker: { kind: "open", sinceMs: 11, untilMs: 22, attempt: 3 },
      conditions: [{ type: "Listed", status: "true", reason: "OK", message: "listed", sinceMs: 5 }],
      rejected: [{ name: "bad", reasons: ["why"] }],
      rejectedCount: 1,
      setDigest: "sha256:00",
      protocolVersion: "2026-07-28",
      listedAtMs: 7,
      pending: false,
      owner: "alice",
    },
    tools,
  };
}

export interface Step {
  readonly before?: ServerRecord | undefined;
  readonly after?: Omit<ServerRecord, "revision"> | undefined;
  readonly cause?: Cause;
  readonly leases?: readonly LeaseEffect[];
  readonly requireDue?: readonly string[];
  readonly bury?: boolean;
}

/** The commit that takes a server from one record to the next, as the catalogue makes it. */
export function step(serverId: string, { before, after, cause, leases = [], requireDue = [], bury }: Step): Commit {
  return {
    namespace: "default",
    serverId,
    expect: before?.revision ?? 0,
    record: after ?? null,
    change: {
      namespace: "default",
      serverId,
      cause: cause ?? (after ? "register" : "deregister"),
      header: after?.header ?? null,
      tools: diffTools(before?.tools ?? [], after?.tools ?? []),
      availabilityBefore: before?.header.availability ?? null,
    },
    leases,
    requireDue,
    ...(bury !== undefined && { bury }),
  };
}

export function grant(leaseId: string, serverId = "s", ttlMs = 10_000): LeaseEffect {
  return { kind: "grant", leaseId, ttlMs, namespace: "default", serverId, instanceId: `instance-${leaseId}` };
}

export function end(leaseId: string, buried: boolean): LeaseEffect {
  return { kind: "end", leaseId, buried };
}

/** Commits and answers the place; throws when it was refused. */
export async function commit(log: Log, serverId: string, parts: Step): Promise<Position> {
  const result = await log.commit(step(serverId, parts));
  if (result.kind !== "committed") throw new Error(`the commit was refused: ${JSON.stringify(result)}`);
  return result.position;
}

/** Registers `count` servers `s0`, `s1`, … one after another; answers the last place. */
export async function fill(log: Log, count: number, from = 0): Promise<Position> {
  let last: Position | undefined;
  for (let i = from; i < from + count; i++)
    last = await commit(log, `s${i}`, { after: record(`s${i}`, [tool(`s${i}`, "one")]) });
  if (!last) throw new Error("nothing to fill");
  return last;
}

export async function resultOf(log: Log, commit: Commit): Promise<CommitResult["kind"]> {
  return (await log.commit(commit)).kind;
}

/** Waits for a condition, and says what it waited for when it did not come. */
export async function until(what: string, holds: () => Promise<boolean> | boolean, deadlineMs = 15_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited ${deadlineMs} ms in vain for: ${what}`);
    await delay(10);
  }
}
