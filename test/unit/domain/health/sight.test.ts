import { describe, expect, it } from "vitest";
import { foldHealth, type InstanceHealth, UNKNOWN_HEALTH } from "../../../../src/domain/health/instance.js";
import { PROBE_RULES } from "../../../../src/domain/health/probing.js";
import { type Looked, sightOf } from "../../../../src/domain/health/sight.js";
import { AUTH_REQUIRED, DRAINING, type Verdict } from "../../../../src/domain/health/verdict.js";

const ok: Verdict = { kind: "ok", tookMs: 5 };
const bad: Verdict = { kind: "failed", reachable: false, reason: "CONNECT_FAILED", message: "refused", retryAfterMs: undefined };
const http: Verdict = { ...bad, reachable: true, reason: "HTTP_ERROR", message: "500" } as Verdict;

function afterLooks(...verdicts: readonly Verdict[]): InstanceHealth {
  const fold = (health: InstanceHealth, verdict: Verdict, i: number) =>
    foldHealth(health, { kind: "verdict", verdict }, PROBE_RULES, i * 1_000, 0.5);
  return verdicts.reduce(fold, UNKNOWN_HEALTH);
}

const sight = (...health: readonly (InstanceHealth | undefined)[]) =>
  sightOf(health.map((h, i): Looked => ({ instanceId: `instance-${i}`, health: h })), 10_000);
const types = (s: ReturnType<typeof sight>) => s.conditions.map((c) => `${c.type} ${c.status} ${c.reason}`);

describe("the health of a server", () => {
  it("is that of its one instance", () => {
    expect(sight(afterLooks(ok))).toMatchObject({ availability: "available", open: undefined });
    expect(types(sight(afterLooks(ok)))).toEqual(["Reachable true ANSWERED"]);
    const down = sight(afterLooks(ok, bad, bad, bad));
    expect(down).toMatchObject({ availability: "unavailable", open: { attempt: 1, untilMs: 8_000 } });
    expect(types(down)).toEqual(["Reachable false CONNECT_FAILED"]);
  });

  it("is good while one instance answers, and each instance has its own", () => {
    const down = afterLooks(ok, bad, bad, bad);
    const s = sight(afterLooks(ok), down);
    expect(s).toMatchObject({ availability: "available", open: undefined });
    expect([...s.instances]).toEqual([
      ["instance-0", "available"],
      ["instance-1", "unavailable"],
    ]);
    expect(types(s)).toEqual(["Reachable true ANSWERED"]);
    expect(sight(down, down)).toMatchObject({ availability: "unavailable" });
  });

  it("names the trial that comes first", () => {
    const early = afterLooks(ok, bad, bad, bad);
    const late = { ...early, breaker: { kind: "open", untilMs: 90_000, attempt: 5, successes: 0 } } as InstanceHealth;
    expect(sight(late, early).open).toEqual({ untilMs: 8_000, attempt: 1 });
    expect(sight(early, late).open).toEqual({ untilMs: 8_000, attempt: 1 });
  });

  it("says nothing of reaching one that was never seen, before it falls", () => {
    expect(sight(afterLooks())).toMatchObject({ availability: "available", conditions: [] });
    expect(sight(afterLooks(bad, bad))).toMatchObject({ availability: "available", conditions: [] });
    expect(types(sight(afterLooks(bad, bad, bad)))).toEqual(["Reachable false CONNECT_FAILED"]);
  });

  it("that answers with something that is no MCP is reachable, and down", () => {
    const s = sight(afterLooks(ok, http, http, http));
    expect(s.availability).toBe("unavailable");
    expect(types(s)).toEqual(["Reachable true HTTP_ERROR"]);
  });

  it("that wants credentials is available", () => {
    const s = sight(afterLooks({ kind: "answered", reason: AUTH_REQUIRED, message: "401", retryAfterMs: undefined }));
    expect(s.availability).toBe("available");
    expect(types(s)).toEqual(["Reachable true ANSWERED", "AuthRequired true AUTH_REQUIRED"]);
  });

  it("that says when it comes back drains", () => {
    const s = sight(afterLooks(ok, { ...bad, reason: DRAINING, message: "503", retryAfterMs: 5_000 } as Verdict));
    expect(s.availability).toBe("available");
    expect(types(s)).toEqual(["Reachable true ANSWERED", "Draining true DRAINING"]);
  });

  it("that may not be dialled is unavailable, though no breaker is open", () => {
    const s = sight(afterLooks({ kind: "barred", reason: "EGRESS_DENIED", message: "not allowed" }));
    expect(s).toMatchObject({ availability: "unavailable", open: undefined });
    expect(types(s)).toEqual(["Reachable false EGRESS_DENIED"]);
  });

  it("of instances that are never probed is good for as long as they are registered", () => {
    expect(sight(undefined)).toMatchObject({ availability: "available", conditions: [] });
    expect(sight(undefined, afterLooks(ok, bad, bad, bad)).availability).toBe("available");
  });
});
