/** Checks of blobs and notes. */
import assert from "node:assert/strict";
import { LIMITS } from "../../src/domain/limits.js";
import type { Check } from "./check.js";
import { partitionOf, plain } from "./check.js";
import * as v from "./values.js";

const SECOND = 1_000;
const bytes = (text: string) => Buffer.from(text);

export const BLOB_CHECKS: readonly Check[] = [
  {
    name: "the first bytes put under a digest are kept, all bytes survive",
    async run({ store, other }) {
      const { blobs } = partitionOf(store);
      await blobs.put("default", [{ digest: "d1", bytes: v.NASTY, fetchedAtMs: 5 }]);
      await partitionOf(other).blobs.put("default", [
        { digest: "d1", bytes: bytes("second"), fetchedAtMs: 6 },
        { digest: "d2", bytes: bytes("two"), fetchedAtMs: 7 },
        { digest: "d2", bytes: bytes("two again"), fetchedAtMs: 8 },
        { digest: "empty", bytes: bytes(""), fetchedAtMs: 9 },
      ]);
      const answers = await partitionOf(other).blobs.get("default", ["d2", "absent", "d1", "empty"]);
      assert.deepEqual(
        plain(answers),
        plain([
          { digest: "d2", bytes: bytes("two"), fetchedAtMs: 7 },
          undefined,
          { digest: "d1", bytes: v.NASTY, fetchedAtMs: 5 },
          { digest: "empty", bytes: bytes(""), fetchedAtMs: 9 },
        ]),
      );
      assert.deepEqual(await blobs.get("default", []), []);
      await blobs.put("default", []);
    },
  },
  {
    name: "a namespace sees only its own blobs",
    async run({ store }) {
      const { blobs } = partitionOf(store);
      await blobs.put("one", [{ digest: "d", bytes: bytes("one's"), fetchedAtMs: 1 }]);
      assert.deepEqual(await blobs.get("two", ["d"]), [undefined]);
      await blobs.put("two", [{ digest: "d", bytes: bytes("two's"), fetchedAtMs: 2 }]);
      const [[one], [two]] = await Promise.all([blobs.get("one", ["d"]), blobs.get("two", ["d"])]);
      assert.deepEqual(plain([one?.bytes, two?.bytes]), plain([bytes("one's"), bytes("two's")]));
    },
  },
  {
    name: "a sweep removes only what nobody put or touched for long",
    async run({ store, elapse }) {
      const { blobs } = partitionOf(store);
      const put = (namespace: string, ...digests: string[]) =>
        blobs.put(
          namespace,
          digests.map((digest) => ({ digest, bytes: bytes(digest), fetchedAtMs: 1 })),
        );
      await put("one", "old", "touched", "put-again");
      await put("two", "old", "also-old");
      await elapse(100 * SECOND);
      await blobs.touch("one", ["touched", "absent"]);
      await put("one", "put-again", "new");
      assert.equal(await blobs.sweep(1_000 * SECOND), 0);
      assert.equal(await blobs.sweep(50 * SECOND), 3);
      const kept = await blobs.get("one", ["old", "touched", "put-again", "new", "absent"]);
      assert.deepEqual(
        kept.map((b) => b?.digest),
        [undefined, "touched", "put-again", "new", undefined],
      );
      assert.deepEqual(await blobs.get("two", ["old", "also-old"]), [undefined, undefined]);
      await put("two", "old");
      assert.equal((await blobs.get("two", ["old"]))[0]?.digest, "old");
    },
  },
  {
    name: "large blobs and many of them survive",
    async run({ store, other }) {
      const blobs = Array.from({ length: 40 }, (_, i) => ({
        digest: `d${i}`,
        bytes: Buffer.alloc(i === 0 ? LIMITS.definitionBytes : 100_000, i),
        fetchedAtMs: i,
      }));
      await partitionOf(store).blobs.put("default", blobs);
      const back = await partitionOf(other).blobs.get(
        "default",
        blobs.map((b) => b.digest),
      );
      back.forEach((b, i) =>
        assert(b && Buffer.compare(b.bytes, blobs[i]?.bytes ?? bytes("")) === 0, `blob ${i} differs`),
      );
    },
  },
];

export const NOTE_CHECKS: readonly Check[] = [
  {
    name: "a note is written by compare-and-set, versions never come again",
    async run({ store, other }) {
      const { notes } = partitionOf(store);
      const there = partitionOf(other).notes;
      assert.equal(await notes.get("k"), undefined);
      assert.equal(await notes.put("k", bytes("x"), 60 * SECOND, 5), undefined);
      const one = await notes.put("k", v.NASTY, 60 * SECOND, 0);
      assert(one !== undefined && one !== 0);
      assert.deepEqual(plain(await there.get("k")), plain({ bytes: v.NASTY, version: one }));
      assert.equal(await there.put("k", bytes("y"), 60 * SECOND, 0), undefined);
      const two = await there.put("k", bytes("y"), 60 * SECOND, one);
      const three = await notes.put("k", bytes("z"), 60 * SECOND);
      assert(two !== undefined && three !== undefined && new Set([one, two, three]).size === 3);
      assert.equal(await notes.remove("k", two), false);
      assert.equal(await notes.remove("k", three), true);
      assert.equal(await there.get("k"), undefined);
      assert.equal(await notes.remove("k", three), false);
      assert.equal(await notes.remove("k", 0), false);
      const four = await notes.put("k", bytes("w"), 60 * SECOND, 0);
      assert(four !== undefined && four > three);
      assert.equal(await notes.get("other"), undefined);
    },
  },
  {
    name: "an expired note is as absent as one that never was",
    async run({ store, elapse }) {
      const { notes } = partitionOf(store);
      const one = await notes.put("k", bytes("x"), 10 * SECOND, 0);
      await notes.put("long", bytes("x"), 3_600 * SECOND, 0);
      assert(one !== undefined);
      await elapse(11 * SECOND);
      assert.equal(await notes.get("k"), undefined);
      assert.equal(await notes.remove("k", one), false);
      assert.equal(await notes.put("k", bytes("y"), 10 * SECOND, one), undefined);
      const two = await notes.put("k", bytes("y"), 10 * SECOND, 0);
      assert(two !== undefined && two !== one);
      assert.equal((await notes.get("long"))?.bytes.byteLength, 1);
    },
  },
  {
    name: "of 20 concurrent claims exactly one wins",
    async run({ store, other }) {
      const claims = Array.from({ length: 20 }, (_, i) =>
        partitionOf(i % 2 ? store : other).notes.put("claim", bytes(String(i)), 60 * SECOND, 0),
      );
      const versions = await Promise.all(claims);
      assert.equal(versions.filter((x) => x !== undefined).length, 1);
      const winner = versions.findIndex((x) => x !== undefined);
      const note = await partitionOf(store).notes.get("claim");
      assert.deepEqual([Buffer.from(note?.bytes ?? []).toString(), note?.version], [String(winner), versions[winner]]);
    },
  },
];
