import type { Blob } from "../catalogue/ports.js";

/** What an entry costs beside its bytes: key, map slot, object. */
const ENTRY_BYTES = 256;

interface Entry {
  readonly blob: Blob;
  used: boolean;
}

/**
 * Definitions in memory by (namespace, digest), bounded by bytes. The oldest go first, but one that was used since it was
 * last looked at is passed over once: nearly the least recently used, without moving anything at each use. The first bytes put
 * under a digest stay while they are held (P10).
 */
export class DefinitionMemory {
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(readonly limitBytes: number) {}

  /** Bytes held, entries' own cost included. Never over the limit. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Answers the definition and counts it as used. */
  get(namespace: string, digest: string): Blob | undefined {
    const entry = this.#entries.get(keyOf(namespace, digest));
    if (!entry) return undefined;
    entry.used = true;
    return entry.blob;
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
    this.#makeRoom(costOf(own));
    this.#entries.set(keyOf(namespace, own.digest), { blob: own, used: false });
    this.#bytes += costOf(own);
    return own;
  }

  #makeRoom(bytes: number): void {
    // A used one goes to the end of the row, where this walk meets it again if all the others were used too.
    for (const [key, entry] of this.#entries) {
      if (this.#bytes + bytes <= this.limitBytes) return;
      this.#entries.delete(key);
      if (entry.used) this.#entries.set(key, { ...entry, used: false });
      else this.#bytes -= costOf(entry.blob);
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
