import type { Blob } from "../catalogue/ports.js";

/** What an entry costs beside its bytes: key, map slot, object. */
const ENTRY_BYTES = 256;

/**
 * Definitions in memory by (namespace, digest), bounded by bytes; the least recently used go first. The first bytes put
 * under a digest stay while they are held (P10).
 */
export class DefinitionMemory {
  readonly #entries = new Map<string, Blob>();
  #bytes = 0;

  constructor(readonly limitBytes: number) {}

  /** Bytes held, entries' own cost included. Never over the limit. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Answers the definition and counts it as used. */
  get(namespace: string, digest: string): Blob | undefined {
    const key = keyOf(namespace, digest);
    const blob = this.#entries.get(key);
    if (!blob) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, blob);
    return blob;
  }

  has(namespace: string, digest: string): boolean {
    return this.#entries.has(keyOf(namespace, digest));
  }

  /** Answers the definition held from now on; one that is larger than the whole memory is not held. */
  put(namespace: string, blob: Blob): Blob {
    const held = this.get(namespace, blob.digest);
    if (held) return held;
    const own = ownBytes(blob);
    if (costOf(own) > this.limitBytes) return own;
    this.#entries.set(keyOf(namespace, own.digest), own);
    this.#bytes += costOf(own);
    this.#evict();
    return own;
  }

  #evict(): void {
    for (const [key, blob] of this.#entries) {
      if (this.#bytes <= this.limitBytes) return;
      this.#entries.delete(key);
      this.#bytes -= costOf(blob);
    }
  }
}

export function costOf(blob: Blob): number {
  return blob.bytes.byteLength + ENTRY_BYTES;
}

function keyOf(namespace: string, digest: string): string {
  return `${namespace}/${digest}`;
}

/** A slice of a response would keep the whole response alive, so the memory holds copies. */
function ownBytes(blob: Blob): Blob {
  return { ...blob, bytes: new Uint8Array(blob.bytes) };
}
