import type { Clock, Random } from "../../src/catalogue/ports.js";

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

/** A clock that stands still until a test moves it. Sleeps end in order of their time, then of their start. */
export class FakeClock implements Clock {
  #ms = 0;
  #sleepers: Sleeper[] = [];

  constructor(private readonly epochMs = 1_790_000_000_000) {}

  now(): number {
    // As of a real clock: whole milliseconds.
    return Math.floor(this.epochMs + this.#ms);
  }

  monotonic(): number {
    return this.#ms;
  }

  /** Number of sleeps that have not ended. */
  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        this.#sleepers = this.#sleepers.filter((s) => s !== sleeper);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const sleeper: Sleeper = { atMs: this.#ms + Math.max(0, ms), wake: end };
      signal?.addEventListener("abort", end, { once: true });
      this.#sleepers.push(sleeper);
    });
  }

  /** Moves time on, letting everything that a wakened sleep leads to run before the next one ends. */
  async advance(ms: number): Promise<void> {
    const until = this.#ms + ms;
    await this.settle();
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.#ms = Math.max(this.#ms, next.atMs);
      next.wake();
      await this.settle();
    }
    this.#ms = until;
  }

  /** As a process that is stopped: time moves on, and nobody is woken until it goes on. */
  sleepThrough(ms: number): void {
    this.#ms += ms;
  }

  /** Lets everything run that waits for no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  #next(until: number): Sleeper | undefined {
    let first: Sleeper | undefined;
    for (const s of this.#sleepers) if (s.atMs <= until && (!first || s.atMs < first.atMs)) first = s;
    return first;
  }
}

/** Random numbers that repeat with their seed. Print the seed in a test's name or failure. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  }

  id(): string {
    let out = "";
    while (out.length < 32) out += Math.floor(this.next() * 0x1_0000_0000).toString(16).padStart(8, "0");
    return out;
  }
}
