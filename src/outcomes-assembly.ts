/** What callers report of their calls, tied to the store's notes and to the metrics. */
import type { Clock, Logger, Notes, Random } from "./catalogue/ports.js";
import type { Config } from "./config/setting.js";
import { Outcomes } from "./gate/outcomes/outcomes.js";
import type { PastStore } from "./gate/ports.js";
import type { Metrics } from "./ops/metrics.js";

export interface OutcomesParts {
  readonly config: Pick<Config, "memory" | "memoryRetention" | "reportRate">;
  readonly notesOf: (namespace: string) => Notes;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "outcomes" | "outcomeSyncs">;
}

const DAY_MS = 86_400_000;

/** Undefined where nothing is to be remembered. */
export function assembleOutcomes({ config, notesOf, clock, random, logger, metrics }: OutcomesParts): Outcomes | undefined {
  if (config.memory === "off") return undefined;
  return new Outcomes({
    store: storeOf(notesOf),
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      pause: () => new Promise((resolve) => setImmediate(resolve)),
    },
    random,
    retentionMs: config.memoryRetention * DAY_MS,
    perSecond: config.reportRate,
    observer: {
      reported: (what) => metrics.outcomes.inc({ what }),
      synced: (result) => metrics.outcomeSyncs.inc({ result }),
    },
    // A store that is away says so elsewhere; what was reported stays in memory and is written later.
    onError: (err, namespace) => logger.debug({ err, namespace }, "outcomes could not be exchanged with the store"),
  });
}

function storeOf(notesOf: (namespace: string) => Notes): PastStore {
  const nameOf = (namespace: string, key: string) => `outcomes/${namespace}/${key}`;
  return {
    get: (namespace, key) => notesOf(namespace).get(nameOf(namespace, key)),
    put: (namespace, key, bytes, ttlMs, expect) => notesOf(namespace).put(nameOf(namespace, key), bytes, ttlMs, expect),
  };
}
