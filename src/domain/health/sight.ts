/** What the health of a server's instances adds up to, in the words that are published. */
import type { Availability, Condition } from "../server.js";
import { type InstanceHealth, isFlapping, isUp } from "./instance.js";
import { AUTH_REQUIRED, DRAINING, type Verdict } from "./verdict.js";

export interface Looked {
  readonly instanceId: string;
  /** Undefined: never probed, so it counts as there for as long as it is registered. */
  readonly health: InstanceHealth | undefined;
}

export type ConditionFact = Omit<Condition, "sinceMs">;

export interface HealthSight {
  /** Of the types that health decides: those that are not among these do not hold, or are as they were (`Reachable`). */
  readonly conditions: readonly ConditionFact[];
  readonly availability: Availability;
  /** Undefined: closed. `untilMs` is monotonic. */
  readonly open: { readonly untilMs: number; readonly attempt: number } | undefined;
  readonly instances: ReadonlyMap<string, Availability>;
}

/** Newest instance last, as in the record. `nowMs` is monotonic. */
export function sightOf(looked: readonly Looked[], nowMs: number): HealthSight {
  const up = looked.filter(({ health }) => health === undefined || isUp(health));
  const instances = new Map(looked.map((l) => [l.instanceId, up.includes(l) ? "available" : "unavailable"] as const));
  const shown = (up.length > 0 ? up : looked).at(-1)?.health;
  const conditions = shown ? conditionsOf(shown, up.length > 0, nowMs) : [];
  if (up.length > 0) return { conditions, availability: "available", open: undefined, instances };
  return { conditions, availability: "unavailable", open: soonest(looked), instances };
}

/** The breaker of a server with several instances is the one that will be tried first. */
function soonest(looked: readonly Looked[]): HealthSight["open"] {
  let found: HealthSight["open"];
  for (const { health } of looked) {
    const breaker = health?.breaker;
    if (!breaker || breaker.kind === "closed") continue;
    const untilMs = breaker.kind === "open" ? breaker.untilMs : breaker.deadlineMs;
    if (!found || untilMs < found.untilMs) found = { untilMs, attempt: breaker.attempt };
  }
  return found;
}

function conditionsOf(health: InstanceHealth, up: boolean, nowMs: number): ConditionFact[] {
  const { last, met, slow } = health;
  const facts: ConditionFact[] = [];
  const reachable = reachability(last, up, met);
  if (reachable) facts.push(reachable);
  const holds = (type: ConditionFact["type"], reason: string, message: string): void => {
    facts.push({ type, status: "true", reason, message });
  };
  if (health.wantsAuth) holds("AuthRequired", AUTH_REQUIRED, health.wantsAuth.message);
  if (last?.kind === "failed" && last.reason === DRAINING) holds("Draining", last.reason, last.message);
  if (slow) holds("Slow", "SLOW_ANSWERS", "its last answers took more than a second each");
  if (isFlapping(health, nowMs)) {
    holds("Flapping", "FLAPPING", "it went away and came back several times within 10 minutes; it counts as up again once it has answered for a minute");
  }
  return facts;
}

/** Undefined: not known, or not sure yet. */
function reachability(last: Verdict | undefined, up: boolean, met: boolean): ConditionFact | undefined {
  if (up) return met ? { type: "Reachable", status: "true", reason: "ANSWERED", message: "" } : undefined;
  if (!last || last.kind === "ok" || last.kind === "answered") return undefined;
  const status = last.kind === "failed" && last.reachable ? "true" : "false";
  return { type: "Reachable", status, reason: last.reason, message: last.message };
}
