/** Broken leases, blobs and notes. */
import type { Mutant } from "./mutate.js";
import { mutated } from "./mutate.js";

const FIRST = "the first bytes put under a digest are kept, all bytes survive";
const CAS = "a note is written by compare-and-set, versions never come again";
const DUE = "due leases come longest overdue first, at most the limit";
const BRAKE = "the brake extends once, is remembered, and a renewal ends it";
const SWEEP = "a sweep removes only what nobody put or touched for long";

export const LEASE_MUTANTS: readonly Mutant[] = [
  {
    name: "renews a lease that nobody has",
    caughtBy: "one answer per lease id, in order, repeated ids included",
    open: mutated(() => ({ leases: { renew: async (ids) => ids.map(() => "renewed" as const) } })),
  },
  {
    name: "says renewed and does not renew",
    caughtBy: "a lease is due when its time is over, and renewing gives it a whole TTL again",
    open: mutated(() => ({
      leases: { renew: async (ids) => ids.map((id) => (id === "nobody" ? "unknown" : "renewed")) },
    })),
  },
  {
    name: "forgets that a lease was ended on purpose",
    caughtBy: "a buried lease answers ended for as long as its tombstone stands, another one is unknown",
    open: mutated(({ leases }) => ({
      leases: { renew: async (ids) => (await leases.renew(ids)).map((a) => (a === "ended" ? "unknown" : a)) },
    })),
  },
  {
    name: "expires a lease that was renewed",
    caughtBy: "an expiry is refused when the lease was renewed or is gone, and changes nothing then",
    open: mutated(({ log }) => ({ log: { commit: (commit) => log.commit({ ...commit, requireDue: [] }) } })),
  },
  {
    name: "checks a renewal before the expiry, not within it",
    caughtBy: "a renewal that races an expiry wins or loses whole",
    open: mutated(({ log, leases }) => ({
      log: {
        async commit(commit) {
          const { due } = await leases.due(99);
          const missing = commit.requireDue?.find((id) => !due.some((l) => l.leaseId === id));
          if (missing) return { kind: "not-due", leaseId: missing };
          await new Promise(setImmediate);
          return log.commit({ ...commit, requireDue: [] });
        },
      },
    })),
  },
  {
    name: "tells the newest due leases first",
    caughtBy: DUE,
    open: mutated(({ leases }) => ({
      leases: {
        async due(limit) {
          const all = await leases.due(1_000);
          return { ...all, due: [...all.due].reverse().slice(0, limit) };
        },
      },
    })),
  },
  {
    name: "counts only the due leases it tells",
    caughtBy: DUE,
    open: mutated(({ leases }) => ({
      leases: {
        async due(limit) {
          const answer = await leases.due(limit);
          return { ...answer, dueTotal: answer.due.length };
        },
      },
    })),
  },
  { name: "does not brake", caughtBy: BRAKE, open: mutated(() => ({ leases: { extend: async () => {} } })) },
  {
    name: "forgets that it braked",
    caughtBy: BRAKE,
    open: mutated(({ leases }) => ({ leases: { extend: async (ids) => void (await leases.renew(ids)) } })),
  },
  {
    name: "buries nothing",
    caughtBy: "a server removed on purpose is buried until its tombstone falls or it comes again",
    open: mutated(({ log }) => ({ log: { commit: (commit) => log.commit({ ...commit, bury: false }) } })),
  },
];

export const BESIDE_MUTANTS: readonly Mutant[] = [
  {
    name: "keeps the last bytes",
    caughtBy: FIRST,
    open: mutated(({ blobs }) => {
      const last = new Map<string, Awaited<ReturnType<typeof blobs.get>>[number]>();
      return {
        blobs: {
          async put(_, all) {
            for (const blob of all) last.set(blob.digest, blob);
          },
          get: async (_, digests) => digests.map((digest) => last.get(digest)),
        },
      };
    }),
  },
  {
    name: "takes bytes for text",
    caughtBy: FIRST,
    open: mutated(({ blobs }) => ({
      blobs: {
        async get(namespace, digests) {
          const found = await blobs.get(namespace, digests);
          return found.map((blob) => blob && { ...blob, bytes: Buffer.from(Buffer.from(blob.bytes).toString()) });
        },
      },
    })),
  },
  {
    name: "mixes namespaces",
    caughtBy: "a namespace sees only its own blobs",
    open: mutated(({ blobs }) => ({
      blobs: { put: (_, all) => blobs.put("all", all), get: (_, digests) => blobs.get("all", digests) },
    })),
  },
  { name: "does not hear a touch", caughtBy: SWEEP, open: mutated(() => ({ blobs: { touch: async () => {} } })) },
  { name: "sweeps nothing", caughtBy: SWEEP, open: mutated(() => ({ blobs: { sweep: async () => 0 } })) },
  {
    name: "writes a note whatever was expected",
    caughtBy: CAS,
    open: mutated(({ notes }) => ({ notes: { put: (key, bytes, ttlMs) => notes.put(key, bytes, ttlMs) } })),
  },
  {
    name: "compares and writes a note in two steps",
    caughtBy: "of 20 concurrent claims exactly one wins",
    open: mutated(({ notes }) => ({
      notes: {
        async put(key, bytes, ttlMs, expect) {
          const version = (await notes.get(key))?.version ?? 0;
          await new Promise(setImmediate);
          return expect !== undefined && version !== expect ? undefined : notes.put(key, bytes, ttlMs);
        },
      },
    })),
  },
  {
    name: "removes a note whatever was expected",
    caughtBy: CAS,
    open: mutated(({ notes }) => ({
      notes: {
        async remove(key) {
          const note = await notes.get(key);
          return note ? notes.remove(key, note.version) : false;
        },
      },
    })),
  },
  {
    name: "keeps notes for ever",
    caughtBy: "an expired note is as absent as one that never was",
    open: mutated(({ notes }) => ({ notes: { put: (key, bytes, _, expect) => notes.put(key, bytes, 1e9, expect) } })),
  },
];
