/** How many calls of one server are under way at once; the others wait in order, and no more than so many. */

export type Place = { readonly kind: "taken"; leave(): void } | { readonly kind: "full" } | { readonly kind: "aborted" };

interface Queue {
  taken: number;
  /** In the order of their coming. */
  readonly waiting: Set<() => void>;
}

export class Places {
  readonly #queues = new Map<string, Queue>();
  readonly #atOnce: number;
  readonly #waiting: number;

  constructor(atOnce: number, waiting: number) {
    this.#atOnce = atOnce;
    this.#waiting = waiting;
  }

  /** Answers at once when there is a place, or none to wait for. */
  take(key: string, signal: AbortSignal): Promise<Place> {
    if (signal.aborted) return Promise.resolve({ kind: "aborted" });
    const queue = this.#queues.get(key) ?? { taken: 0, waiting: new Set() };
    this.#queues.set(key, queue);
    if (queue.taken < this.#atOnce) return Promise.resolve(this.#occupy(key, queue));
    if (queue.waiting.size >= this.#waiting) return Promise.resolve({ kind: "full" });
    return new Promise((resolve) => {
      const next = (): void => {
        signal.removeEventListener("abort", leave);
        resolve(this.#occupy(key, queue));
      };
      const leave = (): void => {
        queue.waiting.delete(next);
        resolve({ kind: "aborted" });
      };
      queue.waiting.add(next);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #occupy(key: string, queue: Queue): Place {
    queue.taken++;
    let left = false;
    return {
      kind: "taken",
      leave: () => {
        if (left) return;
        left = true;
        queue.taken--;
        const [next] = queue.waiting;
        if (next) {
          queue.waiting.delete(next);
          next();
        } else if (queue.taken === 0) this.#queues.delete(key);
      },
    };
  }
}
