import type { Timers } from "../timers.js";
import { type DefinitionStore, hasDigest, type StoredDefinition } from "./definition-store.js";
import { within } from "./within.js";

/** After a failure the store is left alone for this long: a store that hangs must not take its share of every turn. */
const PAUSE_MS = 1_000;

/** Something that no turn waits for does not work; the loader goes on without it. */
export interface LoaderTrouble {
  readonly what: "store-failed" | "store-slow" | "store-damaged" | "warm-failed";
  readonly message: string;
  readonly error?: unknown;
}

export type TroubleSink = (trouble: LoaderTrouble) => void;

/** A store whose answers are checked, limited in time, and never fail. */
export class CheckedStore {
  readonly #store: DefinitionStore;
  readonly #timers: Timers;
  readonly #tell: TroubleSink;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  readonly #writing = new Set<Promise<void>>();

  constructor(store: DefinitionStore, timers: Timers, tell: TroubleSink) {
    this.#store = store;
    this.#timers = timers;
    this.#tell = tell;
  }

  /** What is here, and is what its digest says. */
  async get(digests: readonly string[], waitMs: number): Promise<Map<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>();
    if (digests.length === 0 || this.#timers.now() < this.#pausedUntil) return found;
    try {
      const answers = await within(this.#timers, waitMs, this.#store.get(digests));
      if (!answers) this.#pause("store-slow", `the store of definitions did not answer within ${Math.round(waitMs)} ms`);
      for (const [i, digest] of digests.entries()) {
        const bytes = answers?.[i];
        if (!bytes) continue;
        if (hasDigest(bytes, digest)) found.set(digest, bytes);
        else this.#discard(digest);
      }
    } catch (error) {
      this.#pause("store-failed", "the store of definitions cannot be read", error);
    }
    return found;
  }

  /** Returns at once. */
  put(definitions: readonly StoredDefinition[]): void {
    if (definitions.length === 0 || this.#timers.now() < this.#pausedUntil) return;
    this.#inBackground(() => this.#store.put(definitions), "the store of definitions cannot be written");
  }

  /** Once everything is written. */
  async close(): Promise<void> {
    await Promise.all(this.#writing);
    await this.#store.close();
  }

  #discard(digest: string): void {
    this.#tell({ what: "store-damaged", message: `what the store holds under ${digest} is not that definition; it is discarded` });
    this.#inBackground(() => this.#store.drop(digest), "a damaged definition cannot be taken out of the store");
  }

  #inBackground(work: () => Promise<void>, failure: string): void {
    const done: Promise<void> = Promise.resolve()
      .then(work)
      .catch((error: unknown) => this.#pause("store-failed", failure, error))
      .finally(() => this.#writing.delete(done));
    this.#writing.add(done);
  }

  /** Told once per pause, not once per call. */
  #pause(what: LoaderTrouble["what"], message: string, error?: unknown): void {
    const already = this.#timers.now() < this.#pausedUntil;
    this.#pausedUntil = this.#timers.now() + PAUSE_MS;
    if (!already) this.#tell({ what, message, ...(error !== undefined && { error }) });
  }
}
