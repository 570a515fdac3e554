/** Checks of leases. */
import assert from "node:assert/strict";
import { LIMITS } from "../../src/domain/limits.js";
import type { Check } from "./check.js";
import { logOf, partitionOf } from "./check.js";
import * as v from "./values.js";

const SECOND = 1_000;
const empty = (id: string) => v.record(id, []);

export const LEASE_CHECKS: readonly Check[] = [
  {
    name: "a lease is due when its time is over, and renewing gives it a whole TTL again",
    async run({ store, other, elapse }) {
      const { leases } = partitionOf(store);
      await v.commit(logOf(store), "s", { after: empty("s"), leases: [v.grant("a"), v.grant("b", "s", 60 * SECOND)] });
      const early = await leases.due(10);
      assert.deepEqual([early.total, early.dueTotal, early.due.length], [2, 0, 0]);
      await elapse(11 * SECOND);
      const late = await partitionOf(other).leases.due(10);
      assert.deepEqual([late.total, late.dueTotal], [2, 1]);
      const [due] = late.due;
      assert(due && due.endedAtMs <= late.nowMs);
      const { endedAtMs: _, ...facts } = due;
      assert.deepEqual(facts, {
        leaseId: "a",
        namespace: "default",
        serverId: "s",
        instanceId: "instance-a",
        ttlMs: 10 * SECOND,
        braked: false,
      });
      assert.deepEqual(await leases.renew(["nobody", "a", "b"]), ["unknown", "renewed", "renewed"]);
      assert.equal((await leases.due(10)).dueTotal, 0);
      await elapse(11 * SECOND);
      assert.equal((await leases.due(10)).dueTotal, 1);
    },
  },
  {
    name: "due leases come longest overdue first, at most the limit",
    async run({ store, elapse }) {
      const grants = [30, 10, 20, 50, 40].map((s) => v.grant(`l${s}`, "s", s * SECOND));
      await v.commit(logOf(store), "s", { after: empty("s"), leases: grants });
      await elapse(45 * SECOND);
      const { due, dueTotal, total } = await partitionOf(store).leases.due(3);
      assert.deepEqual([total, dueTotal], [5, 4]);
      assert.deepEqual(
        due.map((l) => l.leaseId),
        ["l10", "l20", "l30"],
      );
    },
  },
  {
    name: "the brake extends once, is remembered, and a renewal ends it",
    async run({ store, elapse }) {
      const { leases } = partitionOf(store);
      const long = v.grant("long", "s", 60 * SECOND);
      await v.commit(logOf(store), "s", { after: empty("s"), leases: [v.grant("a"), v.grant("b"), long] });
      await elapse(11 * SECOND);
      await leases.extend(["a", "b", "long", "nobody"]);
      assert.deepEqual([(await leases.due(10)).dueTotal, (await leases.due(10)).total], [0, 3]);
      await leases.renew(["b"]);
      await elapse(11 * SECOND);
      const { due } = await leases.due(10);
      assert.deepEqual(due.map((l) => [l.leaseId, l.braked]).sort(), [
        ["a", true],
        ["b", false],
      ]);
      assert.deepEqual(await leases.renew(["nobody"]), ["unknown"]);
      await elapse(60 * SECOND);
      assert.equal((await leases.due(10)).due.find((l) => l.leaseId === "long")?.braked, true);
    },
  },
  {
    name: "extending never shortens a lease",
    async run({ store, elapse }) {
      const { leases } = partitionOf(store);
      await v.commit(logOf(store), "s", { after: empty("s"), leases: [v.grant("a", "s", 60 * SECOND)] });
      const before = { revision: 1, ...empty("s") };
      await v.commit(logOf(store), "s", { before, after: empty("s"), leases: [v.grant("a", "s", 60 * SECOND)] });
      await leases.extend(["a"]);
      await elapse(59 * SECOND);
      assert.equal((await leases.due(1)).dueTotal, 0);
    },
  },
  {
    name: "granting a lease again sets its length and end",
    async run({ store, elapse }) {
      const { leases } = partitionOf(store);
      await v.commit(logOf(store), "s", { after: empty("s"), leases: [v.grant("a", "s", 10 * SECOND)] });
      await elapse(9 * SECOND);
      const before = { revision: 1, ...empty("s") };
      await v.commit(logOf(store), "s", { before, after: empty("s"), leases: [v.grant("a", "s", 20 * SECOND)] });
      await elapse(15 * SECOND);
      assert.deepEqual([(await leases.due(1)).total, (await leases.due(1)).dueTotal], [1, 0]);
      await leases.renew(["a"]);
      await elapse(15 * SECOND);
      assert.equal((await leases.due(1)).dueTotal, 0);
      await elapse(6 * SECOND);
      assert.equal((await leases.due(1)).due[0]?.ttlMs, 20 * SECOND);
    },
  },
  {
    name: "a buried lease answers ended for as long as its tombstone stands, another one is unknown",
    async run({ store, other, elapse }) {
      const { leases } = partitionOf(store);
      await v.commit(logOf(store), "s", { after: empty("s"), leases: [v.grant("a"), v.grant("b")] });
      const before = { revision: 1, ...empty("s") };
      await v.commit(logOf(store), "s", { before, leases: [v.end("a", true), v.end("b", false)] });
      assert.deepEqual(await partitionOf(other).leases.renew(["a", "b"]), ["ended", "unknown"]);
      assert.equal((await leases.due(1)).total, 0);
      await elapse(LIMITS.tombstoneMs - 60 * SECOND);
      assert.deepEqual(await leases.renew(["a"]), ["ended"]);
      await elapse(61 * SECOND);
      assert.deepEqual(await leases.renew(["a"]), ["unknown"]);
    },
  },
  {
    name: "a server removed on purpose is buried until its tombstone falls or it comes again",
    async run({ store, other, elapse }) {
      const log = logOf(store);
      const { leases } = partitionOf(other);
      const ask = (id: string) => leases.buried("default", id);
      for (const [id, bury] of [
        ["a", true],
        ["b", false],
        ["c", true],
      ] as const) {
        const at = await v.commit(log, id, { after: empty(id) });
        await v.commit(log, id, { before: { revision: at.revision, ...empty(id) }, bury });
      }
      assert.deepEqual([await ask("a"), await ask("b"), await ask("c"), await ask("d")], [true, false, true, false]);
      assert.equal(await leases.buried("elsewhere", "a"), false);
      await v.commit(log, "c", { after: empty("c") });
      assert.equal(await ask("c"), false);
      await elapse(LIMITS.tombstoneMs + SECOND);
      assert.equal(await ask("a"), false);
    },
  },
  {
    name: "an expiry is refused when the lease was renewed or is gone, and changes nothing then",
    async run({ store, elapse }) {
      const log = logOf(store);
      const { leases } = partitionOf(store);
      await v.commit(log, "s", { after: empty("s"), leases: [v.grant("a"), v.grant("b")] });
      const expire = (...due: string[]) =>
        v.step("s", {
          before: { revision: 1, ...empty("s") },
          cause: "expire",
          requireDue: due,
          leases: [v.end("a", false), v.end("b", false)],
        });
      assert.deepEqual(await log.commit(expire("a")), { kind: "not-due", leaseId: "a" });
      await elapse(11 * SECOND);
      await leases.renew(["b"]);
      assert.deepEqual(await log.commit(expire("a", "b")), { kind: "not-due", leaseId: "b" });
      assert.deepEqual(await log.commit(expire("gone")), { kind: "not-due", leaseId: "gone" });
      assert.equal((await log.head()).revision, 1);
      assert.deepEqual([(await leases.due(9)).total, (await log.snapshot()).records.length], [2, 1]);
      assert.equal(await v.resultOf(log, expire("a")), "committed");
      assert.deepEqual([(await leases.due(9)).total, (await log.snapshot()).records.length], [0, 0]);
    },
  },
  {
    name: "a renewal that races an expiry wins or loses whole",
    async run({ store, other, elapse }) {
      for (let i = 0; i < 20; i++) {
        const id = `s${i}`;
        const at = await v.commit(logOf(store), id, { after: empty(id), leases: [v.grant(id, id)] });
        await elapse(11 * SECOND);
        const before = { revision: at.revision, ...empty(id) };
        const expiry = v.step(id, { before, cause: "expire", requireDue: [id], leases: [v.end(id, false)] });
        const renew = () => partitionOf(other).leases.renew([id]);
        const early = i % 2 ? renew() : undefined;
        const expiring = logOf(store).commit(expiry);
        const [[renewed], result] = await Promise.all([early ?? renew(), expiring]);
        assert.equal(renewed === "renewed", result.kind === "not-due", `renewal ${renewed}, expiry ${result.kind}`);
      }
    },
  },
  {
    name: "one answer per lease id, in order, repeated ids included",
    async run({ store }) {
      const ids = Array.from({ length: LIMITS.renewLeases }, (_, i) => `lease-${i % 600}`);
      const grants = Array.from({ length: 200 }, (_, i) => v.grant(`lease-${i * 2}`));
      await v.commit(logOf(store), "s", { after: empty("s"), leases: grants });
      const answers = await partitionOf(store).leases.renew(ids);
      const expected = ids.map((id) =>
        Number(id.slice(6)) < 400 && Number(id.slice(6)) % 2 === 0 ? "renewed" : "unknown",
      );
      assert.deepEqual(answers, expected);
      assert.deepEqual(await partitionOf(store).leases.renew([]), []);
    },
  },
];
