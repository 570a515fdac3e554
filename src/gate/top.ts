import type { Segment } from "./segment.js";

/** A tool of a segment with its score. */
export interface Place {
  readonly segment: Segment;
  readonly doc: number;
  readonly raw: number;
  readonly toolId: string;
}

/** Below 0 where `a` is better. Only whole numbers are answered: a fraction would be an object on the heap for every comparison. */
export function better(a: Place, b: Place): number {
  if (a.raw !== b.raw) return a.raw > b.raw ? -1 : 1;
  return a.toolId < b.toolId ? -1 : a.toolId > b.toolId ? 1 : 0;
}

/** The best places seen so far, in a heap whose root is the worst of them. */
export class Top {
  private readonly heap: Place[] = [];

  constructor(private readonly limit: number) {}

  /** A score below it has no chance. */
  get least(): number {
    return this.heap.length < this.limit ? 0 : (this.heap[0] as Place).raw;
  }

  wouldTake(place: Place): boolean {
    return this.heap.length < this.limit || better(place, this.heap[0] as Place) < 0;
  }

  take(place: Place): void {
    const { heap } = this;
    if (heap.length < this.limit) {
      heap.push(place);
      this.rise(heap.length - 1);
    } else {
      heap[0] = place;
      this.sink();
    }
  }

  /** In no order. */
  places(): readonly Place[] {
    return this.heap;
  }

  private rise(from: number): void {
    const { heap } = this;
    let i = from;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (better(heap[i] as Place, heap[parent] as Place) <= 0) return;
      this.swap(i, parent);
      i = parent;
    }
  }

  private sink(): void {
    const { heap } = this;
    let i = 0;
    for (;;) {
      let worst = i;
      for (const child of [2 * i + 1, 2 * i + 2]) {
        if (child < heap.length && better(heap[child] as Place, heap[worst] as Place) > 0) worst = child;
      }
      if (worst === i) return;
      this.swap(i, worst);
      i = worst;
    }
  }

  private swap(a: number, b: number): void {
    const { heap } = this;
    [heap[a], heap[b]] = [heap[b] as Place, heap[a] as Place];
  }
}
