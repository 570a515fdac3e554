import { describe, expect, it } from "vitest";
import {
  EDGE_MS,
  foldHealth,
  type InstanceHealth,
  isFlapping,
  isUp,
  nextLook,
  UNKNOWN_HEALTH,
} from "../../../../src/domain/health/instance.js";
import { DEFAULT_PROBING, PROBE_RULES, type ProbeRules, rulesOf } from "../../../../src/domain/health/probing.js";
import { AUTH_REQUIRED, type Verdict } from "../../../../src/domain/health/verdict.js";

const ok: Verdict = { kind: "ok", tookMs: 5 };
const listed: Verdict = { kind: "ok", tookMs: undefined };
const bad: Verdict = { kind: "failed", reachable: false, reason: "CONNECT_FAILED", message: "refused", retryAfterMs: undefined };
const auth: Verdict = { kind: "answered", reason: AUTH_REQUIRED, message: "401", retryAfterMs: undefined };
const barred: Verdict = { kind: "barred", reason: "EGRESS_DENIED", message: "not allowed" };

/** An instance that is looked at when it is due, and answers as the test says. */
class Looked {
  health: InstanceHealth = UNKNOWN_HEALTH;
  nowMs = 0;

  constructor(readonly rules: ProbeRules = PROBE_RULES) {}

  /** The look that is due; answers how long it was waited for. */
  look(verdict: Verdict): number {
    const waitMs = nextLook(this.health, this.rules, this.nowMs, 0.5);
    this.nowMs += waitMs;
    this.health = foldHealth(this.health, { kind: "tick" }, this.rules, this.nowMs, 0.5);
    const { breaker } = this.health;
    const trial = breaker.kind === "half-open" ? { generation: breaker.generation } : {};
    this.health = foldHealth(this.health, { kind: "verdict", verdict, ...trial }, this.rules, this.nowMs, 0.5);
    return waitMs;
  }

  looks(...verdicts: readonly Verdict[]): this {
    for (const v of verdicts) this.look(v);
    return this;
  }

  get up(): boolean {
    return isUp(this.health);
  }
}

describe("an instance", () => {
  it("that was never seen is there from its first answer on", () => {
    const i = new Looked().looks(bad, bad, bad);
    expect(i.up).toBe(false);
    expect(i.looks(ok).up).toBe(true);
  });

  it("that nobody presumes to be there is not, until it answers", () => {
    const i = new Looked();
    i.health = { ...UNKNOWN_HEALTH, presumed: false };
    expect(i.up).toBe(false);
    expect(i.looks(bad).up).toBe(false);
    expect(i.looks(ok).up).toBe(true);
  });

  it("falls with the third failure in a row, and rises with the second answer", () => {
    const i = new Looked().looks(ok);
    expect(i.looks(bad, bad).up).toBe(true);
    expect(i.looks(ok, bad, bad).up).toBe(true);
    expect(i.looks(bad).up).toBe(false);
    expect(i.looks(ok).up).toBe(false);
    expect(i.looks(ok).up).toBe(true);
  });

  it("is looked at every 10 s, at the edge every 2 s, and when down with growing distance", () => {
    const i = new Looked().looks(ok);
    expect([i.look(bad), i.look(bad), i.look(bad)]).toEqual([10_000, EDGE_MS, EDGE_MS]);
    expect([i.look(bad), i.look(bad), i.look(ok)]).toEqual([5_000, 10_000, 20_000]);
    expect([i.look(ok), i.look(ok)]).toEqual([EDGE_MS, 10_000]);
  });

  it("that was never seen is looked for sooner", () => {
    const i = new Looked().looks(bad, bad, bad);
    expect([i.look(bad), i.look(bad)]).toEqual([1_000, 2_000]);
  });

  it("is probed as its registrant asks", () => {
    const rules = rulesOf({ ...DEFAULT_PROBING, intervalMs: 60_000, fall: 1, rise: 3 }, PROBE_RULES);
    expect(rules).toEqual({ intervalMs: 60_000, timeoutMs: PROBE_RULES.timeoutMs, fall: 1, rise: 3 });
    const i = new Looked(rules).looks(ok);
    expect(i.look(bad)).toBe(60_000);
    expect(i.up).toBe(false);
    expect(i.looks(ok, ok).up).toBe(false);
    expect(i.looks(ok).up).toBe(true);
  });

  it("that asks to be left alone is, up or down, but for no more than an hour", () => {
    const throttled = (retryAfterMs: number): Verdict => ({ kind: "answered", reason: "THROTTLED", message: "429", retryAfterMs });
    const away = (retryAfterMs: number): Verdict => ({ ...bad, retryAfterMs }) as Verdict;
    const i = new Looked().looks(ok, throttled(60_000));
    expect(i.up).toBe(true);
    expect(i.look(away(6_000))).toBe(60_000);
    expect(i.look(away(5_000))).toBe(6_000);
    expect(i.up).toBe(true);
    expect(i.look(away(90_000))).toBe(5_000);
    expect(i.up).toBe(false);
    expect(i.look(away(10_000_000))).toBe(90_000);
    expect(i.look(ok)).toBe(3_600_000);
  });

  it("that says it comes back later than three looks would take is down at once", () => {
    const away: Verdict = { kind: "failed", reachable: false, reason: "DRAINING", message: "503", retryAfterMs: 3_600_000 };
    const i = new Looked().looks(ok, away);
    expect(i.up).toBe(false);
    expect(i.look(ok)).toBe(3_600_000);
    expect(i.looks(ok).up).toBe(true);
  });

  it("whose answers are slow three times is slow, until three are not", () => {
    const slow: Verdict = { kind: "ok", tookMs: 1_500 };
    const i = new Looked().looks(slow, slow, ok, slow, slow);
    expect(i.health.slow).toBe(false);
    expect(i.looks(slow).health.slow).toBe(true);
    expect(i.looks(ok, ok, listed, bad).health.slow).toBe(true);
    expect(i.looks(ok).health.slow).toBe(false);
    expect(i.up).toBe(true);
  });

  it("that fell three times in ten minutes flaps, and is up again after a minute of answers", () => {
    const i = new Looked().looks(ok);
    for (let fall = 0; fall < 3; fall++) i.looks(bad, bad, bad, ...(fall < 2 ? [ok, ok] : []));
    expect(isFlapping(i.health, i.nowMs)).toBe(true);
    i.looks(ok);
    const sinceMs = i.nowMs;
    while (!i.up) i.look(ok);
    expect(i.nowMs - sinceMs).toBeGreaterThanOrEqual(50_000);
    expect(i.nowMs - sinceMs).toBeLessThanOrEqual(60_000);
    expect(isFlapping(i.health, i.nowMs + 600_000)).toBe(false);
  });

  it("that never came up does not flap", () => {
    const i = new Looked();
    for (let look = 0; look < 30; look++) i.look(bad);
    expect(isFlapping(i.health, i.nowMs)).toBe(false);
  });

  it("that wants credentials is there", () => {
    const i = new Looked().looks(auth, auth, auth, auth);
    expect(i.up).toBe(true);
    expect(i.health).toMatchObject({ wantsAuth: { message: "401" }, badSinceMs: undefined });
    i.health = foldHealth(i.health, { kind: "verdict", verdict: auth, listed: true }, i.rules, i.nowMs, 0);
    expect(i.looks(ok).health.wantsAuth).toBeUndefined();
  });

  it("that wants credentials for its list alone goes on wanting them, whatever its probes say", () => {
    const i = new Looked().looks(ok);
    i.health = foldHealth(i.health, { kind: "verdict", verdict: auth, listed: true }, i.rules, i.nowMs, 0);
    expect(i.looks(ok, ok).health.wantsAuth).toMatchObject({ listed: true });
    i.health = foldHealth(i.health, { kind: "verdict", verdict: listed, listed: true }, i.rules, i.nowMs, 0);
    expect(i.health.wantsAuth).toBeUndefined();
  });

  it("that may not be dialled is not there, but has not failed: its breaker stays, and it is there again with its first answer", () => {
    const i = new Looked().looks(ok, barred, barred, barred, barred);
    expect(i.up).toBe(false);
    expect(i.health).toMatchObject({ breaker: { kind: "closed", failures: 0 }, badSinceMs: undefined });
    expect(i.looks(ok).up).toBe(true);
  });

  it("hears of others who reached it: answers count, and failures while it is down change nothing", () => {
    const i = new Looked().looks(ok, bad, bad, bad);
    const { breaker } = i.health;
    i.health = foldHealth(i.health, { kind: "verdict", verdict: bad }, i.rules, i.nowMs, 0.5);
    expect(i.health.breaker).toBe(breaker);
    i.health = foldHealth(i.health, { kind: "verdict", verdict: listed }, i.rules, i.nowMs, 0.5);
    expect(i.health.breaker).toMatchObject({ kind: "open", successes: 1 });
    expect(i.looks(ok).up).toBe(true);
  });
});
