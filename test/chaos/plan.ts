/** Which faults come when: decided by the seed alone, before anything runs. */
import { SeededRandom } from "../support/fake-clock.js";
import type { Topology } from "./options.js";

export type FaultKind =
  | "replica-kill"
  | "replica-freeze"
  | "replica-roll"
  | "redis-failover"
  | "redis-kill"
  | "redis-freeze"
  | "flush"
  | "client-pause"
  | "wire-cut"
  | "wire-slow"
  | "wire-hole"
  | "registrar-kill"
  | "servers-down"
  | "watchers-drop"
  | "clock-jump"
  | "slot-move";

export interface PlannedFault {
  /** From the beginning of the faults. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** How long the world stays like that, where that is ours to say. */
  readonly ms: number;
  /** Index of the replica, the registrar process, the partition; taken modulo how many there are. */
  readonly target: number;
  /** Of a delay or a clock: how much. */
  readonly amount: number;
}

interface Rule {
  /** Shortest and longest duration; the time of a fault that ends by itself is a guess. */
  readonly ms: readonly [number, number];
  /** Until the next fault, so that the world may come to rest. */
  readonly restMs: number;
}

const RULES: Record<FaultKind, Rule> = {
  "replica-kill": { ms: [500, 3_000], restMs: 8_000 },
  "replica-freeze": { ms: [5_000, 20_000], restMs: 8_000 },
  "replica-roll": { ms: [5_000, 5_000], restMs: 6_000 },
  "redis-failover": { ms: [2_000, 2_000], restMs: 12_000 },
  "redis-kill": { ms: [4_000, 4_000], restMs: 20_000 },
  "redis-freeze": { ms: [3_000, 6_000], restMs: 20_000 },
  flush: { ms: [0, 0], restMs: 24_000 },
  "client-pause": { ms: [2_000, 6_000], restMs: 6_000 },
  "wire-cut": { ms: [1_000, 8_000], restMs: 6_000 },
  "wire-slow": { ms: [4_000, 10_000], restMs: 4_000 },
  "wire-hole": { ms: [3_000, 12_000], restMs: 8_000 },
  "registrar-kill": { ms: [500, 3_000], restMs: 4_000 },
  "servers-down": { ms: [5_000, 12_000], restMs: 2_000 },
  "watchers-drop": { ms: [0, 0], restMs: 3_000 },
  "clock-jump": { ms: [5_000, 15_000], restMs: 5_000 },
  "slot-move": { ms: [2_000, 2_000], restMs: 4_000 },
};

const EVERYWHERE: readonly FaultKind[] = [
  "replica-kill",
  "replica-freeze",
  "replica-roll",
  "redis-kill",
  "redis-freeze",
  "flush",
  "client-pause",
  "wire-cut",
  "wire-slow",
  "wire-hole",
  "registrar-kill",
  "servers-down",
  "watchers-drop",
];

export interface PlanFacts {
  readonly seed: number;
  readonly minutes: number;
  readonly topology: Topology;
  readonly clocks: boolean;
}

/** Every kind comes once before any comes again; one fault in four follows the one before without a rest. */
export function planOf({ seed, minutes, topology, clocks }: PlanFacts): PlannedFault[] {
  const random = new SeededRandom(seed);
  const kinds = [...EVERYWHERE];
  // A single Redis has nobody to fail over to.
  if (topology !== "single") kinds.push("redis-failover");
  if (topology === "cluster") kinds.push("slot-move", "slot-move");
  if (clocks) kinds.push("clock-jump");
  const endMs = minutes * 60_000;
  // In a short run a long fault would be most of it.
  const longestMs = Math.max(3_000, endMs / 8);
  const plan: PlannedFault[] = [];
  let deck: FaultKind[] = [];
  for (let atMs = 2_000; ; ) {
    if (deck.length === 0) deck = shuffled(kinds, random);
    const kind = deck.pop() as FaultKind;
    const { ms: [least, most], restMs } = RULES[kind];
    const ms = Math.round(Math.min(longestMs, least + random.next() * (most - least)));
    const fault = { atMs: Math.round(atMs), kind, ms, target: Math.floor(random.next() * 1_000), amount: amountOf(kind, random) };
    const rushed = random.next() < 0.25;
    if (fault.atMs + ms > endMs) return plan;
    plan.push(fault);
    atMs += ms + 500 + (rushed ? 0 : restMs * (0.5 + random.next() * 0.5) * Math.min(1, minutes / 2));
  }
}

function amountOf(kind: FaultKind, random: SeededRandom): number {
  const draw = random.next();
  if (kind === "clock-jump") return draw < 0.5 ? -300 : 300;
  return kind === "wire-slow" ? Math.round(20 + draw * 180) : 0;
}

function shuffled<T>(all: readonly T[], random: SeededRandom): T[] {
  const out = [...all];
  for (let i = out.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [out[i], out[j]] = [out[j] as T, out[i] as T];
  }
  return out;
}

export function describe({ atMs, kind, ms, target, amount }: PlannedFault): string {
  const much = kind === "clock-jump" ? ` ${amount > 0 ? "+" : ""}${amount} s` : kind === "wire-slow" ? ` ${amount} ms` : "";
  return `${(atMs / 1_000).toFixed(1).padStart(7)} s  ${kind}${much}${ms > 0 ? ` for ${(ms / 1_000).toFixed(1)} s` : ""} (target ${target})`;
}
