/** Whether a replica that has just started finds what its catalogue holds: until then traffic is better off elsewhere. */

/** A catalogue that takes longer to be indexed is served by names and ids meanwhile; FindTools says NOT_READY of it. */
export const FIRST_INDEX_MS = 60_000;

export interface Indexing {
  /** Namespaces whose first index is being built. */
  readonly building: number;
  /** Resolves when none is. */
  built(): Promise<void>;
}

/** Once it has ended it never begins again: later catalogues are indexed beside the old one, which goes on serving. */
export class FirstIndex {
  private sinceMs: number | undefined;
  private ended = false;
  private readonly listeners: (() => void)[] = [];

  constructor(
    private readonly indexing: Indexing,
    private readonly monotonic: () => number,
  ) {}

  /** Why the replica is not ready, once its catalogue is there; undefined when it is. */
  get problem(): string | undefined {
    if (this.ended) return undefined;
    const { building } = this.indexing;
    const first = this.sinceMs === undefined;
    this.sinceMs ??= this.monotonic();
    if (building === 0 || this.monotonic() - this.sinceMs >= FIRST_INDEX_MS) {
      this.ended = true;
      return undefined;
    }
    if (first) void this.indexing.built().then(() => this.tell());
    return `FindTools cannot find all tools yet: the index of ${building === 1 ? "a namespace is" : `${building} namespaces is`} being built`;
  }

  /** Hears when there may be no problem any more. */
  onEnd(listener: () => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
