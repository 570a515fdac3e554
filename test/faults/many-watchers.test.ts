/**
 * Thousands of watchers on one replica, a fifth of which never read: the others hear everything, and memory stays bounded. The full
 * numbers, 5,000 with 1,000 stalled and 10,000 that reconnect at once, by `npm run test:deep`.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ServiceError } from "@grpc/grpc-js";
import { expect, it, onTestFinished } from "vitest";
import { detailsOf } from "../support/details.js";
import { declared, RemoteRegistry, startRegistry, type RegistryProcess } from "../support/registry.js";
import { eventually } from "../support/upstream.js";

const CLIENT = fileURLToPath(new URL("../fixtures/load/watchers.mjs", import.meta.url));
const DEEP = process.env["DEEP_TESTS"] === "1";

interface Count {
  readonly open: number;
  readonly changes: { readonly least: number; readonly most: number };
  readonly bookmarks: { readonly least: number; readonly most: number };
  /** Watchers whose changes are not, one for one, those of the others. */
  readonly gaps: number;
  readonly ended: Readonly<Record<string, number>>;
  readonly caughtUp?: number;
  readonly refused?: Readonly<Record<string, number>>;
  readonly tries?: number;
}

function watchersOf(address: string, all: number, stalled: number) {
  const child = spawn(process.execPath, ["--max-old-space-size=2048", CLIENT, address, String(all), String(stalled)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (command: "open" | "count" | "read" | "reconnect"): Promise<Count> => {
    child.stdin.write(`${command}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`the watchers ended at ${command}`);
    return JSON.parse(value) as Count;
  };
}

/** Resident memory of the replica in MB. */
function residentOf({ child }: RegistryProcess): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
}

/** About 6 KB in an event, so that a stalled watcher's window is full after a dozen. */
const wide = (name: string) => ({
  name,
  inputSchema: { type: "object" },
  description: `${"A long sentence of a tool that has much to say. ".repeat(10)}`,
});
const tools = Array.from({ length: 10 }, (_, i) => wide(`tool_${i}`));

async function registerMany(remote: RemoteRegistry, prefix: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const request = declared(`${prefix}-${i}`, tools, { leaseTtl: { seconds: 3_600 } });
    for (let over = false; !over; ) over = await remote.call("register", request, 60_000).then(() => true, cameTooEarly);
  }
}

/** A replica busy with thousands of watchers may shed a Register; it says when to come back. */
async function cameTooEarly(error: ServiceError): Promise<false> {
  const { reason, retryMs } = detailsOf(error);
  if (reason !== "OVERLOADED" || retryMs === undefined) throw error;
  await new Promise((resolve) => setTimeout(resolve, retryMs));
  return false;
}

const CROWD = DEEP ? { all: 5_000, stalled: 1_000 } : { all: 1_000, stalled: 200 };
const CHANGES = 40;

it(`P2: ${CROWD.all} watchers, ${CROWD.stalled} of which never read: the others hear every change and their bookmarks, and memory is bounded`, async () => {
  const registry = await startRegistry({ store: "memory", args: ["--max-watchers", "20000"] });
  const remote = new RemoteRegistry(registry.grpc);
  const ask = watchersOf(registry.grpc, CROWD.all, CROWD.stalled);
  const readers = CROWD.all - CROWD.stalled;
  expect(await ask("open")).toMatchObject({ open: readers, ended: {} });
  const before = residentOf(registry);
  const from = performance.now();
  await registerMany(remote, "crowd", CHANGES);
  const heard = await eventually(() => ask("count"), (c) => c.changes.least >= CHANGES * tools.length, 180_000);
  const tookMs = performance.now() - from;
  expect(heard).toMatchObject({ open: readers, ended: {}, gaps: 0, changes: { least: CHANGES * tools.length, most: CHANGES * tools.length } });
  const marked = heard.bookmarks.least;
  await eventually(() => ask("count"), (c) => c.bookmarks.least > marked, 60_000);
  const grown = residentOf(registry) - before;
  // Each stalled watcher may hold two messages here and a window of 64 KB in the socket; the rest is common to all.
  expect(grown).toBeLessThan(150 + CROWD.all * 0.06);
  const lagging = new RegExp(`toolcrib_watchers\\{state="lagging"\\} ${CROWD.stalled}\\b`);
  await eventually(async () => (await fetch(`${registry.ops}/metrics`)).text(), (text) => lagging.test(text));
  const late = await ask("read");
  expect(late.caughtUp).toBe(CROWD.stalled);
  expect(late).toMatchObject({ ended: {}, changes: { least: CHANGES * tools.length, most: CHANGES * tools.length } });
  process.stdout.write(
    `${CROWD.all} watchers (${CROWD.stalled} stalled): ${CHANGES} changes everywhere after ${Math.round(tookMs)} ms, ` +
      `${Math.round(before)} MB before, ${Math.round(grown)} MB more\n`,
  );
}, 600_000);

const HERD = DEEP ? 10_000 : 1_500;

it(`${HERD} watchers that reconnect at once are served, or told when to come back, and are all in at last`, async () => {
  // Fewer places than watchers for a moment: the old ones may not be gone when the new ones come.
  const registry = await startRegistry({ store: "memory", args: ["--max-watchers", String(HERD)] });
  const remote = new RemoteRegistry(registry.grpc);
  await registerMany(remote, "herd", 5);
  const ask = watchersOf(registry.grpc, HERD, 0);
  expect(await ask("open")).toMatchObject({ open: HERD });
  await eventually(() => ask("count"), (c) => c.bookmarks.least > 0, 120_000);
  const back = await ask("reconnect");
  expect(back).toMatchObject({ open: HERD, ended: {} });
  const allowed = ["QUOTA_EXCEEDED", "OVERLOADED"];
  expect(Object.keys(back.refused ?? {}).filter((reason) => !allowed.includes(reason))).toEqual([]);
  await registerMany(remote, "after", 1);
  await eventually(() => ask("count"), (c) => c.changes.least >= tools.length, 120_000);
  process.stdout.write(`${HERD} watchers reconnected with ${back.tries} tries; refused: ${JSON.stringify(back.refused)}\n`);
}, 600_000);
