/** One call that may take only so long. */
interface Waiting {
  readonly untilMs: number;
  readonly expire: () => void;
}

/**
 * The same deadline for many calls at once. They run out in the order in which they began, so one timer is enough for all;
 * one of its own for each would cost a read in memory a good part of its time.
 */
export class SharedDeadline {
  private readonly waiting = new Set<Waiting>();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly ms: number) {}

  /** `expire` is called once, `ms` from now at the earliest, unless what is answered here is deleted before. */
  add(expire: () => void): Waiting {
    const one = { untilMs: performance.now() + this.ms, expire };
    this.waiting.add(one);
    this.timer ??= this.startTimer(this.ms);
    return one;
  }

  delete(one: Waiting): void {
    this.waiting.delete(one);
  }

  private startTimer(ms: number): NodeJS.Timeout {
    // A process that has nothing else to do may end: the calls' own connections keep it alive.
    return setTimeout(() => this.expireDue(), Math.ceil(ms)).unref();
  }

  private expireDue(): void {
    this.timer = undefined;
    for (const one of this.waiting) {
      const left = one.untilMs - performance.now();
      if (left > 0) {
        this.timer = this.startTimer(left);
        return;
      }
      this.waiting.delete(one);
      one.expire();
    }
  }
}
