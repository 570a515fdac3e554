import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, chmod, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ClassicLevel } from "classic-level";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../src/catalogue/ports.js";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.js";
import type { EmbeddedOptions } from "../../src/store/embedded/embedded-store.js";
import { logOf, partitionOf, plain } from "./check.js";
import { openEmbedded, temporaryFolder } from "./embedded.harness.js";
import { storeSuite } from "./store.suite.js";
import * as v from "./values.js";

storeSuite("embedded store", openEmbedded);

describe("embedded only", () => {
  let folder: string;
  const opened: Store[] = [];
  beforeAll(async () => void (folder = await temporaryFolder()));
  afterAll(async () => {
    await Promise.all(opened.map((store) => store.close()));
    await rm(folder, { recursive: true, force: true });
  });

  test("everything is there again after closing and opening", async () => {
    const dataDir = join(folder, "reopened");
    const clock = new v.MovableClock();
    const window = { revisions: 3, bytes: 1_000_000 };
    const first = await open(dataDir, { clock, window });
    const { log, leases, blobs, notes } = partitionOf(first);
    await v.fill(log, 5);
    const after = v.record("s", [v.nastyTool("s", "a")]);
    const at = await v.commit(log, "s", { after, leases: [v.grant("a"), v.grant("b"), v.grant("c")] });
    const before = { revision: at.revision, ...after };
    await v.commit(log, "s", { before, leases: [v.end("c", true)], bury: true });
    await leases.extend(["b"]);
    await blobs.put("default", [{ digest: "d", bytes: v.NASTY, fetchedAtMs: 3 }]);
    const version = await notes.put("n", v.NASTY, 60_000);
    const was = {
      snapshot: await log.snapshot(),
      blobs: await blobs.get("default", ["d"]),
      note: await notes.get("n"),
    };
    expect(was.snapshot.entries).toHaveLength(3);
    await first.close();
    await first.close();

    const second = partitionOf(await open(dataDir, { clock, window }));
    expect(plain(await second.log.snapshot())).toEqual(plain(was.snapshot));
    expect(plain(await second.blobs.get("default", ["d"]))).toEqual(plain(was.blobs));
    expect(plain(await second.notes.get("n"))).toEqual(plain(was.note));
    expect(await second.notes.put("n", v.NASTY, 1_000)).toBeGreaterThan(version ?? Infinity);
    expect(await second.leases.renew(["c"])).toEqual(["ended"]);
    expect(await second.leases.buried("default", "s")).toBe(true);
    clock.advance(11_000);
    expect((await second.leases.due(5)).due.map((l) => [l.leaseId, l.braked])).toEqual([
      ["a", false],
      ["b", true],
    ]);
    await v.commit(second.log, "s", { after });
    expect((await second.log.snapshot()).entries.map((e) => e.position.revision)).toEqual([6, 7, 8]);
  });

  test("concurrent commits share batches and stay whole", async () => {
    const store = await open(join(folder, "group"));
    const places = await Promise.all(Array.from({ length: 200 }, (_, i) => v.fill(logOf(store), 1, i)));
    expect(new Set(places.map((p) => p.revision)).size).toBe(200);
  });

  test("nothing acknowledged is lost when the process is killed in the middle of commits, 50 times", { timeout: 180_000 }, async () => {
    const script = await buildChild(folder);
    const dataDir = join(folder, "killed");
    const acknowledged = new Map<number, { chain: string; id: string }>();
    for (let round = 1; round <= 50; round++) {
      const wanted = acknowledged.size + 5 + (round % 7) * 6;
      await runUntilKilled(script, dataDir, acknowledged, wanted);
      const store = await open(dataDir, { window: { revisions: 50, bytes: 1_000_000 } });
      const { position, records, entries, base } = await logOf(store).snapshot();
      expect(position.revision).toBeGreaterThanOrEqual(Math.max(...acknowledged.keys()));
      expect(records).toHaveLength(position.revision);
      const byId = new Map(records.map((r) => [r.header.serverId, r.revision]));
      for (const [revision, { id }] of acknowledged) expect([id, byId.get(id)]).toEqual([id, revision]);
      for (const e of entries)
        expect(acknowledged.get(e.position.revision)?.chain ?? e.position.chain).toBe(e.position.chain);
      expect(entries.map((e) => e.position.revision)).toEqual(range(base.revision + 1, position.revision));
      expect((await partitionOf(store).leases.due(1)).total).toBe(position.revision);
      const ids = [...acknowledged.values()].map((a) => a.id);
      expect((await partitionOf(store).blobs.get("default", ids)).every((b) => b !== undefined)).toBe(true);
      await store.close();
    }
  });

  test("a torn last write, which nobody was told of, is dropped, and the rest is there", async () => {
    const dataDir = join(folder, "torn");
    const store = await open(dataDir);
    const last = await v.fill(logOf(store), 20);
    await store.close();
    const location = join(dataDir, "store");
    const logs = (await readdir(location)).filter((name) => name.endsWith(".log")).sort();
    const file = join(location, logs.at(-1) as string);
    // As a crash leaves it: the head of a record that says how long it is, and a part of what should follow.
    await appendFile(file, Buffer.from([0x12, 0x34, 0x56, 0x78, 0xff, 0x0f, 0x01, ...Array.from({ length: 100 }, () => 0x61)]));
    const again = logOf(await open(dataDir));
    expect(await again.head()).toEqual(last);
    expect((await again.snapshot()).records).toHaveLength(20);
    expect((await v.fill(again, 1, 99)).revision).toBe(last.revision + 1);
  });

  test("a folder in use says so", async () => {
    const dataDir = join(folder, "locked");
    await open(dataDir);
    await expect(open(dataDir)).rejects.toThrow(`the data folder ${dataDir} is in use by another registry`);
    await expect(open(dataDir)).rejects.toThrow("is in use by another registry");
    const script = await buildChild(folder);
    const child = spawn(process.execPath, [script, dataDir], { stdio: ["ignore", "ignore", "pipe"], timeout: 20_000 });
    let output = "";
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    await once(child, "close");
    expect(output).toContain("is in use by another registry");
  });

  test("a damaged folder says so", async () => {
    const dataDir = join(folder, "damaged");
    const store = await open(dataDir);
    await v.fill(logOf(store), 10);
    await store.close();
    const location = join(dataDir, "store");
    for (const file of await readdir(location))
      if (file.startsWith("MANIFEST") || file === "CURRENT") await writeFile(join(location, file), "nonsense");
    await expect(open(dataDir)).rejects.toThrow(`the data folder ${dataDir} is damaged`);
  });

  test("a folder whose log lost entries says so", async () => {
    const dataDir = join(folder, "holes");
    const store = await open(dataDir);
    await v.fill(logOf(store), 10);
    await store.close();
    const database = new ClassicLevel(join(dataDir, "store"));
    const [, middle = ""] = await database.keys({ gte: "p0/entries/", lt: "p0/entries0" }).all();
    await database.del(middle);
    await database.close();
    await expect(open(dataDir)).rejects.toThrow(/is damaged \(entry 3 of its log does not follow entry 1\)/);
  });

  test("a folder that is no folder, or not ours to use, says so", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    await expect(open(file)).rejects.toThrow(`the data folder ${file} cannot be used`);
    await expect(open(join(file, "below"))).rejects.toThrow("cannot be used");
    if (process.platform === "linux") {
      await expect(open("/proc/toolcrib")).rejects.toThrow("the data folder /proc/toolcrib cannot be used (ENOENT");
      await expect(open("/proc/toolcrib/deeper")).rejects.toThrow("the data folder /proc/toolcrib/deeper cannot be used (ENOENT");
    }
    const loop = join(folder, "loop");
    await symlink(loop, loop);
    await expect(open(loop)).rejects.toThrow(`the data folder ${loop} cannot be used`);
    if (process.getuid?.() === 0) return;
    const closed = join(folder, "closed");
    await mkdir(closed);
    await chmod(closed, 0o500);
    await expect(open(closed)).rejects.toThrow(`the data folder ${closed} cannot be used`);
  });

  test("the number of partitions is fixed when the folder is first used", async () => {
    const dataDir = join(folder, "partitions");
    const store = await open(dataDir, { partitions: 2 });
    const [first, second] = store.partitions;
    await v.fill(first!.log, 3);
    expect((await v.fill(second!.log, 1)).revision).toBe(1);
    await store.close();
    await expect(open(dataDir, { partitions: 1 })).rejects.toThrow(
      "was created with 2 partitions, and 1 were asked for",
    );
    const again = await open(dataDir, { partitions: 2 });
    expect(await Promise.all(again.partitions.map(async (p) => (await p.log.head()).revision))).toEqual([3, 1]);
  });

  async function open(dataDir: string, options: Partial<EmbeddedOptions> = {}): Promise<Store> {
    const parts = { clock: new v.MovableClock(), random: v.random, logger: v.silent, ...options };
    const store = await openEmbeddedStore({ dataDir, ...parts });
    opened.push(store);
    return store;
  }
});

/** The child as one file of JavaScript, beside nothing but node_modules. */
async function buildChild(folder: string): Promise<string> {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const entry = fileURLToPath(new URL("./embedded-child.ts", import.meta.url));
  const outDir = join(folder, "built");
  await build({
    root,
    configFile: false,
    logLevel: "error",
    build: { ssr: entry, outDir, emptyOutDir: true, rollupOptions: { output: { entryFileNames: "child.mjs" } } },
  });
  await symlink(join(root, "node_modules"), join(folder, "node_modules")).catch(() => {});
  return join(outDir, "child.mjs");
}

async function runUntilKilled(
  script: string,
  dataDir: string,
  acknowledged: Map<number, { chain: string; id: string }>,
  wanted: number,
): Promise<void> {
  const child = spawn(process.execPath, [script, dataDir], { stdio: ["ignore", "pipe", "inherit"], timeout: 20_000 });
  let rest = "";
  child.stdout.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [revision = "", chain = "", id = ""] = line.split(" ");
      acknowledged.set(Number(revision), { chain, id });
    }
    if (acknowledged.size >= wanted) child.kill("SIGKILL");
  });
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  if (signal !== "SIGKILL" || acknowledged.size < wanted) throw new Error("the child ended by itself");
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
