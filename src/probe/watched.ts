/** One instance under watch: looked at when it is due, by whoever holds its server's claim. */
import type { Clock, Logger, Random } from "../catalogue/ports.js";
import { type Dial, type Upstream, UpstreamError } from "../catalogue/upstream-port.js";
import { within } from "../catalogue/within.js";
import { EDGE_MS, foldHealth, type HealthEvent, type InstanceHealth, isFall, nextLook } from "../domain/health/instance.js";
import type { ProbeRules } from "../domain/health/probing.js";
import { isGood, type Verdict } from "../domain/health/verdict.js";
import type { Fall } from "./panic.js";
import type { Slots } from "./slots.js";
import { verdictOf } from "./verdicts.js";

/** A look that ends this long after its own deadline was not waited for: the process slept, and the failure is its own. */
const ASLEEP_MS = 2_000;

export interface WatchedDeps {
  readonly upstream: Pick<Upstream, "probe">;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Whether one that turned bad then may be called down. */
  readonly mayFall: (badSinceMs: number) => Fall;
  /** Whether what was seen may still be told. */
  readonly stillHeld: () => boolean;
  /** The interval in force, which a replica with very many servers stretches. */
  readonly stretched: (intervalMs: number) => number;
  readonly onLook: (verdict: Verdict["kind"], tookMs: number) => void;
  readonly onHealth: () => void;
}

export class Watched {
  #health: InstanceHealth;
  #dueMs: number;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #wake = new AbortController();

  constructor(
    private readonly deps: WatchedDeps,
    readonly instanceId: string,
    readonly dial: Dial,
    private readonly rules: ProbeRules,
    start: { readonly health: InstanceHealth; readonly firstMs: number },
  ) {
    this.#health = start.health;
    this.#dueMs = deps.clock.monotonic() + start.firstMs;
  }

  get health(): InstanceHealth {
    return this.#health;
  }

  /** Monotonic. */
  get dueMs(): number {
    return this.#dueMs;
  }

  get lookedMs(): number {
    return this.#lookedMs;
  }

  /** Looks until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, slots } = this.deps;
    // One listener for all sleeps: a signal joined anew for each would be remembered by the one that lives long.
    signal.addEventListener("abort", () => this.#wake.abort(), { once: true });
    while (!signal.aborted) {
      const waitMs = this.#dueMs - clock.monotonic();
      if (waitMs > 0) await clock.sleep(waitMs, this.#wake.signal);
      else await slots.run(signal, () => this.#lookSafely(signal));
    }
  }

  /** A listing reached it, or did not. One that outlived the claim says nothing, as whoever holds it now knows more. */
  heard(verdict: Verdict): void {
    if (this.deps.stillHeld()) this.#take({ kind: "verdict", verdict, listed: true });
  }

  /** Looks now, whatever the backoff says. */
  hurry(): void {
    this.#fold({ kind: "hurry" });
    this.#due(0);
  }

  /** Whatever goes wrong in one look, the next one comes. */
  async #lookSafely(signal: AbortSignal): Promise<void> {
    try {
      await this.#look(signal);
    } catch (err) {
      this.deps.logger.error({ err, instance: this.instanceId }, "a look could not be taken in; the next one repeats it");
      this.#due(EDGE_MS);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    // A process that slept may still be told that it lost the claim: until then it asks nobody.
    if (!this.deps.stillHeld()) return this.#due(EDGE_MS);
    this.#fold({ kind: "tick" });
    const { breaker } = this.#health;
    // Its trial never came back, so it is closed to everybody until the next one.
    if (breaker.kind === "open") return this.#next();
    const trial = breaker.kind === "half-open" ? { generation: breaker.generation } : {};
    const startedMs = clock.monotonic();
    const verdict = await this.#ask();
    const tookMs = clock.monotonic() - startedMs;
    if (signal.aborted) return;
    if (!this.deps.stillHeld()) return this.#due(EDGE_MS);
    const asleep = !isGood(verdict) && tookMs > this.rules.timeoutMs + ASLEEP_MS;
    if (asleep) {
      const text = "a look took longer than it may: this process slept, so it says nothing";
      this.deps.logger.warn({ instance: this.instanceId, ms: Math.round(tookMs) }, text);
      // The trial that it may have been runs into its deadline, and the next tick moves the breaker on.
      return this.#next();
    }
    this.deps.onLook(verdict.kind, tookMs);
    this.#take({ kind: "verdict", verdict, ...trial });
  }

  async #ask(): Promise<Verdict> {
    const { clock, upstream, logger } = this.deps;
    const { timeoutMs } = this.rules;
    const cut = new AbortController();
    const startedMs = clock.monotonic();
    try {
      const result = await within(clock, timeoutMs, upstream.probe(this.dial, cut.signal));
      if (result.kind === "done") return { kind: "ok", tookMs: clock.monotonic() - startedMs };
      cut.abort();
      return verdictOf(new UpstreamError("timeout", `it did not answer a probe within ${timeoutMs} ms`));
    } catch (err) {
      if (err instanceof UpstreamError) return verdictOf(err);
      logger.error({ err, instance: this.instanceId }, "a look failed in a way that no server can cause");
      return { kind: "barred", reason: "INTERNAL", message: "the look failed inside the registry; see its log" };
    }
  }

  #take(event: Extract<HealthEvent, { kind: "verdict" }>): void {
    const nowMs = this.deps.clock.monotonic();
    this.#lookedMs = nowMs;
    const { verdict } = event;
    if (isFall(this.#health, verdict, this.rules)) {
      const badSinceMs = this.#health.badSinceMs ?? nowMs;
      this.#health = { ...this.#health, badSinceMs, last: verdict };
      this.deps.onHealth();
      const fall = this.deps.mayFall(badSinceMs);
      // It stays where it is, and the next look asks again.
      if (fall !== "fall") return this.#due(fall === "wait" ? EDGE_MS : this.#stretched().intervalMs);
    }
    this.#fold(event);
    this.#next();
    this.deps.onHealth();
  }

  #fold(event: HealthEvent): void {
    const { clock, random } = this.deps;
    this.#health = foldHealth(this.#health, event, this.rules, clock.monotonic(), random.next());
  }

  #stretched(): ProbeRules {
    return { ...this.rules, intervalMs: this.deps.stretched(this.rules.intervalMs) };
  }

  #next(): void {
    const { clock, random } = this.deps;
    this.#due(nextLook(this.#health, this.#stretched(), clock.monotonic(), random.next()));
  }

  #due(inMs: number): void {
    this.#dueMs = this.deps.clock.monotonic() + inMs;
    const before = this.#wake;
    this.#wake = new AbortController();
    before.abort();
  }
}
