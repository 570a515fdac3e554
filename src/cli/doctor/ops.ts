import { Metrics, askOps } from "../ops.js";
import type { Target } from "../../client/target.js";
import type { OpsAnswer } from "../ops.js";
import { printable } from "../table.js";
import type { Finding } from "./finding.js";
import { fail, ok, warn } from "./finding.js";

const ASK_MS = 3_000;
const LAG_SECONDS = 5;
/** The clock of an HTTP answer has whole seconds, and the way takes some time. */
const SKEW_NOTICED_MS = 2_000;
const SKEW_HARMFUL_MS = 60_000;

export interface OpsPlace {
  readonly base: string;
  readonly access: Target["access"];
  /** Whether the user named it; else it is a guess. */
  readonly given: boolean;
}

/** What the ops listener tells of readiness, store, clock and version; one warning where it cannot be asked. */
export async function checkOps(place: OpsPlace, ourVersion: string, ending: AbortSignal): Promise<Finding[]> {
  let ready: OpsAnswer;
  let metrics: OpsAnswer;
  const askedAt = Date.now();
  try {
    ready = await askOps(place.base, "/readyz", place.access, ASK_MS, ending);
    metrics = await askOps(place.base, "/metrics", place.access, ASK_MS, ending);
  } catch {
    return [notAsked(place)];
  }
  const read = new Metrics(metrics.body);
  const version = read.samples("toolcrib_build_info")[0]?.labels["version"];
  if (version === undefined) {
    return [fail("ops", `what answers at ${place.base} is not the ops listener of a registry`, "name it with --ops")];
  }
  return [
    ...readiness(place, ready),
    ...storeFindings(read),
    versionFinding(version, ourVersion),
    clockFinding(ready, askedAt),
  ];
}

function notAsked({ base, given }: OpsPlace): Finding {
  const text = `the ops listener cannot be asked at ${base}, so version, store and clock are not known`;
  if (given) return fail("ops", text, "compare --ops with the registry's --ops-address");
  return warn("ops", text, "name it with --ops, from a machine that may reach it");
}

function readiness({ base }: OpsPlace, answer: OpsAnswer): Finding[] {
  if (answer.status === 200) return [ok("readiness", `${base}/readyz says ready`)];
  return reasonsIn(answer.body).map((reason) => fail("readiness", `not ready: ${printable(reason)}`, readinessCure(reason)));
}

function readinessCure(reason: string): string {
  return /\bwaiting for Redis\b/.test(reason)
    ? "start that Redis, mend the way to it, or correct --store; the registry becomes ready by itself"
    : "wait if it has just been started; else its log says why";
}

function reasonsIn(body: string): string[] {
  try {
    const { reasons } = JSON.parse(body) as { readonly reasons?: unknown };
    if (Array.isArray(reasons) && reasons.length > 0) return reasons.map(String);
  } catch {
    // Something between here and there answered in its own words.
  }
  return ["it gives no reason"];
}

function storeFindings(metrics: Metrics): Finding[] {
  const findings: Finding[] = [];
  const lag = metrics.max("toolcrib_tail_lag_seconds") ?? 0;
  if (metrics.total("toolcrib_store_up") === 0) {
    findings.push(
      fail(
        "store",
        "the last call of the registry to its store failed",
        "look at the store (--store) and the way to it; reads go on from memory, writes fail",
      ),
    );
  } else if (lag > LAG_SECONDS) {
    findings.push(
      warn(
        "store",
        `this replica has not heard of the log for ${Math.round(lag)} s`,
        "look at the store's load and at this replica's",
      ),
    );
  } else findings.push(ok("store", "the registry reaches its store and is up to date with its log"));
  if (metrics.total("toolcrib_brake_engaged") === 1) {
    findings.push(
      warn(
        "leases",
        "many leases ran out at once and are held back",
        "ask whether the servers or the registry were cut off; the brake goes by itself",
      ),
    );
  }
  return findings;
}

function versionFinding(theirs: string, ours: string): Finding {
  if (theirs === ours) return ok("version", `the registry and this command are both ${theirs}`);
  return warn(
    "version",
    `the registry is ${theirs}, this command ${ours}`,
    "use the same version on both sides where something looks odd",
  );
}

function clockFinding(answer: OpsAnswer, askedAtMs: number): Finding {
  if (answer.dateMs === undefined)
    return warn(
      "clock",
      "the registry's clock is not known: its answer has no date",
      "ask the ops listener itself, without a proxy",
    );
  return skewFinding(answer.dateMs, askedAtMs, Date.now());
}

/** The listener's clock read between two readings of ours; it was cut to whole seconds. */
export function skewFinding(theirsMs: number, beforeMs: number, afterMs: number): Finding {
  const ahead = theirsMs - afterMs;
  const behind = beforeMs - (theirsMs + 1_000);
  const skew = Math.max(ahead, behind, 0);
  if (skew <= SKEW_NOTICED_MS) return ok("clock", "the clocks of both machines agree");
  const text = `the registry's clock is ${Math.round(skew / 1_000)} s ${ahead > behind ? "ahead of" : "behind"} this machine's`;
  const todo = "let both machines follow one time server: tokens and certificates are judged by the clock";
  return skew > SKEW_HARMFUL_MS ? fail("clock", text, todo) : warn("clock", text, todo);
}
