/** P8: while the store is away, reads are answered from memory, and say that they are stale. */
import { type FaultDone, type History, only, type Violation } from "./history.js";
import { overlap } from "./registrations.js";

export function serve(history: History): Violation[] {
  const faults = only(history, "fault");
  const away = faults.filter((f) => f.what === "store-away");
  const texts = away.flatMap((outage) => during(history, outage, faults));
  return texts.map((text) => ({ promise: "P8", text: `P8 serve: ${text}` }));
}

/** A replica may need a while to notice; from then on until the outage ends there is one right answer. */
function during(history: History, outage: FaultDone, faults: readonly FaultDone[]): string[] {
  const out: string[] = [];
  const calls = [...only(history, "stubs"), ...only(history, "servers"), ...only(history, "schema")];
  for (const { kind, replica, minRevision, call, back, outcome } of calls) {
    const span = { from: call.n, to: back?.n };
    const whole = call.ms >= outage.from.ms + history.facts.noticeMs && back !== undefined && (outage.to === undefined || back.n < outage.to.n);
    if (!whole || minRevision !== "" || (outage.replica !== "" && outage.replica !== replica)) continue;
    const down = faults.some(
      (f) => f.what === "replica-down" && (f.replica === "" || f.replica === replica) && overlap({ from: f.from.n, to: f.to?.n }, span),
    );
    if (down) continue;
    const where = `${kind} at replica ${replica}, ${Math.round(call.ms - outage.from.ms)} ms after its store went away,`;
    if (kind === "schema") {
      // A definition that is not in memory may be loaded, or not.
      if (outcome.kind === "ok" && outcome.value.freshness === "cached") out.push(`${where} was called CACHED, not STALE`);
    } else if (outcome.kind === "error" && isOurs(outcome.reason)) out.push(`${where} failed: ${outcome.reason} ${outcome.message}`);
    else if (outcome.kind === "ok" && "stale" in outcome.value && !outcome.value.stale) out.push(`${where} did not say that it is stale`);
  }
  return out;
}

/** What the caller did wrong fails whatever the store does. */
function isOurs(reason: string): boolean {
  return !["INVALID_REQUEST", "INVALID_PAGE_TOKEN", "NOT_FOUND", "MALFORMED_MESSAGE", "DRAINING"].includes(reason);
}
