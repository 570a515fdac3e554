/** Several things that may each be wrong, told together. */

/** One sentence each; none is told twice. */
export class Problems extends Error {
  constructor(readonly sentences: readonly string[]) {
    super(sentences.join(" "));
    this.name = "Problems";
  }
}

export function sentencesOf(error: unknown): readonly string[] {
  if (error instanceof Problems) return error.sentences;
  return [error instanceof Error ? error.message : String(error)];
}

/** Tries one thing after another, and says in the end what went wrong with all of them. */
export class Attempts {
  readonly #sentences: string[] = [];

  get failed(): boolean {
    return this.#sentences.length > 0;
  }

  /** Undefined where it failed. */
  try<T>(open: () => T): T | undefined {
    try {
      return open();
    } catch (error) {
      this.add(sentencesOf(error));
      return undefined;
    }
  }

  async tryLater<T>(open: () => Promise<T>): Promise<T | undefined> {
    try {
      return await open();
    } catch (error) {
      this.add(sentencesOf(error));
      return undefined;
    }
  }

  add(sentences: readonly string[]): void {
    this.#sentences.push(...sentences);
  }

  /** All of them; `advice` is added where there are several. */
  problems(advice?: string): Problems {
    const several = advice !== undefined && this.#sentences.length > 1;
    return new Problems(several ? [...this.#sentences, advice] : this.#sentences);
  }
}
