import { EVERYBODY, type Principal } from "../../domain/identity.js";
import { quotaExceeded } from "../../domain/quotas.js";
import { type Bucket, type BucketRule, isFull, take } from "../../domain/token-bucket.js";
import type { Clock } from "../ports.js";

/** Seconds' worth of Registers that may come at once: a fleet that starts is one burst, and no fault of anybody. */
export const BURST_SECONDS = 10;
/** Buckets kept before those that are full again are thrown away. */
const KEPT = 1_024;

/**
 * How often each identified principal registers. Callers that say nothing of themselves are not told apart, so no rate is
 * theirs: a limit would be one for all of them together, and what they cost is bounded by shedding.
 */
export class RegisterPace {
  readonly #rule: BucketRule;
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    perSecond: number,
    private readonly clock: Pick<Clock, "monotonic">,
  ) {
    this.#rule = { perSecond, burst: perSecond * BURST_SECONDS };
  }

  /** Throws Fault QUOTA_EXCEEDED, with the time at which this caller's turn comes. */
  admit({ id }: Principal): void {
    if (id === EVERYBODY.id) return;
    const nowMs = this.clock.monotonic();
    const taken = take(this.#rule, this.#buckets.get(id), nowMs);
    this.#keep(id, taken.bucket, nowMs);
    if (taken.kind === "taken") return;
    const { perSecond, burst } = this.#rule;
    const message =
      `${id} may register ${perSecond} times a second, ${burst} at once, and all of that is used up: its next turn is in ${taken.waitMs} ms; ` +
      "register less often, or ask the registry's operator for more (--register-rate)";
    const more = { burst: String(burst), principal: id };
    throw quotaExceeded("registers-per-second", perSecond, burst + 1, message, taken.waitMs, more);
  }

  #keep(id: string, bucket: Bucket, nowMs: number): void {
    if (!this.#buckets.has(id) && this.#buckets.size >= KEPT) this.#forgetFull(nowMs);
    this.#buckets.set(id, bucket);
  }

  #forgetFull(nowMs: number): void {
    for (const [id, bucket] of this.#buckets) if (isFull(this.#rule, bucket, nowMs)) this.#buckets.delete(id);
  }
}
