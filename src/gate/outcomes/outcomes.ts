/** What came of calls, in all namespaces: reports in, what they teach out, and the store kept up with beside it. */
import { intentOf } from "../intent.js";
import type { OutcomeReport } from "../api.js";
import type { GateClock, PastStore } from "../ports.js";
import type { Happening, NamespacePast } from "./namespace-past.js";
import { ReportPace } from "./report-pace.js";
import { SharedPast } from "./shared-past.js";

export interface OutcomesDeps {
  readonly store: PastStore;
  readonly clock: GateClock;
  readonly random: { next(): number; id(): string };
  /** What is older is forgotten. */
  readonly retentionMs: number;
  /** Reports of one caller. */
  readonly perSecond: number;
  readonly observer: {
    reported(what: "remembered" | "counted" | "refused"): void;
    synced(result: "ok" | "failed"): void;
  };
  readonly onError: (error: unknown, namespace: string) => void;
}

const OUTCOMES = {
  /** Between two looks for namespaces whose turn has come. */
  tickMs: 250,
  /** A report waits this long for others to be written with. */
  flushMs: 1_000,
  /** What others wrote is looked for so often in a namespace that was asked about within `activeMs`. */
  lookMs: 2_000,
  activeMs: 300_000,
  /** One that nobody asked about for so long, and of which all is in the store, goes out of memory. */
  idleMs: 1_800_000,
  pruneMs: 3_600_000,
  /** How long the first questions wait for what the store knows. */
  openMs: 250,
  /** Namespaces that speak with the store at once. */
  atOnce: 8,
  /** How long an end waits for the last reports to be written. */
  stopMs: 2_000,
} as const;

/** Reports of one millisecond keep their order. */
const APART_MS = 2 ** -10;

interface Held {
  readonly shared: SharedPast;
  /** While the first look at the store may still be waited for. */
  opening: Promise<void> | undefined;
  syncing: Promise<void> | undefined;
  /** Monotonic ms. */
  askedAtMs: number;
  syncedAtMs: number;
  prunedAtMs: number;
  dirtySinceMs: number | undefined;
}

export class Outcomes {
  private readonly namespaces = new Map<string, Held>();
  private readonly pace: ReportPace;
  private readonly stopping = new AbortController();
  private working: Promise<void> | undefined;
  /** Time of the last report. */
  private lastMs = 0;

  constructor(private readonly deps: OutcomesDeps) {
    this.pace = new ReportPace(deps.perSecond);
  }

  /** A promise while what the store knows of a namespace is read for the first time; never for long, and it never rejects. */
  open(namespace: string): Promise<void> | undefined {
    return this.held(namespace).opening;
  }

  /** What is known of a namespace that was opened. */
  past(namespace: string): NamespacePast {
    return this.held(namespace).shared.past;
  }

  /** Throws Fault QUOTA_EXCEEDED for a caller that reports too fast. */
  admit(caller: string): void {
    try {
      this.pace.admit(caller, this.deps.clock.monotonic());
    } catch (error) {
      this.deps.observer.reported("refused");
      throw error;
    }
  }

  /** Of a namespace that was opened. Answers whether its intent was remembered. */
  report(report: OutcomeReport): boolean {
    const { clock, random, observer } = this.deps;
    const held = this.held(report.namespace);
    this.lastMs = Math.max(clock.now(), this.lastMs + APART_MS);
    const changed = held.shared.report(happeningOf(report, this.lastMs, Math.floor(random.next() * 2 ** 32)));
    held.dirtySinceMs ??= clock.monotonic();
    const remembered = report.success && changed;
    observer.reported(remembered ? "remembered" : "counted");
    return remembered;
  }

  /** Reports that are not in the store yet. */
  get unsaved(): number {
    return [...this.namespaces.values()].reduce((sum, { shared }) => sum + shared.unsaved, 0);
  }

  /** Tools whose calls fail now. */
  collapsed(): readonly { readonly namespace: string; readonly toolId: string }[] {
    const nowMs = this.deps.clock.now();
    return [...this.namespaces].flatMap(([namespace, { shared }]) =>
      shared.past.collapsed(nowMs).map((toolId) => ({ namespace, toolId })),
    );
  }

  /** Writes what is not written yet, if the store answers in time. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.inTime(this.writeRest(), OUTCOMES.stopMs);
  }

  private async writeRest(): Promise<void> {
    await this.working;
    const rest = [...this.namespaces].filter(([, { shared }]) => shared.isDirty);
    await Promise.all(rest.map(([namespace, held]) => this.sync(namespace, held)));
  }

  private held(namespace: string): Held {
    const nowMs = this.deps.clock.monotonic();
    const known = this.namespaces.get(namespace);
    if (known) {
      known.askedAtMs = nowMs;
      return known;
    }
    const { store, clock, retentionMs, random } = this.deps;
    const shared = new SharedPast(namespace, { store, clock, retentionMs, newKey: random.id() });
    const made: Held = {
      shared,
      opening: undefined,
      syncing: undefined,
      askedAtMs: nowMs,
      syncedAtMs: nowMs,
      prunedAtMs: nowMs,
      dirtySinceMs: undefined,
    };
    this.namespaces.set(namespace, made);
    made.opening = this.inTime(this.sync(namespace, made), OUTCOMES.openMs).finally(() => {
      made.opening = undefined;
    });
    if (!this.stopping.signal.aborted) this.working ??= this.work().finally(() => {
      this.working = undefined;
    });
    return made;
  }

  private async work(): Promise<void> {
    const { clock } = this.deps;
    while (this.namespaces.size > 0) {
      await clock.sleep(OUTCOMES.tickMs, this.stopping.signal);
      if (this.stopping.signal.aborted) break;
      this.look(clock.monotonic());
    }
    await Promise.all([...this.namespaces.values()].map(({ syncing }) => syncing));
  }

  private look(nowMs: number): void {
    let busy = [...this.namespaces.values()].filter(({ syncing }) => syncing).length;
    for (const [namespace, held] of this.namespaces) {
      if (held.syncing || busy >= OUTCOMES.atOnce) continue;
      const { shared, askedAtMs, syncedAtMs, prunedAtMs, dirtySinceMs } = held;
      if (nowMs - prunedAtMs >= OUTCOMES.pruneMs) {
        held.prunedAtMs = nowMs;
        shared.prune();
        if (shared.isDirty) held.dirtySinceMs ??= nowMs;
      }
      const active = nowMs - askedAtMs < OUTCOMES.activeMs && nowMs - syncedAtMs >= OUTCOMES.lookMs;
      // After a failure the next try waits as long as a look does.
      const late = dirtySinceMs !== undefined && nowMs - Math.max(dirtySinceMs, syncedAtMs) >= OUTCOMES.flushMs;
      if (active || late) {
        busy++;
        void this.sync(namespace, held);
      } else if (!shared.isDirty && nowMs - askedAtMs >= OUTCOMES.idleMs) this.namespaces.delete(namespace);
    }
  }

  /** Never rejects. */
  private sync(namespace: string, held: Held): Promise<void> {
    const { clock, observer, onError } = this.deps;
    held.syncing ??= held.shared
      .sync()
      .then(
        () => observer.synced("ok"),
        (error: unknown) => {
          observer.synced("failed");
          onError(error, namespace);
        },
      )
      .finally(() => {
        held.syncing = undefined;
        held.syncedAtMs = clock.monotonic();
        held.dirtySinceMs = held.shared.isDirty ? held.syncedAtMs : undefined;
      });
    return held.syncing;
  }

  private async inTime(done: Promise<unknown>, ms: number): Promise<void> {
    const over = new AbortController();
    await Promise.race([done, this.deps.clock.sleep(ms, over.signal)]);
    over.abort();
  }
}

/** What a report teaches: a call that was given up or badly put is no fault of the tool, and a wrong tool may be a reliable one. */
function happeningOf(report: OutcomeReport, atMs: number, nonce: number): Happening {
  const { toolId, caller, success, errorKind, latencyMs, preceding, history } = report;
  const doubts = !success && (errorKind === "wrong-tool" || errorKind === "unsaid");
  const kind = success ? "confirm" : doubts ? "withdraw" : undefined;
  const counts = !["cancelled", "invalid-arguments", "wrong-tool"].includes(errorKind);
  return {
    toolId,
    caller,
    atMs,
    nonce,
    says: kind && report.intent.trim() !== "" ? { kind, intent: intentOf({ text: report.intent, history }) } : undefined,
    outcome: counts ? { success, latencyMs, after: preceding } : undefined,
  };
}
