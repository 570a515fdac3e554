/** Stores, leases and use-cases that break P5 to P7. */
import type { PartitionStore } from "../../../src/catalogue/ports.js";
import type { Broken } from "../site.js";
import type { Mutant } from "./mutant.js";

type Commit = Parameters<PartitionStore["log"]["commit"]>[0];

/** A store that makes something else of each commit. */
function committing(change: (commit: Commit) => Commit): Broken {
  return { store: ({ log }) => ({ log: { ...log, commit: (c) => log.commit(change(c)), ...bound(log) } }) };
}

function bound(log: PartitionStore["log"]): Pick<PartitionStore["log"], "snapshot" | "head" | "poll"> {
  return { snapshot: () => log.snapshot(), head: () => log.head(), poll: (...args) => log.poll(...args) };
}

function boundLeases(leases: PartitionStore["leases"]): PartitionStore["leases"] {
  return {
    renew: (ids) => leases.renew(ids),
    due: (limit) => leases.due(limit),
    extend: (ids) => leases.extend(ids),
    buried: (namespace, serverId) => leases.buried(namespace, serverId),
  };
}

const half = <T>(list: readonly T[]): readonly T[] => list.slice(0, Math.ceil(list.length / 2));

const halves = committing((c) =>
  c.record && c.change.cause === "register"
    ? { ...c, record: { ...c.record, tools: half(c.record.tools) }, change: { ...c.change, tools: half(c.change.tools) } }
    : c,
);

export const WRITING: readonly Mutant[] = [
  { promise: "P5", name: "a store that commits half of the tools", script: "day", parts: { everywhere: halves } },
  {
    promise: "P5",
    name: "a store that commits one tool, answers, and commits the others a moment later",
    script: "day",
    parts: {
      everywhere: {
        store: ({ log }) => ({
          log: {
            ...bound(log),
            async commit(c) {
              if (!c.record || c.change.cause !== "register" || c.change.tools.length < 2 || c.expect !== 0) return log.commit(c);
              const [first, ...rest] = c.change.tools;
              if (!first?.after) return log.commit(c);
              const one = await log.commit({ ...c, record: { ...c.record, tools: [first.after] }, change: { ...c.change, tools: [first] } });
              if (one.kind !== "committed") return one;
              const { seen: _, ...later } = c;
              await log.commit({ ...later, expect: one.position.revision, leases: [], change: { ...c.change, tools: rest, availabilityBefore: "available" } });
              return one;
            },
          },
        }),
      },
    },
  },
  {
    promise: "P5",
    name: "a registry that commits every repetition",
    script: "day",
    parts: { broken: { api: (real) => ({ register: (input, ...who) => real.register({ ...input, requestId: "", title: "again" }, ...who) }) } },
  },
  {
    promise: "P6",
    name: "a sweeper that expires early",
    script: "leases",
    parts: {
      everywhere: {
        store: ({ log, leases }) => {
          const granted = new Map<string, Commit["leases"][number] & { kind: "grant" }>();
          return {
            log: {
              ...bound(log),
              commit({ requireDue: _, ...c }) {
                for (const effect of c.leases) if (effect.kind === "grant") granted.set(effect.leaseId, effect);
                return log.commit(c);
              },
            },
            leases: {
              ...boundLeases(leases),
              async due(limit) {
                const real = await leases.due(limit);
                const early = [...granted.values()].filter((g) => g.serverId === "kept").slice(0, 1);
                const due = early.map((g) => ({ ...g, endedAtMs: real.nowMs, braked: false }));
                return { ...real, dueTotal: due.length, due };
              },
            },
          };
        },
      },
    },
  },
  {
    promise: "P6",
    name: "a store that counts the TTL from the grant, whatever was renewed",
    script: "leases",
    parts: {
      everywhere: {
        store: ({ log, leases }) => ({
          log: { ...bound(log), commit: ({ requireDue: _, ...c }) => log.commit(c) },
          leases: { ...boundLeases(leases), renew: async (ids) => ids.map(() => "renewed") },
        }),
      },
    },
  },
  {
    promise: "P6",
    name: "a Deregister of an old lease that takes its whole server",
    script: "leases",
    parts: {
      broken: {
        api: (real) => ({
          deregister: (namespace, target, ...who) =>
            real.deregister(namespace, target.kind === "lease" ? { kind: "server", serverId: "shop" } : target, ...who),
        }),
      },
    },
  },
  {
    promise: "P7",
    name: "a registry that forgets standing servers when the store loses them",
    script: "flushed",
    parts: { everywhere: { store: ({ leases }) => ({ leases: { ...boundLeases(leases), buried: async () => true } }) } },
  },
  {
    promise: "P7",
    name: "a replica that never notices that its log is another one",
    script: "flushed",
    parts: {
      broken: {
        store: ({ log }) => ({
          log: {
            ...bound(log),
            commit: (c) => log.commit(c),
            async poll(after, limit, signal) {
              const result = await log.poll(after, limit, signal);
              if (result.kind === "entries") return result;
              await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
              return { kind: "entries", entries: [] };
            },
          },
        }),
      },
    },
  },
];
