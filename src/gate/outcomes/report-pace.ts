import { quotaExceeded } from "../../domain/quotas.js";
import { type Bucket, type BucketRule, isFull, take } from "../../domain/token-bucket.js";

/** Seconds' worth of reports that may come at once: an agent that was busy tells all at its end. */
const BURST_SECONDS = 20;
/** Buckets kept before those that are full again are thrown away. */
const KEPT = 1_024;

/** How often each caller reports; those that say nothing of themselves are one. */
export class ReportPace {
  private readonly rule: BucketRule;
  private readonly buckets = new Map<string, Bucket>();

  constructor(perSecond: number) {
    this.rule = { perSecond, burst: perSecond * BURST_SECONDS };
  }

  /** Throws Fault QUOTA_EXCEEDED, with the time at which this caller's turn comes. */
  admit(caller: string, nowMs: number): void {
    const taken = take(this.rule, this.buckets.get(caller), nowMs);
    if (!this.buckets.has(caller) && this.buckets.size >= KEPT) this.forgetFull(nowMs);
    this.buckets.set(caller, taken.bucket);
    if (taken.kind === "taken") return;
    const { perSecond, burst } = this.rule;
    const message =
      `${caller} may report ${perSecond} outcomes a second, ${burst} at once, and all of that is used up: its next turn is in ${taken.waitMs} ms; ` +
      "report less often, or ask the registry's operator for more (--report-rate)";
    throw quotaExceeded("reports-per-second", perSecond, burst + 1, message, taken.waitMs, { burst: String(burst), principal: caller });
  }

  private forgetFull(nowMs: number): void {
    for (const [caller, bucket] of this.buckets) if (isFull(this.rule, bucket, nowMs)) this.buckets.delete(caller);
  }
}
