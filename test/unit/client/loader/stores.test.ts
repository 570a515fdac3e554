import { readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { DefinitionStore } from "../../../../src/client/loader/definition-store.js";
import { hasDigest } from "../../../../src/client/loader/definition-store.js";
import { folderStore } from "../../../../src/client/loader/folder-store.js";
import { redisStore } from "../../../../src/client/loader/redis-store.js";
import { definition, loaderBench } from "../../../support/loader-bench.js";
import { startRedis, type TestRedis } from "../../../support/redis.js";
import { temporaryFolder } from "../../../support/registry.js";

const [X, Y, Z] = [definition("x"), definition("y"), definition("z")];

function textsOf(answers: readonly (Uint8Array | undefined)[]): (string | undefined)[] {
  return answers.map((bytes) => bytes && Buffer.from(bytes).toString());
}

const text = ({ bytes }: typeof X): string => Buffer.from(bytes).toString();

/** What every store does. */
function keeps(open: () => Promise<{ store: DefinitionStore; again: () => DefinitionStore }>): void {
  it("keeps definitions byte for byte, beyond one process, and gives them in the order asked", async () => {
    const { store, again } = await open();
    await store.put([X, Y]);
    await store.put([X]);
    expect(textsOf(await store.get([Y.digest, Z.digest, X.digest]))).toEqual([text(Y), undefined, text(X)]);
    const other = again();
    expect(textsOf(await other.get([X.digest]))).toEqual([text(X)]);
    await other.drop(X.digest);
    expect(textsOf(await store.get([X.digest, Y.digest]))).toEqual([undefined, text(Y)]);
    await store.put([X]);
    expect(textsOf(await other.get([X.digest]))).toEqual([text(X)]);
    await Promise.all([store.close(), other.close()]);
  });

  it("refuses what is no digest", async () => {
    const { store } = await open();
    for (const digest of ["../../etc/passwd", "sha256:x", ""]) {
      await expect(store.get([digest])).rejects.toThrow("is not a digest");
      await expect(store.put([{ ...X, digest }])).rejects.toThrow("is not a digest");
    }
    await store.close();
  });
}

describe("a folder of definitions", () => {
  keeps(async () => {
    const folder = join(await temporaryFolder(), "made", "here");
    return { store: folderStore({ folder }), again: () => folderStore({ folder }) };
  });

  it("holds whole files alone, and clears away what a process left behind that ended while it wrote", async () => {
    const folder = await temporaryFolder();
    const old = join(folder, ".0b8f3c1e-1111-4222-8333-444455556666.tmp");
    const young = join(folder, ".0b8f3c1e-1111-4222-8333-444455556667.tmp");
    for (const path of [old, young, join(folder, "README")]) await writeFile(path, "half");
    await utimes(old, 1, 1);
    const store = folderStore({ folder });
    await Promise.all(Array.from({ length: 20 }, () => store.put([X, Y])));
    const names = (await readdir(folder)).sort();
    expect(names).toEqual([young, ...[X, Y].map((d) => `${d.digest.slice(7)}.json`), "README"].map((n) => n.split("/").at(-1)).sort());
    expect((await stat(join(folder, `${X.digest.slice(7)}.json`))).mode & 0o077).toBe(0);
    expect(await readFile(join(folder, `${X.digest.slice(7)}.json`), "utf8")).toBe(text(X));
  });

  it("is bounded: the least recently used leaves first, also after a restart", async () => {
    const folder = await temporaryFolder();
    const size = X.bytes.byteLength;
    const store = folderStore({ folder, maxBytes: size * 2 });
    await store.put([X, Y]);
    for (const [i, d] of [Y, X].entries()) await utimes(join(folder, `${d.digest.slice(7)}.json`), i + 1, i + 1);
    const restarted = folderStore({ folder, maxBytes: size * 2 });
    await restarted.put([Z]);
    expect(textsOf(await restarted.get([X.digest, Y.digest, Z.digest]))).toEqual([text(X), undefined, text(Z)]);
    await restarted.get([X.digest]);
    await restarted.put([Y]);
    expect(textsOf(await restarted.get([X.digest, Y.digest, Z.digest]))).toEqual([text(X), text(Y), undefined]);
    expect(await readdir(folder)).toHaveLength(2);
    const small = folderStore({ folder, maxBytes: size });
    await small.get([]);
    expect(await readdir(folder)).toHaveLength(1);
  });

  it("that cannot be used is told of once, and the loader goes on without it", async () => {
    const file = join(await temporaryFolder(), "file");
    await writeFile(file, "not a folder");
    const bench = loaderBench({ store: folderStore({ folder: file }) });
    for (const id of ["a/x", "a/y"]) bench.put(id, definition(id.slice(2)));
    for (const id of ["a/x", "a/y"]) expect((await bench.loader.load([id])).tools).toMatchObject([{ from: "registry" }]);
    expect(bench.troubles.map((t) => t.what)).toEqual(["store-failed"]);
    await bench.loader.close();
  });
});

describe.skipIf(inject("redisServer") === "")("definitions in Redis", () => {
  let redis: TestRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  let prefix = 0;
  keeps(async () => {
    const options = { redis: redis.url, prefix: `p${prefix++}:` };
    return { store: redisStore(options), again: () => redisStore({ ...options, redis: redis.admin }) };
  });

  it("end by themselves, and leave a client open that is the caller's", async () => {
    const store = redisStore({ redis: redis.admin, prefix: "ttl:", ttlMs: 60_000 });
    await store.put([X]);
    const left = await redis.admin.pttl(`ttl:${X.digest}`);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
    await store.close();
    expect(await redis.admin.ping()).toBe("PONG");
    expect(() => redisStore({ redis: redis.url, ttlMs: 0 })).toThrow("ttlMs is 0");
  });

  it("are loaded from the registry by one agent and known to all of them", async () => {
    const store = { redis: redis.url, prefix: "shared:" };
    const first = loaderBench({ store: redisStore(store) });
    first.put("a/x", X);
    expect((await first.loader.load(["a/x"])).tools).toMatchObject([{ from: "registry" }]);
    await first.loader.close(); // Once everything is written.
    const second = loaderBench({ store: redisStore(store) });
    second.put("b/same", X);
    expect((await second.loader.load(["b/same"])).tools).toMatchObject([{ from: "store", digest: X.digest, freshness: "cached" }]);
    expect(second.asked).toEqual([]);
    await second.loader.close();
  });

  it("that somebody overwrote are noticed by their digest, taken out, told of and loaded anew", async () => {
    await redis.admin.set(`damaged:${X.digest}`, Buffer.from(Y.bytes));
    await redis.admin.set(`damaged:${Y.digest}`, "no JSON at all");
    const bench = loaderBench({ store: redisStore({ redis: redis.url, prefix: "damaged:" }) });
    bench.put("a/x", X);
    bench.put("a/y", Y);
    expect((await bench.loader.load(["a/x", "a/y"])).tools.map((t) => [t.toolId, t.from])).toEqual([["a/x", "registry"], ["a/y", "registry"]]);
    expect(bench.troubles.map((t) => t.what)).toEqual(["store-damaged", "store-damaged"]);
    await bench.loader.close();
    // Whether the taking out or the new definition comes first: nobody reads the wrong one.
    for (const d of [X, Y]) {
      const now = await redis.admin.getBuffer(`damaged:${d.digest}`);
      expect(now === null || hasDigest(now, d.digest)).toBe(true);
    }
  });

  it("serve a registry that is away: what the label names is there, marked stale", async () => {
    const options = { redis: redis.url, prefix: "away:" };
    await redisStore({ ...options, redis: redis.admin }).put([X]);
    const bench = loaderBench({ store: redisStore(options) });
    bench.put("a/x", X);
    bench.labels.state = { kind: "stale", since: 0, why: "disconnected", revision: "r1" };
    bench.registry.tools.clear();
    bench.registry.tools.set("a/x", { kind: "error", reason: "NOT_READY" });
    expect((await bench.loader.load(["a/x"])).tools).toMatchObject([{ freshness: "stale", digest: X.digest }]);
    await bench.loader.close();
  });

  it("that hang cost a quarter of one turn, then nothing for a second", async () => {
    const own = await startRedis();
    const bench = loaderBench({ store: redisStore({ redis: own.url }) });
    for (const id of ["a/x", "a/y", "a/z"]) bench.put(id, definition(id.slice(2)));
    await bench.loader.load(["a/x"]);
    own.pause();
    const load = bench.loader.load(["a/y"]);
    await bench.clock.advance(50);
    expect((await load).tools).toMatchObject([{ from: "registry" }]);
    expect(bench.asked.at(-1)?.timeoutMs).toBe(150);
    expect((await bench.loader.load(["a/z"])).tools).toMatchObject([{ from: "registry" }]);
    expect(bench.troubles.map((t) => t.what)).toEqual(["store-slow"]);
    own.resume();
    await bench.loader.close();
    await own.stop();
  });

  it("that are away fail at once, and come back by themselves", async () => {
    const own = await startRedis();
    const store = redisStore({ redis: own.url });
    await store.put([X]);
    await own.kill();
    await expect.poll(() => store.get([X.digest]).then(() => "answered", () => "failed")).toBe("failed");
    await own.restart();
    await expect.poll(() => store.put([X]).then(() => "written", () => "failed"), { timeout: 10_000 }).toBe("written");
    expect(textsOf(await store.get([X.digest]))).toEqual([text(X)]);
    await store.close();
    await own.stop();
  });
});

it("bytes have a digest only if they are that definition, whatever they are", () => {
  expect(hasDigest(X.bytes, X.digest)).toBe(true);
  expect(hasDigest(Buffer.from(`  ${text(X)}\n`), X.digest)).toBe(true); // Another spelling of the same value.
  for (const bytes of [Y.bytes, Buffer.from("{"), Buffer.from([0xff]), Buffer.alloc(0), Buffer.from("[".repeat(10_000))]) {
    expect(hasDigest(bytes, X.digest)).toBe(false);
  }
});
