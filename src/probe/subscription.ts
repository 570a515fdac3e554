/** The one stream of change notices that a claim's holder keeps to a server. */
import type { Clock, Logger, Random } from "../catalogue/ports.js";
import { type Dial, sameDial, type Upstream, UpstreamError } from "../catalogue/upstream-port.js";
import { afterFailure } from "./pace.js";
import type { ServerName } from "./ports.js";

/** A stream that lived this long was a good one: the next failure starts the backoff anew. */
const GOOD_MS = 60_000;
/**
 * Nothing says when a stream has opened first, and a change just before that reaches nobody. So the server is listed once
 * more this long after a stream was begun.
 */
const OPENING_MS = 2_000;

export interface Subscription {
  /** Subscribes there; undefined: the server gives no notices. */
  follow(dial: Dial | undefined): void;
  /** The server is reached elsewhere, or otherwise, now; follows it there if it was followed. */
  moved(dial: Dial): void;
  run(signal: AbortSignal): Promise<void>;
}

export interface SubscriptionDeps {
  readonly upstream: Pick<Upstream, "subscribe">;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly server: ServerName;
  readonly onNotice: () => void;
}

/** What a server did is a matter of words; only what it cannot have caused has a stack to look at. */
function whyEnded(err: unknown): object {
  return err instanceof UpstreamError ? { kind: err.kind, reason: err.message } : { err };
}

/** Longer than any process runs; the sleep ends when the dial changes. */
const UNTIL_CHANGED_MS = 2 ** 31 - 1;

export function createSubscription({
  upstream,
  clock,
  random,
  logger,
  server,
  onNotice,
}: SubscriptionDeps): Subscription {
  let dial: Dial | undefined;
  let changed = new AbortController();
  let failures = 0;

  function follow(next: Dial | undefined): void {
    if (next === dial || (next && dial && sameDial(next, dial))) return;
    dial = next;
    failures = 0;
    const before = changed;
    changed = new AbortController();
    before.abort();
  }

  async function listAfterOpening(signal: AbortSignal): Promise<void> {
    await clock.sleep(OPENING_MS, signal);
    if (!signal.aborted) onNotice();
  }

  /** One stream, to its end. */
  async function stream({ endpoint, credential, transport }: Dial, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const startedAtMs = clock.monotonic();
    void listAfterOpening(AbortSignal.any([signal, ended.signal]));
    try {
      const hear = (): void => void (signal.aborted || onNotice());
      await upstream.subscribe(endpoint, hear, signal, credential, transport);
    } catch (err) {
      if (!signal.aborted && failures === 0) {
        logger.info(
          { namespace: server.namespace, server: server.serverId, ...whyEnded(err) },
          "change notices of a server ended: listing it now and at its pace, and trying again",
        );
        // A stream often ends because its server did, and the next listing by its pace may be minutes away.
        onNotice();
      }
    } finally {
      ended.abort();
    }
    failures = clock.monotonic() - startedAtMs >= GOOD_MS ? 1 : failures + 1;
  }

  return {
    follow,
    moved: (next) => follow(dial === undefined ? undefined : next),
    async run(signal) {
      while (!signal.aborted) {
        const until = AbortSignal.any([signal, changed.signal]);
        if (dial === undefined) await clock.sleep(UNTIL_CHANGED_MS, until);
        else {
          await stream(dial, until);
          await clock.sleep(until.aborted ? 0 : afterFailure(failures, false, () => random.next()), until);
        }
      }
    },
  };
}
