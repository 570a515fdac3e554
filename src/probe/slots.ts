/** How many looks are under way at once, over all servers. */
export interface Slots {
  /** Runs `work` when there is room; not at all if the signal aborts before. */
  run(signal: AbortSignal, work: () => Promise<void>): Promise<void>;
}

export function createSlots(size: number): Slots {
  let free = size;
  const waiting = new Set<() => void>();

  function release(): void {
    free++;
    for (const next of waiting) {
      waiting.delete(next);
      return next();
    }
  }

  async function take(signal: AbortSignal): Promise<boolean> {
    while (free === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const go = () => {
          waiting.delete(go);
          signal.removeEventListener("abort", go);
          resolve();
        };
        waiting.add(go);
        signal.addEventListener("abort", go, { once: true });
      });
    }
    if (signal.aborted) {
      // Whoever waits behind must not lose the place that woke this one.
      if (free > 0) {
        free--;
        release();
      }
      return false;
    }
    free--;
    return true;
  }

  return {
    async run(signal, work) {
      if (!(await take(signal))) return;
      try {
        await work();
      } finally {
        release();
      }
    },
  };
}
