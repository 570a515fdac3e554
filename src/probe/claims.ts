/** Claims in Notes: one replica at a time does a piece of work. They divide labour and exclude nobody for certain. */
import type { Clock, Logger, Notes, Random } from "../catalogue/ports.js";
import { within } from "../catalogue/within.js";

export const CLAIM_TTL_MS = 15_000;

export interface Claims {
  /**
   * Tries for the claim until `signal` aborts. Whenever it is held, runs `work` with a signal that aborts as soon as the
   * claim is lost or cannot be renewed; the claim is let go when the work ends. `stillHeld` says no as soon as the claim may have run
   * out, even before that: a process that slept wakes up with work whose time is over. A store that cannot be asked means not
   * held. Never rejects; resolves after `work` has ended and the claim is released.
   */
  whileHeld(
    namespace: string,
    key: string,
    signal: AbortSignal,
    work: (held: AbortSignal, stillHeld: () => boolean) => Promise<void>,
  ): Promise<void>;
}

export interface ClaimsDeps {
  readonly notesOf: (namespace: string) => Notes;
  /** Names this replica; unique per process. */
  readonly replicaId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly ttlMs?: number;
}

export function createClaims(deps: ClaimsDeps): Claims {
  const { notesOf, clock, random, logger } = deps;
  const ttlMs = deps.ttlMs ?? CLAIM_TTL_MS;
  const renewMs = ttlMs / 3;
  const me = new TextEncoder().encode(deps.replicaId);

  /** Undefined when the store failed or took so long that the claim may have run out meanwhile. */
  async function ask<T>(key: string, call: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await within(clock, renewMs, call());
      if (result.kind === "done") return result.value;
      logger.debug({ claim: key }, "a claim is not held: the store did not answer in time");
    } catch (err) {
      logger.debug({ claim: key, err }, "a claim is not held: the store cannot be asked");
    }
    return undefined;
  }

  /** The version held, or undefined. A note with our own name is one that a failed call left behind. */
  function take(notes: Notes, key: string): Promise<number | undefined> {
    return ask(key, async () => {
      const held = await notes.get(key);
      if (held && Buffer.compare(held.bytes, me) !== 0) return undefined;
      return notes.put(key, me, ttlMs, held?.version ?? 0);
    });
  }

  /** Renews until the claim is lost or the signal aborts; answers the last version, or undefined if lost. */
  async function keep(
    notes: Notes,
    key: string,
    taken: number,
    signal: AbortSignal,
    renewed: (askedMs: number) => void,
  ): Promise<number | undefined> {
    let version = taken;
    while (true) {
      await clock.sleep(renewMs, signal);
      if (signal.aborted) return version;
      const askedMs = clock.monotonic();
      const next = await ask(key, () => notes.put(key, me, ttlMs, version));
      if (next === undefined) return undefined;
      renewed(askedMs);
      version = next;
    }
  }

  async function hold(
    notes: Notes,
    key: string,
    taken: number,
    askedMs: number,
    signal: AbortSignal,
    work: (held: AbortSignal, stillHeld: () => boolean) => Promise<void>,
  ): Promise<void> {
    const lost = new AbortController();
    const ended = new AbortController();
    // Counted from before the store was asked: it may have counted from then, too.
    let sinceMs = askedMs;
    const stillHeld = () => !lost.signal.aborted && clock.monotonic() - sinceMs < ttlMs;
    const working = work(AbortSignal.any([signal, lost.signal]), stillHeld)
      .catch((err: unknown) => logger.error({ claim: key, err }, "work under a claim failed"))
      .finally(() => ended.abort());
    const version = await keep(notes, key, taken, AbortSignal.any([signal, ended.signal]), (atMs) => {
      sinceMs = atMs;
    });
    lost.abort();
    await working;
    if (version !== undefined) await ask(key, () => notes.remove(key, version));
  }

  return {
    async whileHeld(namespace, key, signal, work) {
      const notes = notesOf(namespace);
      while (!signal.aborted) {
        const askedMs = clock.monotonic();
        const taken = await take(notes, key);
        if (taken !== undefined) await hold(notes, key, taken, askedMs, signal, work);
        if (signal.aborted) return;
        await clock.sleep(renewMs * (0.5 + random.next() / 2), signal);
      }
    },
  };
}
