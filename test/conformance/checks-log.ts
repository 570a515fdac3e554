/** Checks of the log: commits, chains, snapshots. */
import assert from "node:assert/strict";
import { samePosition, startOf } from "../../src/domain/revision.js";
import { chainOf } from "../../src/store/chain.js";
import { encodeChange } from "../../src/store/codec/storage.js";
import type { Check } from "./check.js";
import { byServer, fold, logOf, never, partitionOf, plain } from "./check.js";
import * as v from "./values.js";

export const LOG_CHECKS: readonly Check[] = [
  {
    name: "an empty log is at revision 0",
    async run({ store }) {
      const log = logOf(store);
      assert.deepEqual(await log.head(), startOf(0));
      const snapshot = await log.snapshot();
      assert.deepEqual(snapshot, { position: startOf(0), records: [], base: startOf(0), entries: [] });
      assert.deepEqual(await log.poll(startOf(0), 10, never), { kind: "entries", entries: [] });
    },
  },
  {
    name: "a commit is seen whole by another replica: record, entry, lease",
    async run({ store, other }) {
      const after = v.record("s", [v.tool("s", "a"), v.nastyTool("s", "b")], [v.instance("i1", "l1")]);
      const commit = v.step("s", { after, leases: [v.grant("l1")] });
      const result = await logOf(store).commit(commit);
      assert.equal(result.kind, "committed");
      assert(result.kind === "committed");
      assert.equal(result.position.revision, 1);
      const snapshot = await logOf(other).snapshot();
      assert.deepEqual(snapshot.position, result.position);
      assert.deepEqual(await logOf(other).head(), result.position);
      const [entry] = snapshot.entries;
      assert.deepEqual(plain(entry?.change), plain(commit.change));
      assert.equal(entry?.atMs, result.atMs);
      assert.equal(entry?.bytes, encodeChange(commit.change).byteLength);
      const stamped = { ...after.header, instances: [{ ...v.instance("i1", "l1"), revision: 1 }] };
      assert.deepEqual(plain(snapshot.records), plain([{ revision: 1, header: stamped, tools: after.tools }]));
      assert.deepEqual(await partitionOf(other).leases.renew(["l1"]), ["renewed"]);
    },
  },
  {
    name: "bytes with NUL and invalid UTF-8 survive in records and entries",
    async run({ store, other }) {
      const tools = [v.nastyTool("s", "a")];
      await v.commit(logOf(store), "s", { after: v.record("s", tools) });
      const snapshot = await logOf(other).snapshot();
      assert.deepEqual(plain(snapshot.records[0]?.tools), plain(tools));
      assert.deepEqual(plain(snapshot.entries[0]?.change.tools[0]?.after), plain(tools[0]));
    },
  },
  {
    name: "a commit whose expectation fails changes nothing, leases included",
    async run({ store }) {
      const log = logOf(store);
      const after = v.record("s", [v.tool("s", "a")]);
      const at = await v.commit(log, "s", { after });
      for (const expect of [0, 2, 7]) {
        const leases = [v.grant("never")];
        const refused = await log.commit({ ...v.step("s", { after, leases }), expect });
        assert.deepEqual(refused, { kind: "conflict", revision: 1 });
      }
      const absent = await log.commit({ ...v.step("t", { after, leases: [v.grant("never")] }), expect: 1 });
      assert.deepEqual(absent, { kind: "conflict", revision: 0 });
      assert.deepEqual(await log.head(), at);
      assert.equal((await log.snapshot()).records.length, 1);
      assert.deepEqual(await partitionOf(store).leases.renew(["never"]), ["unknown"]);
    },
  },
  {
    name: "a commit decided at a place that this log does not hold is refused: revisions recur in another log",
    async run({ store }) {
      const log = logOf(store);
      const after = v.record("s", [v.tool("s", "a")]);
      const first = await v.commit(log, "s", { after });
      const elsewhere = { ...first, chain: "0123456789abcdef" };
      const refused = await log.commit({ ...v.step("s", { after }), expect: 1, seen: elsewhere });
      assert.deepEqual(refused, { kind: "conflict", revision: 1 });
      assert.deepEqual(await log.head(), first);
      const ahead = await log.commit({ ...v.step("s", { after }), expect: 1, seen: { ...first, revision: 9 } });
      assert.equal(ahead.kind, "conflict");
      const at = await log.commit({ ...v.step("s", { after }), expect: 1, seen: first });
      assert.equal(at.kind, "committed");
      // Not the head any more, but still of this log.
      assert.equal((await log.commit({ ...v.step("s", { after }), expect: 2, seen: first })).kind, "committed");
    },
  },
  {
    name: "of 20 concurrent commits with one expectation exactly one wins",
    async run({ store, other }) {
      const before = await v.commit(logOf(store), "s", { after: v.record("s", [v.tool("s", "a")]) });
      const attempts = Array.from({ length: 20 }, (_, i) => {
        const after = v.record("s", [v.tool("s", "a", `attempt ${i}`)]);
        const commit = v.step("s", { after, leases: [v.grant(`lease-${i}`)] });
        return logOf(i % 2 ? store : other).commit({ ...commit, expect: before.revision });
      });
      const results = await Promise.all(attempts);
      const won = results.filter((r) => r.kind === "committed");
      assert.equal(won.length, 1);
      for (const r of results) if (r.kind === "conflict") assert.equal(r.revision, 2);
      const snapshot = await logOf(store).snapshot();
      assert.equal(snapshot.position.revision, 2);
      assert.equal((await partitionOf(store).leases.due(1)).total, 1);
      const winner = results.findIndex((r) => r.kind === "committed");
      assert.deepEqual(plain(snapshot.records[0]?.tools), plain([v.tool("s", "a", `attempt ${winner}`)]));
    },
  },
  {
    name: "revisions are consecutive, and each chain links the one before",
    async run({ store, other }) {
      const places = await Promise.all(
        Array.from({ length: 30 }, (_, i) => v.fill(logOf(i % 2 ? store : other), 1, i)),
      );
      assert.deepEqual(
        places.map((p) => p.revision).sort((a, b) => a - b),
        Array.from({ length: 30 }, (_, i) => i + 1),
      );
      const { entries, position } = await logOf(store).snapshot();
      let prev = startOf(0);
      for (const entry of entries) {
        assert.equal(entry.position.revision, prev.revision + 1);
        assert.equal(entry.prev, prev.chain);
        if (entry.position.revision > 1)
          assert.equal(
            entry.position.chain,
            chainOf(entry.prev, entry.position.revision, encodeChange(entry.change), ""),
          );
        assert(
          places.some((p) => samePosition(p, entry.position)),
          "an entry's place was told to nobody",
        );
        prev = entry.position;
      }
      assert.deepEqual(prev, position);
    },
  },
  {
    name: "two histories that begin alike have different chains",
    async run({ store, fresh }) {
      const a = await v.fill(logOf(store), 1);
      const b = await v.fill(logOf(await fresh()), 1);
      assert.match(a.chain, /^[0-9a-f]{16}$/);
      assert.notEqual(a.chain, b.chain);
    },
  },
  {
    name: "updates and removals: the record is what the entries add up to",
    async run({ store }) {
      const log = logOf(store);
      const tools = ["a", "b", "c"].map((n) => v.tool("s", n));
      const first = v.record("s", tools, [v.instance("i1", "l1")]);
      const one = await v.commit(log, "s", { after: first });
      const kept = { ...v.instance("i1", "l1"), revision: one.revision };
      const second = v.record("s", [v.tool("s", "a", "changed"), v.tool("s", "d")], [kept, v.instance("i2", "l2")]);
      await v.commit(log, "s", { before: { revision: 1, ...first }, after: second });
      await v.fill(log, 2);
      const middle = await log.snapshot();
      assert.deepEqual(byServer(middle.records), byServer(fold(middle)));
      const instances = middle.records.find((r) => r.header.serverId === "s")?.header.instances;
      assert.deepEqual(
        instances?.map((i) => i.revision),
        [1, 2],
      );
      await v.commit(log, "s", { before: { revision: 2, ...second } });
      const last = await log.snapshot();
      assert.deepEqual(Object.keys(byServer(last.records)), ["default/s0", "default/s1"]);
      assert.equal(last.entries[4]?.change.header, null);
      assert.equal(await v.resultOf(log, { ...v.step("s", { after: first }), expect: 2 }), "conflict");
      const again = await v.commit(log, "s", { after: first });
      assert.equal(again.revision, 6);
    },
  },
  {
    name: "a snapshot under concurrent commits is one consistent cut",
    async run({ store, other }) {
      let stop = false;
      const writer = async (name: string): Promise<void> => {
        for (let i = 0; !stop; i++) {
          const id = `${name}-${i % 5}`;
          const after = v.record(id, [v.tool(id, "a", `step ${i}`), v.tool(id, `x${i % 3}`)]);
          const { records } = await logOf(store).snapshot();
          const before = records.find((r) => r.header.serverId === id);
          if (before && i % 7 === 0) await logOf(store).commit(v.step(id, { before }));
          else await logOf(store).commit(v.step(id, { before, after }));
        }
      };
      const writers = ["w1", "w2", "w3"].map(writer);
      try {
        for (let i = 0; i < 25; i++) {
          const snapshot = await logOf(other).snapshot();
          assert.deepEqual(byServer(snapshot.records), byServer(fold(snapshot)));
          assert.deepEqual(snapshot.entries.at(-1)?.position ?? startOf(0), snapshot.position);
        }
      } finally {
        stop = true;
        await Promise.all(writers);
      }
    },
  },
  {
    name: "the window keeps the newest entries by count",
    window: { revisions: 5, bytes: 1_000_000 },
    async run({ store }) {
      await v.fill(logOf(store), 12);
      const snapshot = await logOf(store).snapshot();
      assert.deepEqual(
        snapshot.entries.map((e) => e.position.revision),
        [8, 9, 10, 11, 12],
      );
      assert.equal(snapshot.base.revision, 7);
      assert.equal(snapshot.base.chain, snapshot.entries[0]?.prev);
      assert.equal(snapshot.records.length, 12);
    },
  },
  {
    name: "the window keeps the newest entries by bytes, the last one always",
    window: { revisions: 1_000, bytes: 3_000 },
    async run({ store }) {
      const log = logOf(store);
      await v.fill(log, 40);
      const { entries, base } = await log.snapshot();
      const bytes = entries.reduce((sum, e) => sum + e.bytes, 0);
      assert(bytes <= 3_000 && bytes + (entries[0]?.bytes ?? 0) > 3_000, `${bytes} bytes are kept of at most 3000`);
      assert.equal(base.revision, 40 - entries.length);
      await v.commit(log, "big", { after: v.record("big", [v.tool("big", "a", "x".repeat(5_000))]) });
      assert.deepEqual(
        (await log.snapshot()).entries.map((e) => e.position.revision),
        [41],
      );
    },
  },
];
