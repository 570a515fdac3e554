/** A breaker that sticks half-open is caught; the real one is not. The keeper, its monitor and the catalogue are real. */
import { describe, expect, it, vi } from "vitest";
import type * as Real from "../../src/domain/health/breaker.js";

const broken = vi.hoisted(() => ({ sticks: false }));

vi.mock("../../src/domain/health/breaker.js", async (original) => {
  const real = await original<typeof Real>();
  const stepBreaker: typeof Real.stepBreaker = (breaker, event, rules, nowMs, draw) =>
    broken.sticks && breaker.kind === "half-open"
      ? { ...breaker, deadlineMs: nowMs + rules.trialMs }
      : real.stepBreaker(breaker, event, rules, nowMs, draw);
  return { ...real, stepBreaker };
});

const { playOutageOfServer } = await import("./server-outage.js");
const { verdict } = await import("./validators.js");

describe("a server that falls silent and answers again", () => {
  it("is available again within what its backoff allows", async () => {
    broken.sticks = false;
    const { history, fell } = await playOutageOfServer();
    expect(fell).toBe(true);
    expect(verdict(history)).toEqual([]);
  });

  it("is not, with a breaker that sticks half-open: the validator says so", async () => {
    broken.sticks = true;
    const { history, fell } = await playOutageOfServer();
    expect(fell).toBe(true);
    const found = verdict(history);
    expect(found.length).toBeGreaterThan(0);
    for (const text of found) expect(text).toMatch(/^breaker: default:live has answered for \d+ ms, and replica a still calls it unavailable/);
  });
});
