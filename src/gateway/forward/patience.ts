/** How long a call may go on, and why it ended if it did. */
import type { Clock } from "../../upstream/caller.js";
import { type GaveUp, givenUp, type Refused } from "./refusals.js";

export class Patience {
  readonly ms: number;
  readonly #over = new AbortController();
  readonly #ended = new AbortController();
  readonly #forget: (() => void)[] = [];
  #why: GaveUp | undefined;

  constructor(clock: Clock, ms: number, caller: AbortSignal | undefined, closing: AbortSignal) {
    this.ms = ms;
    // `closing` outlives all calls: AbortSignal.any would leave something of each of them with it.
    if (caller) this.#heed(caller, "cancelled", new Error("the caller gave up"));
    this.#heed(closing, "closing", new Error("the gateway is shutting down"));
    void clock.sleep(ms, this.#ended.signal).then(() => {
      if (!this.#ended.signal.aborted) this.#giveUp("deadline", new Error(`the deadline of ${ms} ms passed`));
    });
  }

  /** Aborts when the deadline passes, the caller gives up, or the gateway closes. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get over(): GaveUp | undefined {
    return this.#why;
  }

  /** To be asked when it is over. */
  refusal(sent: boolean, stale: boolean): Refused {
    return givenUp(this.#why ?? "deadline", sent, this.ms, stale);
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

  /** Timer and listeners go. */
  end(): void {
    this.#ended.abort();
    for (const forget of this.#forget) forget();
  }

  #heed(signal: AbortSignal, why: GaveUp, reason: Error): void {
    const heard = (): void => this.#giveUp(why, reason);
    if (signal.aborted) return heard();
    signal.addEventListener("abort", heard, { once: true });
    this.#forget.push(() => signal.removeEventListener("abort", heard));
  }

  #giveUp(why: GaveUp, reason: Error): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#over.abort(reason);
  }
}
