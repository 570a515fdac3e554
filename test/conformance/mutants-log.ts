/** Broken logs. */
import type { Log } from "../../src/catalogue/ports.js";
import { startOf } from "../../src/domain/revision.js";
import { never } from "./check.js";
import { memoryHarness, openMemory } from "./memory.harness.js";
import type { Mutant } from "./mutate.js";
import { mutated } from "./mutate.js";
import type { OpenHarness } from "./store.suite.js";

const POLL = "a poll answers what is there, in order, at most the limit";
const WHOLE = "a commit is seen whole by another replica: record, entry, lease";
const CHAIN = "another chain is noticed, at the head and before it";
const REFUSED = "a commit whose expectation fails changes nothing, leases included";

function polling(change: (log: Log) => Log["poll"]): OpenHarness {
  return mutated(({ log }) => ({ log: { poll: change(log) } }));
}

/** What is no text becomes a question mark. */
const asText = (byte: number): number => (byte > 0xfd ? 0x3f : byte);

export const LOG_MUTANTS: readonly Mutant[] = [
  {
    name: "does not ask at which place a commit was decided",
    caughtBy: "a commit decided at a place that this log does not hold is refused: revisions recur in another log",
    open: mutated(({ log }) => ({ log: { commit: ({ seen: _, ...commit }) => log.commit(commit) } })),
  },
  {
    name: "loses an entry",
    caughtBy: POLL,
    open: polling((log) => async (after, limit, signal) => {
      const result = await log.poll(after, limit, signal);
      if (result.kind === "broken") return result;
      return { ...result, entries: result.entries.filter((e) => e.position.revision !== 5) };
    }),
  },
  {
    name: "reorders entries",
    caughtBy: POLL,
    open: polling((log) => async (after, limit, signal) => {
      const result = await log.poll(after, limit, signal);
      return result.kind === "broken" ? result : { ...result, entries: [...result.entries].reverse() };
    }),
  },
  {
    name: "ignores the limit",
    caughtBy: POLL,
    open: polling((log) => (after, _, signal) => log.poll(after, 99, signal)),
  },
  {
    name: "answers from the start, whatever was asked",
    caughtBy: "a poll that waits gets what is committed meanwhile",
    open: polling((log) => (_, limit, signal) => log.poll(startOf(0), limit, signal)),
  },
  {
    name: "waits on after an abort",
    caughtBy: "a poll at the head answers nothing, and an aborted one answers first",
    open: polling((log) => {
      let last: Promise<unknown> = Promise.resolve();
      return (after, limit) => {
        const turn = last.then(() => log.poll(after, limit, never));
        last = turn;
        return turn;
      };
    }),
  },
  {
    name: "forgets chains",
    caughtBy: CHAIN,
    open: polling((log) => async (after, limit, signal) => {
      const { entries, position, base } = await log.snapshot();
      const places = [base, ...entries.map((e) => e.position), position];
      return log.poll(places.find((p) => p.revision === after.revision) ?? after, limit, signal);
    }),
  },
  {
    name: "does not notice a place ahead of it",
    caughtBy: "a place ahead of the log is noticed",
    open: polling((log) => async (after, limit, signal) => {
      const head = await log.head();
      return after.revision > head.revision ? { kind: "entries", entries: [] } : log.poll(after, limit, signal);
    }),
  },
  {
    name: "reads past trimmed entries without a word",
    caughtBy: "a place whose next entry was trimmed is compacted, the one before the oldest kept is not",
    open: polling((log) => async (after, limit, signal) => {
      const { base } = await log.snapshot();
      return log.poll(after.revision < base.revision ? base : after, limit, signal);
    }),
  },
  {
    name: "never trims",
    caughtBy: "the window keeps the newest entries by count",
    open: () => openMemory(undefined),
  },
  {
    name: "trims by count only",
    caughtBy: "the window keeps the newest entries by bytes, the last one always",
    open: (window) => openMemory(window && { ...window, bytes: Number.MAX_SAFE_INTEGER }),
  },
  {
    name: "begins every history with the same chain",
    caughtBy: "two histories that begin alike have different chains",
    open: memoryHarness({ next: () => 0.5, id: () => "0".repeat(32) }),
  },
  {
    name: "ignores the expectation",
    caughtBy: REFUSED,
    open: mutated(({ log }) => ({
      log: {
        async commit(commit) {
          const result = await log.commit(commit);
          return result.kind === "conflict" ? log.commit({ ...commit, expect: result.revision }) : result;
        },
      },
    })),
  },
  {
    name: "lets two commits with one expectation win",
    caughtBy: "of 20 concurrent commits with one expectation exactly one wins",
    open: mutated(({ log }) => {
      let generous = 1;
      return {
        log: {
          async commit(commit) {
            const result = await log.commit(commit);
            const again = result.kind === "conflict" && generous-- > 0;
            return again ? log.commit({ ...commit, expect: result.revision }) : result;
          },
        },
      };
    }),
  },
  {
    name: "applies leases without the commit",
    caughtBy: REFUSED,
    open: mutated(({ log, leases }) => {
      const granted = new Set<string>();
      return {
        log: {
          commit(commit) {
            for (const effect of commit.leases) if (effect.kind === "grant") granted.add(effect.leaseId);
            return log.commit(commit);
          },
        },
        leases: {
          async renew(ids) {
            const answers = await leases.renew(ids);
            return answers.map((a, i) => (granted.has(ids[i] ?? "") ? "renewed" : a));
          },
        },
      };
    }),
  },
  {
    name: "commits without the leases",
    caughtBy: WHOLE,
    open: mutated(({ log }) => ({ log: { commit: (commit) => log.commit({ ...commit, leases: [] }) } })),
  },
  {
    name: "commits the entry without the record",
    caughtBy: WHOLE,
    open: mutated(({ log }) => ({ log: { commit: (commit) => log.commit({ ...commit, record: null }) } })),
  },
  {
    name: "acknowledges what it did not keep",
    caughtBy: WHOLE,
    open: mutated(() => ({
      log: { commit: async () => ({ kind: "committed", position: { ...startOf(0), revision: 1 }, atMs: 1 }) },
    })),
  },
  {
    name: "takes bytes for text",
    caughtBy: "bytes with NUL and invalid UTF-8 survive in records and entries",
    open: mutated(({ log }) => ({
      log: {
        commit: (commit) =>
          log.commit({
            ...commit,
            record: commit.record && {
              ...commit.record,
              tools: commit.record.tools.map((t) => ({ ...t, stub: t.stub.map(asText) })),
            },
          }),
      },
    })),
  },
  {
    name: "takes a snapshot in two steps",
    caughtBy: "a snapshot under concurrent commits is one consistent cut",
    open: mutated(({ log }) => ({
      log: {
        async snapshot() {
          const { records } = await log.snapshot();
          await new Promise(setImmediate);
          return { ...(await log.snapshot()), records };
        },
      },
    })),
  },
  {
    name: "answers after it was closed",
    caughtBy: "a closed store refuses every call, waiting polls included",
    open: mutated(({ log }) => {
      const head = log.head();
      return { log: { head: () => head } };
    }),
  },
];
