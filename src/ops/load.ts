/** How late the event loop is, once a second, and what follows from it for how much this replica takes on. */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock, Logger } from "../catalogue/ports.js";
import { CALM, latenessOf, type Overload, type OverloadLevel, overloadSteps, SHEDDABLE } from "../domain/overload.js";

/** One look, and so one window of the overload machine. */
const WINDOW_MS = 1_000;
/** Between two ticks that are timed: a hundred a second cost nothing, and fewer would be coarse. */
const TICK_MS = 10;
const PERCENT = Array.from({ length: 100 }, (_, i) => i + 1);

export interface Load {
  readonly level: OverloadLevel;
  stop(): void;
}

export interface LoadDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** At which lateness each level begins, ms. */
  readonly levelsMs: readonly [number, number, number];
  readonly onLevel: (level: OverloadLevel) => void;
  /** By default the process's own. */
  readonly delay?: DelaySource;
}

export interface DelaySource {
  /** As `latenessOf`, since the last call. */
  lateness(): number;
  stop(): void;
}

/** The process's own event loop. */
export function eventLoopDelay(): DelaySource {
  const histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: TICK_MS });
  histogram.enable();
  return {
    lateness() {
      // Turns as the histogram remembers them, one for each hundredth of all ticks: more than there are in a late window.
      const turns = histogram.count === 0 ? [] : PERCENT.map((p) => histogram.percentile(p) / 1e6);
      histogram.reset();
      return latenessOf(turns, TICK_MS);
    },
    stop: () => void histogram.disable(),
  };
}

export function watchLoad({ clock, logger, levelsMs, onLevel, delay = eventLoopDelay() }: LoadDeps): Load {
  const stop = new AbortController();
  let state: Overload = CALM;
  const step = overloadSteps(levelsMs);
  const look = (): void => {
    const latenessMs = delay.lateness();
    const { level } = state;
    state = step(state, latenessMs);
    if (state.level === level) return;
    onLevel(state.level);
    const facts = { overload: state.level, late_ms: Math.round(latenessMs), shed: SHEDDABLE.slice(0, state.level) };
    if (state.level > level) logger.warn(facts, "this replica has too much to do and refuses more");
    else logger.info(facts, "this replica has less to do and takes on more again");
  };
  const loop = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(WINDOW_MS, stop.signal);
      if (stop.signal.aborted) return delay.stop();
      look();
    }
  };
  void loop();
  return {
    get level() {
      return state.level;
    },
    stop: () => stop.abort(),
  };
}
