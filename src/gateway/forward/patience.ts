/** How long a call may go on, and why it ended if it did. */
import type { Clock } from "../../upstream/caller.js";
import { givenUp, type Refused } from "./refusals.js";

export class Patience {
  /** Aborts when the deadline passes, the caller gives up, or the gateway closes. */
  readonly signal: AbortSignal;
  readonly ms: number;
  readonly #late = new AbortController();
  readonly #ended = new AbortController();
  readonly #caller: AbortSignal | undefined;

  constructor(clock: Clock, ms: number, caller: AbortSignal | undefined, closing: AbortSignal) {
    this.ms = ms;
    this.#caller = caller;
    this.signal = AbortSignal.any([this.#late.signal, closing, ...(caller ? [caller] : [])]);
    void clock.sleep(ms, this.#ended.signal).then(() => {
      if (!this.#ended.signal.aborted) this.#late.abort(new Error(`the deadline of ${ms} ms passed`));
    });
  }

  get over(): "cancelled" | "deadline" | "closing" | undefined {
    if (!this.signal.aborted) return undefined;
    if (this.#caller?.aborted) return "cancelled";
    return this.#late.signal.aborted ? "deadline" : "closing";
  }

  /** To be asked when it is over. */
  refusal(sent: boolean, stale: boolean): Refused {
    return givenUp(this.over ?? "deadline", sent, this.ms, stale);
  }

  /** The work's result, or undefined as soon as it is over; the work goes on then. */
  wait<T extends object>(work: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const leave = (): void => resolve(undefined);
      if (this.signal.aborted) leave();
      this.signal.addEventListener("abort", leave, { once: true });
      work.then(resolve, reject).finally(() => this.signal.removeEventListener("abort", leave));
    });
  }

  /** The timer goes. */
  end(): void {
    this.#ended.abort();
  }
}
