/** Outcomes over notes that live in a test, and reports to them. */
import { Fault } from "../../src/domain/fault.js";
import type { OutcomeReport } from "../../src/gate/api.js";
import { Outcomes } from "../../src/gate/outcomes/outcomes.js";
import type { PastStore } from "../../src/gate/ports.js";
import { FakeClock, SeededRandom } from "./fake-clock.js";

/** Notes as a store keeps them. */
export class TestNotes implements PastStore {
  readonly notes = new Map<string, { bytes: Uint8Array; version: number; untilMs: number }>();
  /** Every call fails while this is set. */
  away = false;
  gets = 0;
  puts = 0;
  private version = 0;

  constructor(private readonly clock: { now(): number }) {}

  async get(namespace: string, key: string): Promise<{ bytes: Uint8Array; version: number } | undefined> {
    this.gets++;
    if (this.away) throw new Fault("STORE_UNAVAILABLE", "away");
    const note = this.notes.get(`${namespace}/${key}`);
    return note && note.untilMs > this.clock.now() ? note : undefined;
  }

  async put(namespace: string, key: string, bytes: Uint8Array, ttlMs: number, expect: number): Promise<number | undefined> {
    this.puts++;
    if (this.away) throw new Fault("STORE_UNAVAILABLE", "away");
    const held = await this.get(namespace, key);
    if ((held?.version ?? 0) !== expect) return undefined;
    const version = ++this.version;
    this.notes.set(`${namespace}/${key}`, { bytes: Uint8Array.from(bytes), version, untilMs: this.clock.now() + ttlMs });
    return version;
  }
}

export const DAY_MS = 86_400_000;

export interface World {
  readonly clock: FakeClock;
  readonly notes: TestNotes;
  /** Another replica over the same notes. */
  replica(seed: number, more?: { readonly retentionMs?: number; readonly perSecond?: number }): Outcomes;
  readonly told: string[];
}

export function outcomesWorld(): World {
  const clock = new FakeClock();
  const notes = new TestNotes(clock);
  const told: string[] = [];
  return {
    clock,
    notes,
    told,
    replica: (seed, { retentionMs = 180 * DAY_MS, perSecond = 1_000 } = {}) =>
      new Outcomes({
        store: notes,
        clock: {
          now: () => clock.now(),
          monotonic: () => clock.monotonic(),
          sleep: (ms, signal) => clock.sleep(ms, signal),
          pause: () => new Promise((resolve) => setImmediate(resolve)),
        },
        random: new SeededRandom(seed),
        retentionMs,
        perSecond,
        observer: { reported: (what) => void told.push(what), synced: (result) => void told.push(result) },
        onError: () => undefined,
      }),
  };
}

export function reporting(toolId: string, intent: string, more: Partial<OutcomeReport> = {}): OutcomeReport {
  return {
    caller: "agent",
    namespace: "default",
    toolId,
    intent,
    history: [],
    success: true,
    errorKind: "unsaid",
    latencyMs: undefined,
    preceding: [],
    labelVersion: "",
    ...more,
  };
}
