/** The listings of one server by the holder of its claim: first at once, then at its pace and on notices. */
import type { Clock, Random } from "../catalogue/ports.js";
import { type Listing, UpstreamError } from "../catalogue/upstream-port.js";
import { LIMITS } from "../domain/limits.js";
import { afterFailure, afterListing, afterNotice, NOTICE_QUIET_MS } from "./pace.js";

export interface Rounds {
  /** The list may have changed. Notices before a listing starts are one with it; those during it cause one more. */
  notice(): void;
  /** Resolves as soon as the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

export interface RoundsDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly relist: () => Promise<Listing>;
  /** Resolves when the server may be listed: nobody lists one whose breaker is open. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  /** Before the first listing, ms. */
  readonly firstMs: number;
  readonly pending: () => boolean;
  readonly onListed: (listing: Listing) => void;
}

type State =
  | { readonly kind: "idle"; readonly wake: AbortController }
  /** A notice came, and its listing has not started yet. */
  | { readonly kind: "due" }
  | { readonly kind: "listing" }
  | { readonly kind: "listing+dirty" };

export function createRounds({ clock, random, relist, ready, firstMs, pending, onListed }: RoundsDeps): Rounds {
  let state: State = { kind: "due" };
  let failures = 0;
  let streak = 0;
  let endedAtMs = Number.NEGATIVE_INFINITY;

  const draw = (): number => random.next();

  function notice(): void {
    if (state.kind === "listing") state = { kind: "listing+dirty" };
    if (state.kind !== "idle") return;
    const { wake } = state;
    state = { kind: "due" };
    wake.abort();
  }

  /** Lists once; answers the time until the next listing that nobody asks for. */
  async function list(): Promise<number> {
    state = { kind: "listing" };
    try {
      const listing = await relist();
      failures = 0;
      onListed(listing);
      return afterListing(listing.ttlMs, draw);
    } catch (err) {
      // The intake was told why, and has published it.
      failures++;
      const asked = err instanceof UpstreamError ? Math.min(err.retryAfterMs ?? 0, LIMITS.relistMaxMs) : 0;
      return Math.max(asked, afterFailure(failures, pending(), draw));
    } finally {
      endedAtMs = clock.monotonic();
    }
  }

  /** Waits until the next listing is due by time or by notice. */
  async function rest(ms: number, signal: AbortSignal): Promise<void> {
    if (state.kind !== "listing+dirty") {
      const wake = new AbortController();
      state = { kind: "idle", wake };
      await clock.sleep(ms, AbortSignal.any([signal, wake.signal]));
      if (!wake.signal.aborted) return;
    }
    state = { kind: "due" };
    streak = clock.monotonic() - endedAtMs >= NOTICE_QUIET_MS ? 0 : streak;
    await clock.sleep(afterNotice(streak), signal);
    streak++;
  }

  async function loop(signal: AbortSignal): Promise<void> {
    if (firstMs > 0) await rest(firstMs, signal);
    while (!signal.aborted) {
      await ready(signal);
      if (!signal.aborted) await rest(await list(), signal);
    }
  }

  return {
    notice,
    // A listing under way belongs to whoever else waits for it too, so the end of our rounds does not wait for its end.
    run: async (signal) => void (await Promise.race([loop(signal), aborted(signal)])),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
