/** Definitions in memory by digest, bounded in bytes: what was not asked for longest leaves first. */
export class DefinitionMemory {
  readonly #limit: number;
  /** The least recently used first. */
  readonly #held = new Map<string, Uint8Array>();
  readonly #kept = new Set<string>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#held.size;
  }

  has(digest: string): boolean {
    return this.#held.has(digest);
  }

  get(digest: string): Uint8Array | undefined {
    const bytes = this.#held.get(digest);
    if (!bytes) return undefined;
    this.#held.delete(digest);
    this.#held.set(digest, bytes);
    return bytes;
  }

  /** The first bytes under a digest stay, so that a definition is the same object for as long as it is held. */
  put(digest: string, bytes: Uint8Array): void {
    if (this.#held.has(digest) || bytes.byteLength > this.#limit) return;
    this.#held.set(digest, bytes);
    this.#bytes += bytes.byteLength;
    if (this.#bytes > this.#limit) this.#makeRoom(digest);
  }

  delete(digest: string): void {
    const bytes = this.#held.get(digest);
    this.#kept.delete(digest);
    if (!bytes || !this.#held.delete(digest)) return;
    this.#bytes -= bytes.byteLength;
  }

  /** It leaves only when there is nothing else to let go. */
  keep(digest: string): void {
    this.#kept.add(digest);
  }

  #makeRoom(newest: string): void {
    for (const sparing of [true, false]) {
      for (const digest of [...this.#held.keys()]) {
        if (this.#bytes <= this.#limit) return;
        if (digest !== newest && !(sparing && this.#kept.has(digest))) this.delete(digest);
      }
    }
  }
}
