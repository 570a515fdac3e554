/** Definitions by digest: memory over the store. */
import type { Blob, Blobs, Clock, Logger } from "../catalogue/ports.js";
import { within } from "../catalogue/within.js";
import { LIMITS } from "../domain/limits.js";
import { costOf, DefinitionMemory } from "./memory.js";

/** A store that has not answered by then counts as away, and the load goes on to the server. */
const STORE_WAIT_MS = 1_000;
/** One listing may take this part of the memory, so that a huge server does not push everybody else out. */
const LISTING_SHARE = 1 / 4;

export interface Definitions {
  /** Held in memory, entries' own cost included. */
  readonly memoryBytes: number;
  /** In memory; no waiting, no store call. */
  held(namespace: string, digest: string): Blob | undefined;
  /**
   * Memory, then the store: one store call for all that are missing, and none for those already being read. One answer
   * per digest, in order; undefined where neither has it. Never rejects.
   */
  fetch(namespace: string, digests: readonly string[]): Promise<readonly (Blob | undefined)[]>;
  /** Puts into the store (one call) and into memory what was just received. Never rejects. */
  keep(namespace: string, blobs: readonly Blob[]): Promise<void>;
  /**
   * Brings into memory what has just been put into the store, as by a Register with inline definitions. It is read back
   * from there, because the store may have had other bytes under the same digest before (P10).
   */
  prime(namespace: string, blobs: readonly Blob[]): void;
}

export interface DefinitionsDeps {
  readonly blobsOf: (namespace: string) => Blobs;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly memoryBytes?: number;
}

export function createDefinitions({ blobsOf, clock, logger, memoryBytes }: DefinitionsDeps): Definitions {
  const memory = new DefinitionMemory(memoryBytes ?? LIMITS.memoryDefinitionBytes);
  const reads = new Map<string, Promise<Blob | undefined>>();
  let storeAway = false;

  /** Undefined when the store is away, which is logged once until it is back. */
  async function attempt<T>(call: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await within(clock, STORE_WAIT_MS, call());
      if (result.kind === "late") throw new Error(`no answer within ${STORE_WAIT_MS} ms`);
      if (storeAway) logger.info({}, "definitions are read from and kept in the store again");
      storeAway = false;
      return result.value;
    } catch (err) {
      if (!storeAway) logger.warn({ err }, "definitions cannot reach the store: serving from memory and from servers");
      storeAway = true;
      return undefined;
    }
  }

  /** As many of them as one listing may put into memory. */
  function share(blobs: readonly Blob[]): readonly Blob[] {
    let room = memory.limitBytes * LISTING_SHARE;
    return blobs.filter((blob) => {
      room -= costOf(blob);
      return room >= 0;
    });
  }

  function startReads(namespace: string, digests: readonly string[]): void {
    const fresh = [...new Set(digests)].filter((d) => !memory.has(namespace, d) && !reads.has(`${namespace}/${d}`));
    if (fresh.length === 0) return;
    const all = attempt(() => blobsOf(namespace).get(namespace, fresh));
    for (const [i, digest] of fresh.entries()) {
      const one = all.then((found) => {
        reads.delete(`${namespace}/${digest}`);
        const blob = found?.[i];
        return blob ? memory.put(namespace, blob) : undefined;
      });
      reads.set(`${namespace}/${digest}`, one);
    }
  }

  return {
    get memoryBytes() {
      return memory.bytes;
    },
    held: (namespace, digest) => memory.get(namespace, digest),
    async fetch(namespace, digests) {
      startReads(namespace, digests);
      return Promise.all(digests.map((d) => memory.get(namespace, d) ?? reads.get(`${namespace}/${d}`)));
    },
    async keep(namespace, received) {
      const blobs = [...new Map(received.map((b) => [b.digest, b])).values()];
      if (blobs.length === 0) return;
      const stored = await attempt(async () => {
        await blobsOf(namespace).put(namespace, blobs);
        return true;
      });
      const missing = blobs.filter((b) => !memory.has(namespace, b.digest));
      if (missing.length === 0) return;
      // Another replica may have been first with other bytes of the same digest; its bytes are the ones to serve (P10).
      const digests = missing.map((b) => b.digest);
      const first = stored ? await attempt(() => blobsOf(namespace).get(namespace, digests)) : undefined;
      for (const [i, blob] of share(missing).entries()) memory.put(namespace, first?.[i] ?? blob);
    },
    prime(namespace, blobs) {
      startReads(
        namespace,
        share(blobs).map((b) => b.digest),
      );
    },
  };
}
