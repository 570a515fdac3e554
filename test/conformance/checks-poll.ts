/** Checks of following the log. */
import assert from "node:assert/strict";
import type { Entry, Log } from "../../src/catalogue/ports.js";
import { Fault } from "../../src/domain/fault.js";
import type { Position } from "../../src/domain/revision.js";
import { startOf } from "../../src/domain/revision.js";
import type { Check } from "./check.js";
import { logOf, never } from "./check.js";
import * as v from "./values.js";

export const WRONG_CHAIN = "f".repeat(16);

export const POLL_CHECKS: readonly Check[] = [
  {
    name: "a poll answers what is there, in order, at most the limit",
    async run({ store, other }) {
      await v.fill(logOf(store), 7);
      const seen = await follow(logOf(other), startOf(0), 7, 3);
      assert.deepEqual(
        seen.map((e) => e.position.revision),
        [1, 2, 3, 4, 5, 6, 7],
      );
      assert.deepEqual(seen, (await logOf(store).snapshot()).entries);
      const page = await logOf(other).poll(startOf(0), 3, never);
      assert.deepEqual(page.kind === "entries" && page.entries.map((e) => e.position.revision), [1, 2, 3]);
    },
  },
  {
    name: "a poll that waits gets what is committed meanwhile",
    async run({ store, other }) {
      const at = await v.fill(logOf(store), 1);
      const waiting = follow(logOf(other), at, 1, 10);
      await v.fill(logOf(store), 1, 1);
      assert.deepEqual(
        (await waiting).map((e) => e.position.revision),
        [2],
      );
    },
  },
  {
    name: "followers see every revision once and in order while others commit",
    async run({ store, other }) {
      const followers = [follow(logOf(store), startOf(0), 60, 4), follow(logOf(other), startOf(0), 60, 1_000)];
      await Promise.all([v.fill(logOf(store), 20), v.fill(logOf(other), 20, 20), v.fill(logOf(store), 20, 40)]);
      const expected = Array.from({ length: 60 }, (_, i) => i + 1);
      for (const seen of await Promise.all(followers)) {
        assert.deepEqual(
          seen.map((e) => e.position.revision),
          expected,
        );
        seen.reduce((prev, e) => (assert.equal(e.prev, prev), e.position.chain), "0");
      }
    },
  },
  {
    name: "a poll at the head answers nothing, and an aborted one answers first",
    async run({ store }) {
      const log = logOf(store);
      const at = await v.fill(log, 1);
      const order: string[] = [];
      const abort = new AbortController();
      const patient = log.poll(at, 10, never).then((r) => (order.push("patient"), r));
      const aborted = log.poll(at, 10, abort.signal).then((r) => (order.push("aborted"), r));
      abort.abort();
      assert.deepEqual(await aborted, { kind: "entries", entries: [] });
      assert.deepEqual(await patient, { kind: "entries", entries: [] });
      assert.deepEqual(order, ["aborted", "patient"]);
      assert.deepEqual(await log.poll(at, 10, abort.signal), { kind: "entries", entries: [] });
      await v.fill(log, 1, 1);
      assert.deepEqual(
        (await follow(log, at, 1, 10)).map((e) => e.position.revision),
        [2],
      );
    },
  },
  {
    name: "a place whose next entry was trimmed is compacted, the one before the oldest kept is not",
    window: { revisions: 4, bytes: 1_000_000 },
    async run({ store }) {
      const log = logOf(store);
      const third = await v.fill(log, 3);
      await v.fill(log, 7, 3);
      for (const after of [startOf(0), third])
        assert.deepEqual(await log.poll(after, 10, never), { kind: "broken", cause: "compacted" });
      const { base } = await log.snapshot();
      assert.equal(base.revision, 6);
      assert.deepEqual(
        (await follow(log, base, 4, 10)).map((e) => e.position.revision),
        [7, 8, 9, 10],
      );
    },
  },
  {
    name: "another chain is noticed, at the head and before it",
    async run({ store }) {
      const log = logOf(store);
      assert.deepEqual(await log.poll({ ...startOf(0), chain: WRONG_CHAIN }, 10, never), broken("chain"));
      const at = await v.fill(log, 3);
      for (const revision of [at.revision, 1, 0])
        assert.deepEqual(await log.poll({ partition: 0, revision, chain: WRONG_CHAIN }, 10, never), broken("chain"));
    },
  },
  {
    name: "a place ahead of the log is noticed",
    async run({ store }) {
      const log = logOf(store);
      await v.fill(log, 2);
      assert.deepEqual(await log.poll({ partition: 0, revision: 9, chain: WRONG_CHAIN }, 10, never), broken("ahead"));
    },
  },
  {
    name: "a closed store refuses every call, waiting polls included",
    async run({ store, other }) {
      const log = logOf(store);
      const at = await v.fill(log, 1);
      const waiting = log.poll(at, 10, never).then(
        () => "answered",
        (error: unknown) => error,
      );
      await store.close();
      assert(isUnavailable(await waiting), "the waiting poll was not refused");
      const calls = [
        () => log.head(),
        () => log.snapshot(),
        () => log.poll(at, 1, never),
        () => log.commit(v.step("t", { after: v.record("t", []) })),
        ...store.partitions.flatMap((p) => [
          () => p.leases.renew(["l"]),
          () => p.leases.due(1),
          () => p.blobs.get("default", ["d"]),
          () => p.notes.get("n"),
        ]),
      ];
      for (const call of calls) await assert.rejects(call, isUnavailable);
      if (other !== store) assert.deepEqual(await logOf(other).head(), at);
    },
  },
];

function broken(cause: string) {
  return { kind: "broken", cause };
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Fault && error.reason === "STORE_UNAVAILABLE";
}

/** Polls until `count` entries are there; each answer must follow the one before. */
export async function follow(log: Log, from: Position, count: number, limit: number): Promise<Entry[]> {
  const seen: Entry[] = [];
  let at = from;
  let idle = 0;
  while (seen.length < count) {
    const result = await log.poll(at, limit, never);
    assert(result.kind === "entries", `the follower at ${at.revision} was told: ${JSON.stringify(result)}`);
    assert(result.entries.length <= limit, `${result.entries.length} entries where at most ${limit} were asked for`);
    idle = result.entries.length === 0 ? idle + 1 : 0;
    assert(idle < 5, `nothing after revision ${at.revision}, though ${count - seen.length} entries are missing`);
    seen.push(...result.entries);
    at = result.entries.at(-1)?.position ?? at;
  }
  return seen;
}
