import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Store } from "../../src/catalogue/ports.js";
import { Fault } from "../../src/domain/fault.js";
import { startOf } from "../../src/domain/revision.js";
import { partitionKeys } from "../../src/store/redis/keys.js";
import { openRedisStore } from "../../src/store/redis/redis-store.js";
import { redisMissing, startRedis } from "../support/redis.js";
import type { TestRedis } from "../support/redis.js";
import { logOf, never, partitionOf } from "./check.js";
import { follow } from "./checks-poll.js";
import { redisHarness } from "./redis.harness.js";
import { storeSuite } from "./store.suite.js";
import * as v from "./values.js";

const missing = redisMissing();
if (missing) process.stderr.write(`the redis store is not tested: ${missing}\n`);

/** Filled in before the first test; the suite's harness asks for it only then. */
let redis: TestRedis;

describe.skipIf(missing)("redis", () => {
  beforeAll(async () => void (redis = await startRedis("--repl-diskless-sync-delay", "0")));
  afterAll(() => redis.stop());

  storeSuite("redis store", (window) => redisHarness({ url: redis.url, servers: [redis] })(window));

  describe("redis only", () => {
    test("every command of a partition stays in one slot", async () => {
      await redis.flush();
      await using store = await opened(redis);
      await v.commit(logOf(store), "s", { after: v.record("s", []), leases: [v.grant("l")] });
      await partitionOf(store).blobs.put("default", [{ digest: "d", bytes: v.NASTY, fetchedAtMs: 1 }]);
      await partitionOf(store).notes.put("n", v.NASTY, 10_000);
      const keys = (await redis.admin.keys("*")).filter((key) => key !== "toolcrib:meta");
      expect(keys.length).toBeGreaterThan(6);
      const tags = new Set(keys.map((key) => /\{([^}]+)\}/.exec(key)?.[1]));
      expect([...tags]).toEqual(["toolcrib:p0"]);
      for (const key of keys)
        if (!key.includes(":note:")) expect([key, await redis.admin.pttl(key)]).toEqual([key, -1]);
    });

    test("a flushed Redis is noticed by whoever follows, and begins another history", async () => {
      await using store = await opened(redis);
      const at = await v.fill(logOf(store), 3, 100);
      const waiting = logOf(store).poll(at, 10, never);
      await redis.flush();
      expect(await waiting).toEqual({ kind: "broken", cause: "ahead" });
      expect(await logOf(store).head()).toEqual(startOf(0));
      expect(await partitionOf(store).leases.renew(["l"])).toEqual(["unknown"]);
      const anew = await v.fill(logOf(store), at.revision);
      expect(anew.revision).toBe(at.revision);
      expect(await logOf(store).poll(at, 10, never)).toEqual({ kind: "broken", cause: "chain" });
      await v.fill(logOf(store), 2, 50);
      expect(await logOf(store).poll(at, 10, never)).toEqual({ kind: "broken", cause: "chain" });
    });

    test("forgotten scripts are taught again", async () => {
      await redis.flush();
      await using store = await opened(redis);
      await v.commit(logOf(store), "s", { after: v.record("s", []), leases: [v.grant("l")] });
      await redis.admin.script("FLUSH");
      await v.fill(logOf(store), 2);
      expect(await partitionOf(store).leases.renew(["l"])).toEqual(["renewed"]);
    });

    test("a full Redis refuses what grows, and lets servers renew and leave", async () => {
      const small = await startRedis("--maxmemory-policy", "noeviction");
      try {
        await using store = await opened(small);
        const { log, leases, blobs, notes } = partitionOf(store);
        const after = v.record("s", [v.tool("s", "a")]);
        const at = await v.commit(log, "s", { after, leases: [v.grant("l")] });
        await small.admin.config("SET", "maxmemory", "1mb");
        const grown = v.step("t", { after: v.record("t", []), leases: [v.grant("m")] });
        await expect(log.commit(grown)).rejects.toSatisfy(isFault("STORE_FULL"));
        await expect(blobs.put("default", [{ digest: "d", bytes: v.NASTY, fetchedAtMs: 1 }])).rejects.toSatisfy(
          isFault("STORE_FULL"),
        );
        await expect(notes.put("n", v.NASTY, 1_000)).rejects.toSatisfy(isFault("STORE_FULL"));
        expect(await log.head()).toEqual(at);
        expect(await leases.renew(["l", "m"])).toEqual(["renewed", "unknown"]);
        await leases.extend(["l"]);
        expect((await leases.due(10)).total).toBe(1);
        expect((await log.snapshot()).records).toHaveLength(1);
        const before = { revision: at.revision, ...after };
        expect(await v.resultOf(log, v.step("s", { before, leases: [v.end("l", true)], bury: true }))).toBe(
          "committed",
        );
        expect(await leases.renew(["l"])).toEqual(["ended"]);
        await small.admin.config("SET", "maxmemory", "0");
        expect(await v.resultOf(log, grown)).toBe("committed");
      } finally {
        await small.stop();
      }
    });

    test("a follower whose connection is cut goes on from its own place, without a gap", async () => {
      await redis.flush();
      await using store = await opened(redis);
      const log = logOf(store);
      const seen: number[] = [];
      let at = startOf(0);
      let cuts = 0;
      const writing = (async () => {
        for (let i = 0; i < 60; i++) {
          await v.fill(log, 1, i).catch(() => undefined);
          if (i % 10 === 5) await cutTails(redis);
        }
      })();
      let written = false;
      void writing.then(() => (written = true));
      while (!written || at.revision < (await log.head()).revision) {
        const result = await log.poll(at, 7, never).catch((error: unknown) => error);
        if (isFault("STORE_UNAVAILABLE")(result)) {
          cuts++;
          continue;
        }
        const { kind, entries } = result as Extract<Awaited<ReturnType<typeof log.poll>>, { kind: "entries" }>;
        expect(kind).toBe("entries");
        seen.push(...entries.map((e) => e.position.revision));
        at = entries.at(-1)?.position ?? at;
      }
      await writing;
      expect(cuts).toBeGreaterThan(0);
      expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    });

    test("while Redis is dead every call fails at once, and all works when it is back", async () => {
      const mortal = await startRedis();
      const logger = v.recordingLogger();
      try {
        await using store = await opened(mortal, { logger });
        const { log, leases, blobs, notes } = partitionOf(store);
        const at = await v.fill(log, 2);
        const waiting = log.poll(at, 10, never).catch((error: unknown) => error);
        await mortal.kill();
        expect(await waiting).toSatisfy(isFault("STORE_UNAVAILABLE"));
        const calls = [
          () => log.head(),
          () => log.snapshot(),
          () => log.poll(at, 1, never),
          () => log.commit(v.step("t", { after: v.record("t", []) })),
          () => leases.renew(["l"]),
          () => blobs.get("default", ["d"]),
          () => notes.get("n"),
        ];
        for (const call of calls) await expect(call()).rejects.toSatisfy(isFault("STORE_UNAVAILABLE"));
        await mortal.restart();
        await v.until("the store to be back", async () => (await log.head().catch(() => undefined)) !== undefined);
        expect(await log.poll(at, 1, never)).toEqual({ kind: "broken", cause: "ahead" });
        await v.fill(log, 1);
        expect((await follow(log, startOf(0), 1, 10)).map((e) => e.position.revision)).toEqual([1]);
        await v.until("the end of the outage to be logged", () => logger.lines.some((l) => l.includes("back")));
        expect(logger.lines.filter((l) => l.startsWith("warn") && l.includes("cannot be reached"))).toHaveLength(1);
      } finally {
        await mortal.stop();
      }
    });

    test("a Redis that stopped answering fails calls, and is connected to again", async () => {
      const hanging = await startRedis();
      try {
        await using store = await opened(hanging, { commandTimeoutMs: 200 });
        const { log, leases } = partitionOf(store);
        const at = await v.fill(log, 1);
        hanging.pause();
        await expect(leases.renew(["l"])).rejects.toSatisfy(isFault("STORE_UNAVAILABLE"));
        await expect(log.poll(at, 1, never)).rejects.toSatisfy(isFault("STORE_UNAVAILABLE"));
        hanging.resume();
        await v.until("the store to be back", async () => (await log.head().catch(() => undefined)) !== undefined);
        await v.fill(log, 1, 1);
        expect((await follow(log, at, 1, 10)).map((e) => e.position.revision)).toEqual([2]);
      } finally {
        hanging.resume();
        await hanging.stop();
      }
    });

    test("a store opens without Redis, says so in every call, and works once Redis is there", async () => {
      const late = await startRedis();
      await late.kill();
      const logger = v.recordingLogger();
      try {
        const url = `redis://:secret-word@127.0.0.1:${late.port}`;
        await using secret = await opened(late, { logger, openTimeoutMs: 100, url });
        await using store = await opened(late, { logger, openTimeoutMs: 100 });
        for (const { log } of [partitionOf(secret), partitionOf(store)]) {
          await expect(log.head()).rejects.toSatisfy(isFault("STORE_UNAVAILABLE"));
          await expect(log.poll(startOf(0), 1, never)).rejects.toSatisfy(isFault("STORE_UNAVAILABLE"));
        }
        await secret.close();
        expect(logger.lines).toHaveLength(2);
        expect(logger.lines.join()).not.toContain("secret-word");
        await late.restart();
        await v.until(
          "the store to be there",
          async () =>
            (await logOf(store)
              .head()
              .catch(() => undefined)) !== undefined,
        );
        expect((await v.fill(logOf(store), 1)).revision).toBe(1);
      } finally {
        await late.stop();
      }
    });

    test("a replica cannot be written to", async () => {
      const replica = await startRedis("--replicaof", "127.0.0.1", String(redis.port));
      try {
        await redis.flush();
        await using primary = await opened(redis);
        await v.fill(logOf(primary), 1);
        await v.until("the replica to follow", async () => (await replica.admin.exists("toolcrib:meta")) === 1);
        await using store = await opened(replica, { openTimeoutMs: 300 });
        await expect(logOf(store).commit(v.step("t", { after: v.record("t", []) }))).rejects.toSatisfy(
          isFault("STORE_UNAVAILABLE"),
        );
      } finally {
        await replica.stop();
      }
    });

    test("the number of partitions is fixed when the store is created", async () => {
      await redis.flush();
      await using store = await opened(redis, { partitions: 3 });
      expect(store.partitions.map((p) => p.partition)).toEqual([0, 1, 2]);
      const [first, second] = store.partitions;
      await v.fill(first!.log, 2);
      expect((await second!.log.head()).revision).toBe(0);
      expect((await v.fill(second!.log, 1)).partition).toBe(1);
      await expect(opened(redis, { partitions: 2 })).rejects.toThrow(
        "was created with 3 partitions, and 2 were asked for",
      );
    });

    test("bad settings are refused in one sentence without the password", async () => {
      const error = await opened(redis, { url: "http://user:secret-word@host" }).catch((e: unknown) => e);
      expect(String(error)).toMatch(/must be redis:\/\/host/);
      expect(String(error)).not.toContain("secret-word");
      await expect(opened(redis, { keyPrefix: "a{b}" })).rejects.toThrow("must not hold braces");
    });

    test("a snapshot whose log was trimmed meanwhile starts over", async () => {
      await redis.flush();
      const window = { revisions: 3, bytes: 1_000_000 };
      await using store = await opened(redis, { window });
      await using reader = await opened(redis, { window });
      await v.fill(logOf(store), 300);
      let stop = false;
      const writing = (async () => {
        while (!stop) {
          const { records } = await logOf(store).snapshot();
          const before = records.find((r) => r.header.serverId === "s7");
          const after = v.record("s7", [v.tool("s7", "one", String(before?.revision))]);
          await v.commit(logOf(store), "s7", { before, after });
        }
      })();
      try {
        for (let i = 0; i < 10; i++) {
          const { position, records, entries } = await logOf(reader).snapshot();
          expect(records).toHaveLength(300);
          expect(entries.at(-1)?.position).toEqual(position);
          expect(Math.max(...records.map((r) => r.revision))).toBe(position.revision);
        }
      } finally {
        stop = true;
        await writing;
      }
    });

    test("a stream that is ahead of its head refuses the commit and changes nothing else", async () => {
      await redis.flush();
      await using store = await opened(redis);
      await v.fill(logOf(store), 3);
      await redis.admin.del(partitionKeys("toolcrib:", 0).head);
      const commit = v.step("t", { after: v.record("t", []), leases: [v.grant("l")] });
      await expect(logOf(store).commit(commit)).rejects.toThrow(/equal or smaller/);
      expect(await partitionOf(store).leases.renew(["l"])).toEqual(["unknown"]);
    });
  });
});

type Settings = Partial<Parameters<typeof openRedisStore>[0]>;

async function opened(server: TestRedis, settings: Settings = {}): Promise<Store & AsyncDisposable> {
  const store = await openRedisStore({ url: server.url, random: v.random, logger: v.silent, ...settings });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

function isFault(reason: string) {
  return (error: unknown): boolean => error instanceof Fault && error.reason === reason;
}

async function cutTails(server: TestRedis): Promise<void> {
  const list = String(await server.admin.client("LIST"));
  for (const line of list.split("\n")) {
    const id = /^id=(\d+)/.exec(line)?.[1];
    if (id && line.includes("name=toolcrib-tail")) await server.admin.client("KILL", "ID", id);
  }
}
