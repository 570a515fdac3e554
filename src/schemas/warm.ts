import type { SchemaLoader } from "../catalogue/api.js";
import type { Clock, Logger } from "../catalogue/ports.js";
import { Fault } from "../domain/fault.js";
import { LIMITS } from "../domain/limits.js";

/** Between two rounds over what is still missing: a server often comes up a little after its registry. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** About half an hour; who is not there by then is loaded when somebody asks. */
const ROUNDS = 30;
/** Loads side by side: a start has other things to do. */
const AT_ONCE = 8;

export interface WarmDeps {
  readonly loader: Pick<SchemaLoader, "full">;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Wanted {
  readonly namespace: string;
  readonly toolId: string;
}

/**
 * Loads definitions before anybody asks, so that the first agent does not wait for a cold server. Tries again for those that
 * are not there yet, tells once what could not be had, and never rejects.
 */
export async function warm(deps: WarmDeps, wanted: readonly Wanted[], signal: AbortSignal): Promise<void> {
  let missing = wanted;
  let pauseMs = FIRST_PAUSE_MS;
  for (let round = 0; round < ROUNDS && missing.length > 0 && !signal.aborted; round++) {
    if (round > 0) {
      await deps.clock.sleep(pauseMs, signal);
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
    }
    missing = await loadAll(deps, missing, signal);
  }
  if (signal.aborted || wanted.length === 0) return;
  const loaded = wanted.length - missing.length;
  const told = missing.slice(0, 20).map(({ namespace, toolId }) => `${namespace}:${toolId}`);
  if (missing.length === 0) deps.logger.info({ loaded }, "the warm list is loaded");
  else
    deps.logger.warn(
      { loaded, missing: told },
      "a part of the warm list could not be loaded; it is loaded when asked for",
    );
}

/** Answers what could not be loaded. */
async function loadAll(deps: WarmDeps, wanted: readonly Wanted[], signal: AbortSignal): Promise<readonly Wanted[]> {
  const missing: Wanted[] = [];
  for (let i = 0; i < wanted.length && !signal.aborted; i += AT_ONCE) {
    const some = wanted.slice(i, i + AT_ONCE);
    const had = await Promise.all(some.map((one) => loaded(deps, one)));
    missing.push(...some.filter((_, at) => !had[at]));
  }
  return missing;
}

async function loaded({ loader, logger }: WarmDeps, { namespace, toolId }: Wanted): Promise<boolean> {
  try {
    await loader.full({ namespace, key: { kind: "tool", toolId }, view: "full", deadlineMs: LIMITS.loadMs });
    return true;
  } catch (err) {
    if (!(err instanceof Fault))
      logger.error({ namespace, tool_id: toolId, err }, "a tool of the warm list failed by a bug");
    return false;
  }
}
