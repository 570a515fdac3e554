import type { Timers } from "../timers.js";

/** Rings once when it was not put off in time. Putting it off costs no timer, so it may be done at every message. */
export class Alarm {
  #deadline = Number.POSITIVE_INFINITY;
  #armedFor = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(
    private readonly timers: Timers,
    private readonly ring: () => void,
  ) {}

  /** Rings `ms` from now, instead of when it was going to. */
  set(ms: number): void {
    this.#deadline = this.timers.now() + ms;
    if (this.#armedFor <= this.#deadline) return;
    this.#cancel?.();
    this.#arm(ms);
  }

  off(): void {
    this.#cancel?.();
    this.#deadline = Number.POSITIVE_INFINITY;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #arm(ms: number): void {
    this.#armedFor = this.timers.now() + ms;
    this.#cancel = this.timers.after(ms, () => {
      const left = this.#deadline - this.timers.now();
      if (left > 0) return this.#arm(left);
      this.off();
      this.ring();
    });
  }
}
