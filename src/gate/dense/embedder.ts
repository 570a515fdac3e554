/** What the gate needs of whoever makes vectors of texts. */

export interface Embedder {
  /** Vectors of different models cannot be compared: they are kept under this name. */
  readonly model: string;
  /**
   * One vector for each text, in order. Rejects with EmbedderError, or with the signal's reason. What comes back is not trusted:
   * numbers, dimensions and lengths are judged by the gate.
   */
  embed(texts: readonly string[], signal: AbortSignal): Promise<readonly ArrayLike<number>[]>;
}

export class EmbedderError extends Error {
  constructor(
    message: string,
    /** `refused`: the same texts would be refused again. `away`: later it may work. */
    readonly kind: "refused" | "away",
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "EmbedderError";
  }
}

/** Quantised vectors that outlive the process, by model and text; a loss costs one more request. Neither call rejects. */
export interface VectorShelf {
  get(namespace: string, keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]>;
  put(namespace: string, vectors: ReadonlyMap<string, Uint8Array>): Promise<void>;
}

export interface DenseObserver {
  /** A request for vectors of tools or of intents. */
  embedded(what: "tools" | "intent", result: "ok" | "late" | "failed"): void;
  onError(error: unknown, facts: { readonly namespace: string; readonly what: string }): void;
}
